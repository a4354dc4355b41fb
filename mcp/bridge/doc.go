// Package bridge makes workers of Stepjet out of MCP servers: their tools take steps of plans, with queues, limits,
// retries and results like any other tool. docs/mcp.md says how it is used.
//
//	b, err := bridge.Open(ctx, bridge.Options{File: ".mcp.json"})
//	err = b.Register(w)
//	err = w.Run(ctx)
//	b.Close()
//
// # Safety
//
// What a server says is what strangers say. A tool is hosted under the definition that somebody agreed to (lock.go);
// one that changes is held: its steps stay in their queue. Texts that a person would not see are taken out of
// definitions, and a definition that speaks to the model waits for somebody to look at it. A program gets none of the
// worker's variables but a few; an address that is not public has to be allowed. Of the run's context a server gets
// what the file names, and the credentials of one caller go by no connection of another's.
//
// A result is what the server sent, byte for byte (capture.go).
//
// # Liveness
//
// A server that crashes is started again; meanwhile its tools' steps are left to others. One that can't be reached when
// the bridge opens is tried until it can. The end of a step's context is passed on to the server.
//
// # Failure
//
// A call whose connection ended is worth another attempt, unless the tool must not be called twice: then its outcome is
// unknown. When this process dies, so do the programs that it started.
package bridge
