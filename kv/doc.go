// Package kv keeps Stepjet's data in JetStream: the ledger of immutable records, the queues of steps, the tool
// registry, finished runs, blobs and the live orchestrators. It is the only place that knows NATS error codes.
//
// A Store is opened on a connection, and is made of facets; each says which streams and buckets it holds, and what is
// guaranteed there:
//
//	Ledger     records that decide, each written once
//	Queue      steps on their way to workers, and who has leased them
//	Registry   tools, what is overridden of them, and the key that secrets are sealed to
//	Archive    finished runs, dead letters, large values, declared tenants
//	Members    live orchestrators, and what they say of themselves
//	Requests   what programs ask of orchestrators; nothing is stored
//
// What the facets share, requests and their failures, is the account. An Upkeep mends what somebody took away while a
// system runs; an Inspector shows what lies there to package doctor.
//
// # Safety
//
// All that decides is written once: a create succeeds for one writer and tells every other that it was decided, and
// the server itself enforces it, for every subject of the ledger takes a single message. What an answer to a create
// means is written down in one place (verdictOf):
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
// Whatever may pass by itself is waited for: a lost connection, a missing leader, a full stream, a deleted consumer.
// How long is the caller's business: every call ends with its context. Nothing is dropped in between.
//
// # Failure
//
// An error is always a *fault.Error whose code tells what to do; Fault maps those of NATS. A refused subject, which a
// server reports only asynchronously, ends the requests that need it and is named in their error.
package kv
