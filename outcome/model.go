package outcome

import (
	"strconv"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// MaxForModel is the most that a model is told of problems, warnings and errors, in bytes. Results are not bounded by
// it: the plan's output_steps are.
const MaxForModel = 16 << 10

// ForModel writes what goes into a model's context: status, results, errors and, of a plan that was refused, its
// problems; nothing that is empty, and no counts. A rejection has at most MaxForModel bytes, as have the errors of
// another outcome; "problems_left_out" and "errors_left_out" say how many more there are. It is for reading alone:
// programs take JSON.
func (o *Outcome) ForModel() []byte {
	b := make([]byte, 0, 512+o.Results.size()+len(o.Output))
	b = jsontape.AppendQuoted(append(b, `{"run":`...), o.Run)
	b = jsontape.AppendQuoted(append(b, `,"status":`...), string(o.Status))
	if len(o.Output) > 0 {
		b = append(append(b, `,"output":`...), o.Output...)
	}
	if len(o.Results) > 0 {
		b = o.Results.append(append(b, `,"results":`...))
	}
	room := MaxForModel - len(o.Run) - roomBeside
	b, room = appendBounded(b, "errors", o.Errors, func(StepError) int { return 1 }, room)
	b, room = appendBounded(b, "problems", o.Problems, places, room)
	b, _ = appendBounded(b, "warnings", o.Warnings, places, room)
	return append(b, '}')
}

// roomBeside is what names, brackets and numbers of left-out entries take at most.
const roomBeside = 384

func places(p fault.Problem) int { return p.Places() }

// appendBounded writes as many entries as there is room for, and the number of those left out; count gives how many
// each stands for. It returns the room that is left.
func appendBounded[T any](b []byte, name string, list []T, count func(T) int, room int) ([]byte, int) {
	if len(list) == 0 {
		return b, room
	}
	start := len(b)
	b = append(b, `,"`+name+`":[`...)
	left := 0
	for i := range list {
		before := len(b)
		if left == 0 {
			if i > 0 {
				b = append(b, ',')
			}
			if b = appendValue(b, list[i]); len(b)-start <= room {
				continue
			}
			b = b[:before]
		}
		left += count(list[i])
	}
	b = append(b, ']')
	if left > 0 {
		b = append(b, `,"`+name+`_left_out":`...)
		b = strconv.AppendInt(b, int64(left), 10)
	}
	return b, max(room-(len(b)-start), 0)
}

// Progress is a worker's word on how far a step is. Nothing rests on it: it may be lost, and nobody has looked whether
// it is so.
type Progress struct {
	// Done is how much was done, of Total, in whatever the tool counts; Total is 0 where it isn't known.
	Done  float64 `json:"done"`
	Total float64 `json:"total,omitempty"`
	// Message says what goes on, to people.
	Message string `json:"message,omitempty"`
}
