package chaos

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// kindState are plans in the state dialect whose state has a schema: some results do not fit it, and of those that lie in
// blobs a record has to say whether they do.
const kindState = "state"

const sometimesFits = "told whether a result in a blob fits the state"

// stateful is what follows from the id of such a run: of each call whether its result is large, and whether it fits.
type stateful struct {
	run         string
	plan        []byte
	large, fits []bool
}

func newStateful(rng *rand.Rand, run string) *stateful {
	s := &stateful{run: run}
	var calls, schema []string
	for i := range 3 {
		s.large, s.fits = append(s.large, rng.Intn(2) == 0), append(s.fits, rng.Intn(3) > 0)
		calls = append(calls,
			fmt.Sprintf(`{"_tool":"try1_all","_id":"c%d","_outputPath":"†state.p%d || †state.e%d"}`, i, i, i),
			fmt.Sprintf(`{"_tool":"try1_all","_id":"u%d","v":"†state.p%d.v"}`, i, i),
			fmt.Sprintf(`{"_tool":"try1_all","_id":"r%d","why":"†state.e%d.code"}`, i, i))
		schema = append(schema, fmt.Sprintf(`"p%d":{"type":"object","properties":{"v":{"type":"number"}}},"e%d":{"type":"object"}`, i, i))
	}
	s.plan = fmt.Appendf(nil, `{"calls":[%s],"state":{"schema":{"type":"object","properties":{%s}}}}`, strings.Join(calls, ","), strings.Join(schema, ","))
	return s
}

// Call is what the tool does.
func (s *stateful) Call(step string) reference.Reply {
	i := int(step[len(step)-1] - '0')
	if step[0] != 'c' || i >= len(s.fits) {
		return reference.Reply{Body: []byte(`1`)}
	}
	v, text := "7", `"short"`
	if !s.fits[i] {
		v = `"seven"`
	}
	if s.large[i] {
		text = large(s.run)
	}
	return reference.Reply{Body: fmt.Appendf(nil, `{"v":%s,"text":%s}`, v, text)}
}

// checkState is I2, I3 and I6 for them.
func (c *checker) checkState(r *runView) {
	s := r.work.state
	if r.disturbed() || r.doc.Status == outcome.Cancelled {
		return
	}
	for i, fits := range s.fits {
		told := slices.DeleteFunc(slices.Clone(r.records), func(x record) bool {
			return x.rec.Kind != subjects.ToldKind || x.rec.What != subjects.ToldState || x.rec.Step != fmt.Sprint("c", i)
		})
		want := 0
		if s.large[i] {
			want = 1
			c.count(sometimesFits)
		}
		if len(told) != want {
			c.violation("I2", r, "%d records say whether what c%d returned fits the state, not %d", len(told), i, want)
			continue
		}
		for _, x := range told {
			if err := x.told.Told.Err; (err == nil) != fits || err != nil && err.Code != string(fault.StateInvalid) {
				c.violation("I6", r, "a record says of what c%d returned: %v, and it fits the state: %v", i, err, fits)
			}
			for _, e := range r.executions {
				if (e.Step == fmt.Sprint("u", i) || e.Step == fmt.Sprint("r", i)) && e.Kind == evBegin && x.at.UnixNano() > e.At {
					c.violation("I3", r, "step %s began before it was told whether what it is called with fits the state", e.Step)
				}
			}
		}
		status, args := []outcome.StepStatus{outcome.StepSucceeded, outcome.StepSucceeded, outcome.StepNotTaken}, []string{"", `{"v":7}`, ""}
		if !fits {
			status, args = []outcome.StepStatus{outcome.StepFailed, outcome.StepSkipped, outcome.StepSucceeded}, []string{"", "", `{"why":"state_invalid"}`}
		}
		for k, of := range []string{"c", "u", "r"} {
			c.checkStateStep(r, fmt.Sprint(of, i), status[k], args[k])
		}
	}
}

func (c *checker) checkStateStep(r *runView, id string, status outcome.StepStatus, args string) {
	i := slices.IndexFunc(r.doc.Steps, func(s outcome.Step) bool { return s.ID == id })
	if i < 0 || r.doc.Steps[i].Status != status {
		c.violation("I6", r, "step %s did not come to %s", id, status)
	}
	for _, e := range r.executions {
		if e.Kind == evBegin && e.Step == id && args != "" && e.Args != valueDigest(json.RawMessage(args)) {
			c.violation("I6", r, "step %s was called with something else than %s", id, args)
		}
	}
}
