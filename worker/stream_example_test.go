package worker_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stepjet/stepjet/worker"
)

// A planner that writes its answer piece by piece hands it over as it writes, and returns all of it in the end. Where no agent
// asks for steps before that, as here, nothing is handed over.
func ExampleNewStream() {
	plan := func(ctx context.Context, _ json.RawMessage) (worker.Output, error) {
		steps := worker.NewStream(ctx)
		answer := ""
		for _, piece := range []string{`{"steps":[{"id":"tides","tool":"search","argu`, `ments":{"query":"tides"}}`, `]}`} { // as a model writes it
			answer += piece
			steps.Text(piece) // the step begins with its brace
		}
		fmt.Println("handed over:", steps.Began())
		return worker.Output{Body: []byte(answer)}, nil
	}
	out, err := plan(context.Background(), nil)
	fmt.Println(string(out.Body), err)
	// Output:
	// handed over: false
	// {"steps":[{"id":"tides","tool":"search","arguments":{"query":"tides"}}]} <nil>
}
