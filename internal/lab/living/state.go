package living

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// StateKind is what the ids of runs begin with whose plans are in the state dialect whose state has a schema: some results do not fit it, and of those that lie in
// blobs a record has to say whether they do.
const StateKind = "state"

// Fits counts them.
const Fits = "told whether a result in a blob fits the state"

// State is what follows from the id of such a run: of each call whether its result is large, and whether it fits.
type State struct {
	Body        []byte // what is submitted
	Large, Fits []bool

	text string // of a large result
}

// NewState returns the plan of a run; large is a text that is too large for a record.
func NewState(rng *rand.Rand, large string) *State {
	s := &State{text: large}
	var calls, schema []string
	for i := range 3 {
		s.Large, s.Fits = append(s.Large, rng.Intn(2) == 0), append(s.Fits, rng.Intn(3) > 0)
		calls = append(calls,
			fmt.Sprintf(`{"_tool":"try1_all","_id":"c%d","_outputPath":"†state.p%d || †state.e%d"}`, i, i, i),
			fmt.Sprintf(`{"_tool":"try1_all","_id":"u%d","v":"†state.p%d.v"}`, i, i),
			fmt.Sprintf(`{"_tool":"try1_all","_id":"r%d","why":"†state.e%d.code"}`, i, i))
		schema = append(schema, fmt.Sprintf(`"p%d":{"type":"object","properties":{"v":{"type":"number"}}},"e%d":{"type":"object"}`, i, i))
	}
	s.Body = fmt.Appendf(nil, `{"calls":[%s],"state":{"schema":{"type":"object","properties":{%s}}}}`, strings.Join(calls, ","), strings.Join(schema, ","))
	return s
}

// Call is what the tool does.
func (s *State) Call(step string) reference.Reply {
	i := int(step[len(step)-1] - '0')
	if step[0] != 'c' || i >= len(s.Fits) {
		return reference.Reply{Body: []byte(`1`)}
	}
	v, text := "7", `"short"`
	if !s.Fits[i] {
		v = `"seven"`
	}
	if s.Large[i] {
		text = s.text
	}
	return reference.Reply{Body: fmt.Appendf(nil, `{"v":%s,"text":%s}`, v, text)}
}

// Check is I2, I3 and I6 for them.
func (s *State) Check(r *Run, j Judge) {
	if r.Disturbed || r.Doc.Status == outcome.Cancelled {
		return
	}
	for i, fits := range s.Fits {
		s.checkTold(r, j, i)
		status, args := []outcome.StepStatus{outcome.StepSucceeded, outcome.StepSucceeded, outcome.StepNotTaken}, []string{"", `{"v":7}`, ""}
		if !fits {
			status, args = []outcome.StepStatus{outcome.StepFailed, outcome.StepSkipped, outcome.StepSucceeded}, []string{"", "", `{"why":"state_invalid"}`}
		}
		for k, of := range []string{"c", "u", "r"} {
			r.checkStep(j, fmt.Sprint(of, i), status[k], args[k])
		}
	}
}

// checkTold sees that of a large result one record says whether it fits, and of a small one none; and that what reads it
// begins after that.
func (s *State) checkTold(r *Run, j Judge, i int) {
	told := slices.DeleteFunc(slices.Clone(r.Story), func(x Record) bool {
		return x.Kind != subjects.ToldKind || x.What != subjects.ToldState || x.Step != fmt.Sprint("c", i)
	})
	want := 0
	if s.Large[i] {
		want = 1
		j.Count(Fits)
	}
	if len(told) != want {
		j.Violation("I2", "%d records say whether what c%d returned fits the state, not %d", len(told), i, want)
		return
	}
	for _, x := range told {
		if err := wire.ParseTold(x.Data).Error; (err == nil) != s.Fits[i] || err != nil && err.Code != fault.StateInvalid {
			j.Violation("I6", "a record says of what c%d returned: %v, and it fits the state: %v", i, err, s.Fits[i])
		}
		for _, e := range r.Calls {
			if (e.Step == fmt.Sprint("u", i) || e.Step == fmt.Sprint("r", i)) && x.Time.UnixNano() > e.At {
				j.Violation("I3", "step %s began before it was told whether what it is called with fits the state", e.Step)
			}
		}
	}
}

func (r *Run) checkStep(j Judge, id string, status outcome.StepStatus, args string) {
	i := slices.IndexFunc(r.Doc.Steps, func(s outcome.Step) bool { return s.ID == id })
	if i < 0 || r.Doc.Steps[i].Status != status {
		j.Violation("I6", "step %s did not come to %s", id, status)
	}
	for _, e := range r.Calls {
		if e.Step == id && args != "" && e.Args != Digest([]byte(args)) {
			j.Violation("I6", "step %s was called with something else than %s", id, args)
		}
	}
}
