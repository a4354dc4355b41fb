// Package kv keeps Stepjet's data in JetStream: the ledger of immutable records, the queues of steps, the tool registry,
// finished runs, blobs and the live orchestrators. It is the only place that knows NATS error codes.
//
// # Safety
//
// All that decides is written once: a create succeeds for one writer and tells every other that it was decided, and the
// server itself enforces it, for every subject of the ledger takes a single message. What an answer to a create means is
// written down in one place (verdictOf):
//
//	stored                                      Written
//	10071 wrong last sequence                   Decided; Gone where the create was fenced
//	duplicate, 10164, no answer, no leader      unknown: asked again, or read back from the leader
//	10077 and other limits                      Decided if the record is there; otherwise the store is full: it waits
//
// Unknown is never taken for success. Reads that decide go to a stream's leader, never to a replica.
//
// # Liveness
//
// Whatever may pass by itself is waited for: a lost connection, a missing leader, a full stream, a deleted consumer. How
// long is the caller's business: every call ends with its context. Nothing is dropped in between.
//
// # Failure
//
// An error is always a *fault.Error whose code tells what to do; Fault maps those of NATS. A refused subject, which a
// server reports only asynchronously, ends the requests that need it and is named in their error.
package kv
