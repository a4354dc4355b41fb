// Package session is one connection to an MCP server, with the server's process where it is a program: it keeps what
// the server sends as it came, and says what is known of a call that brought no result. go-sdk speaks the protocol.
//
// A process has no shell and none of this process's variables but a few, and is killed when this process dies. A
// connection by http goes where http tools may go.
package session
