package wire

import (
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// StreamDetails are the details of the error of who ran a plan while it was written: of the run that was cancelled, or
// that somebody else had begun and was left alone.
type StreamDetails struct {
	Run string `json:"run"` // plain id
	// Status is what became of the run; empty where nobody said so in time.
	Status outcome.RunStatus `json:"status,omitempty"`
	// Began are the steps that had begun, or may have, by their tokens, those within plans of steps too; items of a list
	// stand in their step. Where nobody can say, they are all that were sent.
	Began []string `json:"began"`
	// Problems are all of the plan's, where it has some.
	Problems []fault.Problem `json:"problems,omitempty"`
}
