package machine_test

import (
	"fmt"
	"time"

	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/plan"
)

func Example() {
	p, _ := plan.Parse([]byte(`{"steps":[{"id":"a","tool":"t"},{"id":"b","tool":"t","arguments":{"x":"$ref:a.n"}}],"output_steps":["b"]}`), nil)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run := machine.New(p, machine.Start{Key: "default/r/1", Submitted: now, Started: now})

	var effects machine.Effects
	run.Begin(&effects)
	for seq := uint64(1); len(effects.Dispatch) > 0; seq++ {
		d := effects.Dispatch[0]
		args, _ := p.Arguments(d.Step, func(dep int) ([]byte, bool) { return run.Value(dep), run.Value(dep) != nil })
		fmt.Println("dispatch", p.Steps[d.Step].ID, string(args))
		effects.Reset()
		run.Apply(machine.Record{Seq: seq, Time: now, Result: &machine.Result{Call: d.Call, Attempt: d.Attempt, Body: []byte(`{"n": 1.0}`)}}, now, &effects)
	}
	fmt.Println(run.Status(), string(run.Outcome("r", run.Value).Results[0].JSON))
	// Output:
	// dispatch a {}
	// dispatch b {"x":1.0}
	// succeeded {"n": 1.0}
}
