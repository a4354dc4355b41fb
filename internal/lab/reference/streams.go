package reference

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// An agent whose planner hands over steps before its answer is whole, as docs/agents.md has it ("Streamed rounds"). What
// becomes of a step follows from the order of the records alone: which attempt of the planner was out, and what was over by
// then. Steps here are single calls of a tool whose arguments are one number, or a reference to the number of another step.

// Writing are the rounds of such an agent.
type Writing struct {
	// Early are the tools that may be called before the answer is whole, Late those that wait for it.
	Early, Late map[string]bool
	// Most is how many rounds there may be.
	Most int
	// Rounds are those that are decided, the first first.
	Rounds []Written
	// Came is what the agent came to: an output, or the code of an error; empty as long as it goes on.
	Came string

	phase   string // one of those below; empty: the planner is to be asked
	attempt int
	claimed bool
	handed  []*WrittenStep // in the round that goes on, without those that are gone
	gone    []string       // had not begun when their attempt ended
	rest    []*WrittenStep // of the answer, but for those that had begun
	output  string         // of the answer; empty for none
	bad     bool           // it is of no use
	changed []string
}

// The phases of a round.
const (
	writing  = "writing"  // an attempt of the planner is out
	answered = "answered" // what had begun runs, and then the rest
)

// Written is a round that is over.
type Written struct {
	Invalid bool
	// Changed are the steps that had begun and are others in the answer.
	Changed []string
	Steps   []*WrittenStep
}

// WrittenStep is a step of a round.
type WrittenStep struct {
	ID, Tool string
	Needs    []string // steps of the same round
	Raw      string
	Status   string // empty as long as it is not over
	N        int    // what it returned
	// Begun says that it was handed over, Lacked that the answer does not have it.
	Begun, Lacked bool
	told          string // its status when the last attempt ended; empty for one that had not begun by then
}

// writtenForm is a step as it stands in a plan.
type writtenForm struct {
	ID        string
	Tool      string
	Arguments struct{ N json.RawMessage }
	DependsOn []string `json:"depends_on"`
	Approval  json.RawMessage
}

// readWritten reads a step. earlier are the references to rounds before, which are not looked at.
func readWritten(raw string) *WrittenStep {
	var f writtenForm
	if json.Unmarshal([]byte(raw), &f) != nil || f.ID == "" {
		return nil
	}
	s := &WrittenStep{ID: f.ID, Tool: f.Tool, Raw: raw, Needs: slices.Clone(f.DependsOn)}
	if f.Approval != nil {
		s.Tool += " once somebody approves of it"
	}
	if ref, is := strings.CutPrefix(strings.Trim(string(f.Arguments.N), `"`), "$ref:"); is {
		if id, _, _ := strings.Cut(ref, "."); len(id) == 1 { // those of earlier rounds are r0, r1
			s.Needs = append(s.Needs, id)
		}
	}
	return s
}

// sameWritten compares two steps as JSON whose members have an order that says nothing.
func sameWritten(a, b string) bool {
	sorted := func(s string) []byte {
		var v any
		if json.Unmarshal([]byte(s), &v) != nil {
			return []byte(s)
		}
		out, _ := json.Marshal(v)
		return out
	}
	return bytes.Equal(sorted(a), sorted(b))
}

func findWritten(steps []*WrittenStep, id string) *WrittenStep {
	for _, s := range steps {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// Attempt says that an attempt of the planner is out now.
func (w *Writing) Attempt(n int) { w.phase, w.attempt, w.claimed = writing, n, false }

// Claim says that somebody has claimed the attempt that is out.
func (w *Writing) Claim() { w.claimed = true }

// Began are the steps that the planner of the attempt that is out is told of, in any order, with what they had come to.
func (w *Writing) Began() map[string]string {
	all := map[string]string{}
	for _, s := range w.handed {
		if s.told != "" {
			all[s.ID] = s.told
		}
	}
	return all
}

// HandOver says which steps begin that a planner hands over now, those that had begun already among them, and which don't.
func (w *Writing) HandOver(steps []string) (begun, held map[string]bool) {
	begun, held = map[string]bool{}, map[string]bool{}
	all := slices.Clone(w.handed)
	for again := true; again; {
		again = false
		held = map[string]bool{}
		for _, raw := range steps {
			s := readWritten(raw)
			there := findWritten(all, s.ID)
			switch {
			case there != nil && sameWritten(there.Raw, raw):
				begun[s.ID] = true
			case there != nil, slices.Contains(w.gone, s.ID), !w.Early[s.Tool], !w.haveAll(all, s):
				held[s.ID] = true
			default:
				all, again = append(all, s), true
			}
		}
	}
	return begun, held
}

func (w *Writing) haveAll(all []*WrittenStep, s *WrittenStep) bool {
	for _, id := range s.Needs {
		if findWritten(all, id) == nil {
			return false
		}
	}
	return true
}

// Add takes the record by which steps begin. It reports whether it counts.
func (w *Writing) Add(attempt int, steps []string) bool {
	if w.phase != writing || w.attempt != attempt || !w.claimed {
		return false
	}
	all := slices.Clone(w.handed)
	for _, raw := range steps { // all of them together
		s := readWritten(raw)
		if findWritten(all, s.ID) != nil || slices.Contains(w.gone, s.ID) {
			return false
		}
		s.Begun = true
		all = append(all, s)
	}
	for _, s := range all {
		if !w.haveAll(all, s) {
			return false
		}
	}
	w.handed = all
	w.settle()
	return true
}

// Out are the steps that tools are at now, by id: true for one that began before the answer was whole.
func (w *Writing) Out() map[string]bool {
	all := map[string]bool{}
	for _, s := range w.handed {
		if s.Status == "" && w.ready(w.handed, s) {
			all[s.ID] = true
		}
	}
	if w.phase != answered || len(all) > 0 {
		return all
	}
	for _, s := range w.rest {
		if s.Status == "" && w.ready(w.whole(), s) {
			all[s.ID] = false
		}
	}
	return all
}

func (w *Writing) whole() []*WrittenStep { return slices.Concat(w.handed, w.rest) }

func (w *Writing) ready(all []*WrittenStep, s *WrittenStep) bool {
	for _, id := range s.Needs {
		if before := findWritten(all, id); before == nil || before.Status != succeeded {
			return false
		}
	}
	return true
}

// Over takes the record of a step that a tool was at.
func (w *Writing) Over(id string, n int, ok bool) {
	s := findWritten(w.whole(), id)
	if s.Status, s.N = failed, n; ok {
		s.Status = succeeded
	}
	w.settle()
	w.next()
}

// settle skips what refers to what did not succeed.
func (w *Writing) settle() {
	for again := true; again; {
		again = false
		for _, s := range w.whole() {
			for _, id := range s.Needs {
				before := findWritten(w.whole(), id)
				if s.Status == "" && before != nil && before.Status != "" && before.Status != succeeded {
					s.Status, again = skipped, true
				}
			}
		}
	}
}

// Ends takes the record of an attempt that ends without an answer; last says that there is no other behind it.
func (w *Writing) Ends(last bool) {
	var stays []*WrittenStep
	for _, s := range w.handed {
		switch {
		case s.Status == skipped, s.Status == "" && !w.ready(w.handed, s):
			w.gone = append(w.gone, s.ID)
			continue
		case s.Status == "":
			s.told = "ready"
		default:
			s.told = s.Status
		}
		stays = append(stays, s)
	}
	w.handed, w.phase = stays, ""
	if last {
		w.Came = codeToolFailed
	}
}

// Answer takes the answer: its steps, and its output, empty for none.
func (w *Writing) Answer(steps []string, output string) (changed []string) {
	w.phase, w.output = answered, output
	all := []*WrittenStep{}
	for _, raw := range steps {
		s := readWritten(raw)
		if w.bad = w.bad || findWritten(all, s.ID) != nil || !w.Early[s.Tool] && !w.Late[s.Tool]; w.bad {
			break
		}
		all = append(all, s)
	}
	var placed []*WrittenStep // one behind the other: what is left over waits for itself, or for what is not there
	for range all {
		for _, s := range all {
			if findWritten(placed, s.ID) == nil && w.haveAll(placed, s) {
				placed = append(placed, s)
			}
		}
	}
	w.bad = w.bad || len(placed) < len(all)
	for _, s := range w.handed {
		s.Lacked = true
		if there := findWritten(all, s.ID); there != nil && !w.bad {
			if s.Lacked = false; !sameWritten(there.Raw, s.Raw) {
				changed = append(changed, s.ID)
			}
		}
	}
	if w.changed, w.bad = changed, w.bad || len(changed) > 0; w.bad {
		for _, s := range w.handed {
			s.Lacked = true
		}
		w.output = ""
	} else {
		for _, s := range all {
			if findWritten(w.handed, s.ID) == nil {
				w.rest = append(w.rest, s)
			}
		}
	}
	w.settle()
	w.next()
	return changed
}

// Asks reports whether the planner is to be asked, for the first time in a round or again.
func (w *Writing) Asks() bool { return w.Came == "" && w.phase == "" }

// next ends the round, where all of it is over.
func (w *Writing) next() {
	if w.phase != answered {
		return
	}
	for _, s := range w.whole() {
		if s.Status == "" {
			return
		}
	}
	good := !w.bad
	for _, s := range w.whole() {
		good = good && s.Status == succeeded
	}
	w.Rounds = append(w.Rounds, Written{Invalid: w.bad, Changed: w.changed, Steps: w.whole()})
	invalid := 0
	for k := len(w.Rounds) - 1; k >= 0 && w.Rounds[k].Invalid; k-- {
		invalid++
	}
	switch {
	case good && w.output != "":
		w.Came = w.output
	case invalid == 3:
		w.Came = "planner_invalid"
	case len(w.Rounds) == w.Most:
		w.Came = "rounds_exhausted"
	}
	w.phase, w.handed, w.rest, w.gone, w.bad, w.changed, w.output = "", nil, nil, nil, false, nil, ""
}
