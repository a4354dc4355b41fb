package machine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// BenchmarkScopes compares 1,000 steps with plans of five steps with as many steps beside each other. Each of the five
// waits for the one before.
func BenchmarkScopes(b *testing.B) {
	for _, shape := range scopeShapes {
		p := parsed(b, shape.plan(1_000, 5))
		b.Run(shape.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m := newCrowd(p)
				m.run(shape.fails)
				require.True(b, m.Finished())
			}
		})
	}
}

func parsed(t testing.TB, body string) *plan.Plan {
	t.Helper()
	p, report := plan.Parse([]byte(body), nil)
	require.NotNil(t, p, "%v", report.Problems)
	return p
}

// scopeShape is a plan of n scopes that each have so many steps.
type scopeShape struct {
	name  string
	plan  func(n, steps int) string
	fails func(c machine.Call) bool
}

var scopeShapes = []scopeShape{
	{"flat", func(n, steps int) string {
		return beside(n, func(i int) string { return chain(fmt.Sprintf("p%d_", i), steps) })
	}, nil},
	{"nested", func(n, steps int) string {
		return beside(n, func(i int) string { return fmt.Sprintf(`{"id":"p%d","plan":{"steps":[%s]}}`, i, chain("s", steps)) })
	}, nil},
	{"items", func(n, steps int) string { return forEach(n, "", chain("s", steps)) }, nil},
	{"lists", func(n, steps int) string {
		return beside(n, func(i int) string {
			return fmt.Sprintf(`{"id":"p%d","for_each":{"in":[1]},"plan":{"steps":[%s]}}`, i, chain("s", steps))
		})
	}, nil},
	{"lists-within", func(n, steps int) string {
		return forEach(n, "", fmt.Sprintf(`{"id":"s","tool":"t","for_each":{"in":[1,2,3]}},{"id":"u","tool":"t","arguments":{"x":"$ref:s"}},%s`,
			chain("s", steps-2)))
	}, nil},
	{"one-fails", func(n, steps int) string { return forEach(n, "", chain("s", steps)) }, func(c machine.Call) bool { return c.Step > 100 }},
	{"all-stop", func(n, steps int) string {
		return beside(n, func(i int) string {
			return fmt.Sprintf(`{"id":"p%d","plan":{"on_failure":"stop","steps":[%s]}}`, i, chain("s", steps))
		})
	}, func(machine.Call) bool { return true }},
	{"crowded", func(n, steps int) string {
		return forEach(n, `"concurrency":1,`, strings.ReplaceAll(chain("s", steps), "$ref:s", "no "))
	}, nil},
}

// beside is a plan of n parts beside each other.
func beside(n int, part func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = part(i)
	}
	return `{"steps":[` + strings.Join(parts, ",") + `]}`
}

// forEach is a plan that runs steps for each of n items.
func forEach(n int, options, steps string) string {
	return fmt.Sprintf(`{"steps":[{"id":"e","for_each":{"in":[%s]},"plan":{%s"steps":[%s]}}]}`,
		strings.TrimSuffix(strings.Repeat("1,", n), ","), options, steps)
}

// chain is n steps of which each waits for the one before.
func chain(prefix string, n int) string {
	steps := make([]string, n)
	for i := range steps {
		arguments := ""
		if i > 0 {
			arguments = fmt.Sprintf(`,"arguments":{"x":"$ref:%s%d"}`, prefix, i-1)
		}
		steps[i] = fmt.Sprintf(`{"id":"%s%d","tool":"t"%s}`, prefix, i, arguments)
	}
	return strings.Join(steps, ",")
}

// crowd is a run of many calls, of which each is answered at once, in the order in which they come.
type crowd struct {
	*machine.Run
	plan *plan.Plan
	seq  uint64
	out  machine.Effects
}

func newCrowd(p *plan.Plan) *crowd {
	contracts := map[string]*tool.Contract{"t": {MaxAttempts: 1, Limit: 1}}
	c := &crowd{Run: machine.New(p, machine.Start{Key: "t/r/1", Submitted: epoch, Started: epoch, Contracts: contracts}), plan: p, seq: 10}
	c.Begin(&c.out)
	return c
}

// run brings the run to its end.
func (c *crowd) run(fails func(machine.Call) bool) {
	for {
		for len(c.out.Expand) > 0 {
			step := c.out.Expand[0]
			c.out.Expand = c.out.Expand[1:]
			c.count(step)
		}
		calls, decide := c.out.Dispatch, c.out.Decide
		if len(calls)+len(decide) == 0 {
			return
		}
		c.out = machine.Effects{}
		for _, d := range decide {
			c.apply(d.Call, d.Attempt, d.Error)
		}
		for _, d := range calls {
			var err *fault.Error
			if fails != nil && fails(d.Call) {
				err = fault.New(fault.ToolTerminal, "no")
			}
			c.apply(d.Call, d.Attempt, err)
		}
	}
}

func (c *crowd) apply(call machine.Call, attempt int, err *fault.Error) {
	if !c.Open(call, attempt) {
		return
	}
	res := &machine.Result{Call: call, Attempt: attempt, Error: err}
	if err == nil {
		res.Body = []byte(`{"a":1}`)
	}
	c.Apply(machine.Record{Seq: c.seq, Time: epoch, Result: res}, epoch, &c.out)
	c.seq++
	for len(c.out.Expand) > 0 {
		step := c.out.Expand[0]
		c.out.Expand = c.out.Expand[1:]
		c.count(step)
	}
}

// count tells the list of a for_each step, which refers to nothing.
func (c *crowd) count(step int) {
	p, of := c.Scope(step)
	list, err := p.Items(of.Step(step), func(int) ([]byte, bool) { return nil, false })
	if err != nil {
		panic(err)
	}
	c.Elements(step, list)
	c.Expand(step, len(list), epoch, &c.out)
}
