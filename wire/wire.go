// Package wire is the form of every message: how a step, a result, a start and a stop are written into headers and
// body, and read back. It knows no connection; docs/protocol.md describes the same forms for other languages.
//
// Bodies are the user's own bytes. What Stepjet adds stands in the headers of package subjects. A reader ignores
// headers that it doesn't know and leaves messages of a higher version alone.
package wire

// InlineLimit is the largest body, in bytes, of a result, of arguments or of a start record that travels in the message
// itself. What is larger goes through the object store and leaves a handle.
const InlineLimit = 256 << 10
