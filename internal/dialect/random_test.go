package dialect_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

var programs = flag.Int("programs", 20_000, "random programs of the dialect")

var keys = []string{"x", "y", "code"}

func randomPath(r *rand.Rand, least int) []string {
	p := []string{}
	for range max(least, r.Intn(6)/2) {
		p = append(p, keys[r.Intn(len(keys))])
	}
	return p
}

func randomValue(r *rand.Rand, depth int) any {
	switch n := r.Intn(10); {
	case n == 9 && depth < 3:
		return []any{randomValue(r, depth+1), "i"}[:r.Intn(3)]
	case n < 4 && depth < 3:
		m := map[string]any{}
		for range r.Intn(3) {
			m[keys[r.Intn(len(keys))]] = randomValue(r, depth+1)
		}
		return m
	case n == 4:
		return nil
	case n == 5:
		return r.Intn(2) == 0
	case n == 6:
		return []string{"", "a", "$ref:c0", "b\"c"}[r.Intn(4)]
	}
	return float64(r.Intn(3))
}

// randomFrom is a reference, most often to what some call writes or to a part of that.
func (p *program) randomFrom(r *rand.Rand) from {
	c := p.calls[r.Intn(len(p.calls))]
	places := append(slices.Clip(c.results), c.errors...)
	switch at := slices.Clone(places[r.Intn(len(places))]); r.Intn(8) {
	case 0:
		return from{input: true, path: []string{keys[r.Intn(len(keys))]}}
	case 1:
		return from{path: randomPath(r, 0)}
	case 2, 3:
		return from{path: append(at, keys[r.Intn(len(keys))])}
	default:
		return from{path: at}
	}
}

func (p *program) randomRead(r *rand.Rand) read {
	a := read{from: []from{p.randomFrom(r)}, text: r.Intn(6) == 0}
	if a.text {
		return a
	}
	for r.Intn(3) == 0 {
		a.from = append(a.from, p.randomFrom(r))
	}
	switch {
	case len(a.from) > 1 && r.Intn(4) == 0:
		a.all = true
	case r.Intn(4) == 0:
		a.literal = []any{"none", 7.0, true}[r.Intn(3)]
	}
	return a
}

func randomProgram(r *rand.Rand) *program {
	p := &program{input: map[string]any{}, initial: map[string]any{}}
	for _, k := range keys {
		p.input[k] = randomValue(r, 1)
		if r.Intn(3) == 0 {
			p.initial[k] = randomValue(r, 1)
		}
	}
	for range 1 + r.Intn(6) {
		c := progCall{results: [][]string{randomPath(r, 1)}, result: randomValue(r, 0), method: "set"}
		if r.Intn(4) == 0 {
			c.method = []string{"merge", "push", "concat"}[r.Intn(3)]
		}
		if r.Intn(8) == 0 {
			c.results = append(c.results, randomPath(r, 1))
		}
		if r.Intn(3) == 0 {
			c.errors = [][]string{{"err"}}
			if r.Intn(3) > 0 {
				c.errors[0] = randomPath(r, 1)
			}
		}
		if r.Intn(3) == 0 {
			c.fails = map[string]any{"code": "tool_failed", "message": "no", "details": nil}
			if r.Intn(2) == 0 {
				c.fails["code"] = "declined"
			}
		}
		p.calls = append(p.calls, c)
	}
	for i := range p.calls {
		p.calls[i].read(r, p, i)
	}
	for range r.Intn(3) {
		o := p.randomRead(r)
		o.all = false
		p.output = append(p.output, o)
	}
	return p
}

// read makes up what a call reads.
func (c *progCall) read(r *rand.Rand, p *program, i int) {
	for range r.Intn(3) {
		c.args = append(c.args, p.randomRead(r))
	}
	for r.Intn(3) == 0 {
		t := test{from: p.randomFrom(r), equals: []any{nil, 1.0, "a"}[r.Intn(3)]}
		t.alone = len(c.cond) == 0 && r.Intn(2) == 0
		if c.cond = append(c.cond, t); t.alone {
			break
		}
	}
	if i > 0 && r.Intn(4) == 0 {
		c.after = []int{r.Intn(i)}
	}
}

func (p *program) document() []byte {
	var calls []map[string]any
	for i, c := range p.calls {
		m := map[string]any{"_tool": "t", "_id": fmt.Sprint("c", i), "_outputPath": joined(c.results), "_outputMethod": c.method}
		if len(c.errors) > 0 {
			m["_outputPath"] = joined(c.results) + " || " + joined(c.errors)
		}
		args := m
		if i%4 == 3 { // a template runs as a tool does
			args = map[string]any{}
			m["_delegate"], m["_scopes"] = "t", args
			delete(m, "_tool")
		}
		for k, a := range c.args {
			args[fmt.Sprint("a", k)] = a.String()
		}
		var tests []string
		for _, t := range c.cond {
			tests = append(tests, t.String())
		}
		if len(tests) > 0 {
			m["_if"] = strings.Join(tests, " or ")
		}
		var after []string
		for _, j := range c.after {
			after = append(after, fmt.Sprint("c", j))
		}
		if len(after) > 0 {
			m["_after"] = after
		}
		calls = append(calls, m)
	}
	doc := map[string]any{"calls": calls, "input": p.input, "state": map[string]any{"initial": p.initial}}
	if p.output != nil {
		output := map[string]any{}
		for k, o := range p.output {
			output[fmt.Sprint("o", k)] = o.String()
		}
		doc["output"] = output
	}
	body, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return body
}

func joined(paths [][]string) string {
	var all []string
	for _, p := range paths {
		all = append(all, from{path: p}.String())
	}
	return strings.Join(all, " && ")
}

func (a read) String() string {
	if a.text {
		return "<${" + a.from[0].String() + "}>"
	}
	var all []string
	for _, f := range a.from {
		all = append(all, f.String())
	}
	if a.all {
		return strings.Join(all, " && ")
	}
	if a.literal != nil {
		b, _ := json.Marshal(a.literal)
		all = append(all, string(b))
	}
	return strings.Join(all, " || ")
}

func (t test) String() string {
	b, _ := json.Marshal(t.equals)
	switch {
	case t.alone:
		return t.from.String()
	case t.equals == nil:
		return t.from.String() + " != null"
	}
	return t.from.String() + " == " + string(b)
}

// run goes through a compiled plan on the state machine, and answers each call as the program says.
func (p *program) run(t *testing.T, compiled *plan.Plan) (m *machine.Run, status []string, args []map[string]any, told string) {
	t.Helper()
	at := time.Unix(0, 0).UTC()
	m = machine.New(compiled, machine.Start{Key: "t/r/1", Submitted: at, Started: at, Contracts: map[string]*tool.Contract{"t": {MaxAttempts: 1, Limit: 1}}})
	resolver := compiled.NewResolver().Fates(m.Fate)
	values := func(step int) ([]byte, bool) {
		res := m.Result(machine.Call{Step: step})
		if res == nil {
			return nil, false
		}
		return res.Value, true
	}
	args = make([]map[string]any, len(p.calls))
	var effects machine.Effects
	m.Begin(&effects)
	for seq := uint64(1); !m.Finished(); {
		round := effects
		effects = machine.Effects{}
		require.NotEmpty(t, round.Dispatch, "the run waits for nothing")
		for _, d := range round.Dispatch {
			text, err := resolver.Arguments(d.Call.Step, values)
			require.Nil(t, err)
			require.NoError(t, json.Unmarshal(text, &args[d.Call.Step]))
			c := p.calls[d.Call.Step]
			res := &machine.Result{Call: d.Call, Attempt: d.Attempt}
			if c.fails != nil {
				res.Error = &fault.Error{Code: fault.ToolTerminal, Message: "no"}
				if c.fails["code"] == "declined" {
					res.Error.ToolCode = "declined"
				} else {
					res.Error.Code = fault.ToolFailed
				}
			} else {
				res.Value, _ = json.Marshal(c.result)
				res.Size = int64(len(res.Value))
			}
			m.Apply(machine.Record{Seq: seq, Time: at, Result: res}, at, &effects)
			seq++
		}
	}
	for i := range p.calls {
		status = append(status, string(m.StepStatus(i)))
	}
	for i := range compiled.Steps {
		err, _ := m.Failure(machine.Call{Step: i})
		told += fmt.Sprintf("%s %s %v\n", compiled.Steps[i].ID, m.StepStatus(i), err)
	}
	return m, status, args, told
}

// checkOutput compares what a run came to with what the interpreter says. A run that did not succeed has no output where
// no call has written anything of it.
func (x *interpretation) checkOutput(t *testing.T, m *machine.Run, shown string) {
	t.Helper()
	came := m.Output()
	require.NotNil(t, came, shown)
	require.Nil(t, came.Error, shown)
	if came.Value == nil {
		require.NotEqual(t, outcome.Succeeded, m.Status(), shown)
		require.False(t, x.written, shown)
		return
	}
	var output any
	require.NoError(t, json.Unmarshal(came.Value, &output))
	require.Equal(t, x.result, output, shown)
}

// Random programs come to the same in the interpreter, which works on the state, and compiled, in the state machine.
func TestProgramsAgree(t *testing.T) {
	t.Parallel()
	met := map[string]int{}
	for seed := range *programs {
		p := randomProgram(rand.New(rand.NewSource(int64(seed))))
		body := p.document()
		want := interpret(p)
		compiled, report := plan.Parse(body, nil)
		if want.refused {
			require.Nil(t, compiled, "seed %d: nothing says that this can't be\n%s", seed, body)
			met["refused"]++
			continue
		}
		require.NotNil(t, compiled, "seed %d: %+v\n%s", seed, report.Problems, body)
		m, status, args, told := p.run(t, compiled)
		shown := fmt.Sprintf("seed %d\n%s\n%s\n%s", seed, body, plan.Compiled(body), told)
		require.Equal(t, want.status, status, shown)
		require.Equal(t, want.args, args, shown)
		if p.output != nil {
			want.checkOutput(t, m, shown)
		}
		for _, s := range status {
			met[s]++
		}
	}
	t.Log(met)
	for _, s := range []string{"refused", "succeeded", "failed", "skipped", "not_taken"} {
		require.Greater(t, met[s], *programs/100, "programs where a call is %s", s)
	}
}
