// Package task holds what tasks of the Model Context Protocol (SEP-2663) are made of where each is a run: the handle
// that a client polls with, what a run's document means as a task, and the forms that a client's user fills in to answer
// what a run asks.
//
// Safety. A handle names a run and who may ask about it, under a key; one that was made up, or is another's, reads as
// unknown. Nothing else is kept anywhere: any server with the key answers. Liveness. A run that no owner answers for is
// a task that works. The package is pure: it knows no clock and no I/O.
package task
