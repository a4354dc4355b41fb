package worker_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stepjet/stepjet/worker"
)

// A tool asks a person in the middle of its work. Its attempt ends with that: nothing of the step is held while somebody
// thinks. The next attempt is told the answer, and finds again what the first had held.
func ExampleAsk() {
	type seat struct {
		Flight string `json:"flight"`
	}
	book := func(ctx context.Context, in seat) (string, error) {
		if r, ok := worker.Answered(ctx); ok {
			return fmt.Sprintf("booked %s on %s, held as %s", r.Answer, in.Flight, r.State), nil
		}
		hold := json.RawMessage(`"hold-7"`) // of a reservation that was made here
		return "", worker.Ask(ctx, worker.Question{
			Text: "Which seat on " + in.Flight + "?", State: hold,
			Choices: []json.RawMessage{json.RawMessage(`"12A"`), json.RawMessage(`"14C"`)},
		})
	}
	demo(func(w *worker.Worker) { worker.Handle(w, "book_seat", book) }, "book_seat", `{"flight":"LH 400"}`)
	// Output:
	// asks: Which seat on LH 400? ["12A","14C"]
	// "booked \"12A\" on LH 400, held as \"hold-7\""
}
