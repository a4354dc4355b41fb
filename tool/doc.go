// Package tool holds what a tool says about itself: its name and description, the JSON Schemas of its input and output,
// and the contract by which it may be called (x-orchestration and the annotations of MCP; plan language, "Contracts").
//
// The contract follows the "Agent Multi-Tool Orchestration Pattern Specification", which comments call seed 003.
//
// It is pure: no I/O, no clock. Nothing that a definition, a schema or a value holds can make it load anything, run
// without end or panic: sizes, depths and the work of one check are bounded, and a schema that asks for more is refused
// when it is compiled. Errors are *fault.Error of code invalid_tool.
package tool
