// Package streamed reads the text of a plan while it is being written, and says which of its steps may begin.
//
// Reader takes the text in any cut of bytes and returns the parts of the plan that are whole: its fields, and each step
// when its closing brace has come. Hold keeps a step back until all that it refers to is there, or until the text is
// over. Early and Late say of a field what it means before the steps and behind them.
//
// Safety. What Reader returns is whole: a step is checked as a JSON text of its own before anybody sees it. What it
// can't know is whether the rest of the text is a plan at all; whoever acts upon a step has to be able to take that back.
// It keeps the plan and nothing else: text around the plan is not kept, and a plan beyond the limits of plans is an error
// at the byte that is one too many. Everything is done once for each byte, so no text costs more than its length.
//
// It is pure: no I/O, no clock.
package streamed
