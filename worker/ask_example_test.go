package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

type seat struct {
	Flight string `json:"flight"`
}

// bookSeat asks which seat it is to be, and is called again with the answer.
func bookSeat(ctx context.Context, in seat) (string, error) {
	if r, ok := worker.Answered(ctx); ok { // r.Attempt is the one that asked
		return fmt.Sprintf("booked %s on %s, held as %s", r.Answer, in.Flight, r.State), nil
	}
	hold := json.RawMessage(`"hold-7"`) // of a reservation that was made here
	return "", worker.Ask(ctx, worker.Question{
		Text:    "Which seat on " + in.Flight + "?",
		Schema:  json.RawMessage(`{"type": "string"}`),
		Choices: []json.RawMessage{json.RawMessage(`"12A"`), json.RawMessage(`"14C"`)},
		State:   hold,
	})
}

func hostSeats(w *worker.Worker) {
	worker.Handle(w, "book_seat", bookSeat, worker.Contract(tool.Orchestration{Asks: true}))
}

// A tool asks a person in the middle of its work. Its attempt ends with that: nothing of the step is held while somebody
// thinks. The next attempt is told the answer, and finds again what the first had held.
func ExampleAsk() {
	demo(hostSeats, "book_seat", `{"flight":"LH 400"}`)
	// Output:
	// asks: Which seat on LH 400? ["12A","14C"]
	// "booked \"12A\" on LH 400, held as \"hold-7\""
}

// The code of docs/contracts.md is that of the example above, so that it compiles and does what it says.
func TestTheCodeOfTheDocumentIsTheExample(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/contracts.md")
	require.NoError(t, err)
	_, after, ok := strings.Cut(string(page), "## A tool that asks\n")
	require.True(t, ok)
	_, after, ok = strings.Cut(after, "```go\n")
	require.True(t, ok)
	code, _, ok := strings.Cut(after, "```\n")
	require.True(t, ok)
	require.Contains(t, code, "worker.Ask(")
	example, err := os.ReadFile("ask_example_test.go")
	require.NoError(t, err)
	require.Contains(t, string(example), code)
}
