// Package worker hosts typed tools: it takes steps from their queues, runs a plain Go function for each, and records
// what came of it.
//
//	w, err := worker.New(nc, worker.Config{})
//	worker.Handle(w, "get_weather", func(ctx context.Context, in WeatherIn) (WeatherOut, error) { … })
//	err = w.Run(ctx)
//
// # Safety
//
// A delivery is acknowledged only after the record of its attempt stands in the ledger, whoever wrote it. Records are
// created once: a result that comes too late, from a worker whose lease had run out or after the run was cancelled, is
// refused by the ledger and dropped. A step names the subject of its result; a worker publishes there only if that is
// the record of the very attempt it was handed, so a forged step can't make it write anywhere else.
//
// A tool with delivery at_most_once is executed only after its attempt was claimed, once, for this very delivery. A
// second delivery of the same message finds the claim and records outcome_unknown instead of executing.
//
// # Liveness
//
// Every execution ends: by its handler, by the execution timeout, by the deadline of its step or run, or by a cancel. A
// handler that ignores its context is given up at that moment, with the record written and the lease released; its
// goroutine keeps its slot until it really returns, so that a worker can't fill up with them. A step that kills its
// worker is redelivered, and after MaxDeliveries is recorded as worker_lost.
//
// # Batches
//
// A tool whose contract has a batch is called with the items of many steps at once (HandleBatch), from all runs and
// tenants. What is said above holds for each of these steps by itself: it has its own lease, claim, clock, cancel and
// record; only the call and its slot are shared. A step that was in the hands of a worker that was lost is executed
// alone, so that one that kills its worker can't take others with it. What one step's item failed with goes to other
// tenants' steps as the bare fact, and without the secrets of anybody's context.
//
// # Failure
//
// While the ledger is full or NATS can't be reached, finished results are kept, with their leases and slots, until they
// can be written. A worker that could not renew its leases for as long as they last cancels its handlers: somebody else
// has their steps by then. What such a handler returns as a success is still offered to the ledger, an error is not.
package worker
