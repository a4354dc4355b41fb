package living

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// tale is what the records of a living run come to, one after the other, by rules that are few because its plans are:
// a call is ready once each step that it refers to has succeeded; an amendment is in force where it stands, or where it
// is approved of, unless it writes a step again that waits no more, or adds one that is there.
type tale struct {
	of        *Run
	scopes    map[string]*taleScope
	amends    []*taleAmend
	approval  *taleAnswer            // of the plan as a whole
	answers   map[string]*taleAnswer // by the token of the step
	decided   map[string]bool        // calls of which there is a record
	succeeded map[string]time.Time   // by the token of the call
	values    map[string]int
	shown     map[string]journal.Event // what clients saw of questions, by digest
}

type taleScope struct {
	steps   map[string]*taleStep
	numbers []*taleAmend
}

type taleStep struct {
	ID        string          `json:"id"`
	Tool      string          `json:"tool"`
	Value     json.RawMessage `json:"value"`
	Arguments struct {
		N  json.RawMessage `json:"n"`
		Of []string        `json:"of"`
	} `json:"arguments"`
	Approval json.RawMessage `json:"approval"`
	Plan     *talePlan       `json:"plan"`
	Asks     bool            `json:"-"` // a person approves of it

	added, discarded *taleAmend
	waited           bool        // where it was discarded
	before           []*taleStep // what it was before it was written again
}

type talePlan struct {
	Steps []json.RawMessage `json:"steps"`
}

// What became of an amendment: the code that who asks for it is told.
const (
	becameInForce  = ""
	becameStale    = "overtaken"
	becameRejected = "rejected"
	becameNothing  = "waits" // the run was over before anybody answered
)

type taleAmend struct {
	wire.Amend
	scope            string
	number, expected int
	became           string
	inForceAt        time.Time
	answer           *taleAnswer
}

type taleAnswer struct {
	wire.Answer
	at       time.Time
	question journal.Event
}

// tell reads the records of the run.
func (r *Run) tell() (*tale, error) {
	t := &tale{of: r, scopes: map[string]*taleScope{}, answers: map[string]*taleAnswer{}, decided: map[string]bool{}, succeeded: map[string]time.Time{}, values: map[string]int{},
		shown: map[string]journal.Event{}}
	for _, e := range r.Clients {
		if e.Kind == journal.Question {
			t.shown[e.Digest] = e
		}
	}
	var root talePlan
	if err := json.Unmarshal(r.Plan.Body, &root); err != nil {
		return nil, err
	}
	if err := t.scope(subjects.RootScope, root); err != nil {
		return nil, err
	}
	for id, s := range t.scopes[subjects.RootScope].steps {
		if s.Plan != nil {
			if err := t.scope(id, *s.Plan); err != nil {
				return nil, err
			}
		}
	}
	for _, x := range r.Story {
		if err := t.record(x); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *tale) scope(token string, p talePlan) error {
	x := &taleScope{steps: map[string]*taleStep{}}
	t.scopes[token] = x
	for _, raw := range p.Steps {
		s, err := readTaleStep(raw)
		if err != nil {
			return err
		}
		x.steps[s.ID] = s
	}
	return nil
}

func readTaleStep(raw json.RawMessage) (*taleStep, error) {
	s := &taleStep{}
	err := json.Unmarshal(raw, s)
	s.Asks = s.Approval != nil
	return s, err
}

// record goes on by one record.
func (t *tale) record(x Record) error {
	switch {
	case x.Kind == subjects.AnswerKind:
		return t.answered(x)
	case x.Kind == subjects.AmendKind:
		return t.amended(x)
	case x.Kind != subjects.StepKind:
		return nil
	}
	token := x.Attempt.Step
	t.decided[token] = true
	res := wire.ParseResult(x.Header, x.Data)
	if res.Error != nil {
		return nil
	}
	var v struct{ V int }
	if err := json.Unmarshal(res.Body, &v); err != nil {
		return fmt.Errorf("what %s returned: %w", token, err)
	}
	t.succeeded[token], t.values[token] = x.Time, v.V
	return nil
}

// amended notes an amendment, which is in force here unless somebody has to approve of it.
func (t *tale) amended(x Record) error {
	scope := t.scopes[x.Step]
	if scope == nil {
		return fmt.Errorf("an amendment of %s, which has no plan", x.Step)
	}
	a := &taleAmend{Amend: wire.ParseAmend(x.Data), scope: x.Step, number: x.Number, expected: len(scope.numbers) + 1, became: becameNothing}
	t.amends, scope.numbers = append(t.amends, a), append(scope.numbers, a)
	if t.of.Plan.Approved && !a.Approved {
		_, err := t.adds(a) // what can't be made here nobody is asked about
		return err
	}
	return t.counts(a, x.Time)
}

// answered notes an answer to a question that a client saw: what else there is counts for nothing.
func (t *tale) answered(x Record) error {
	a := &taleAnswer{Answer: wire.ParseAnswer(x.Data), at: x.Time}
	q, ok := t.shown[a.Digest]
	if !ok || q.Step != x.Step {
		return nil
	}
	a.question = q
	switch {
	case q.Revision > 0:
		amend := t.amend(q.Step, q.Revision)
		if amend == nil || amend.answer != nil {
			return nil
		}
		amend.answer = a
		if a.Decision != wire.Approve {
			amend.became = becameRejected
			return nil
		}
		return t.counts(amend, x.Time)
	case q.Step == subjects.RootScope:
		if t.approval == nil {
			t.approval = a
		}
	case t.answers[q.Step] == nil:
		t.answers[q.Step] = a
		if a.Value == nil {
			return nil
		}
		var v struct{ V int }
		if q.Step == liveGate {
			_ = json.Unmarshal(a.Value, &v.V) // else it is void
		} else {
			_ = json.Unmarshal(a.Value, &v)
		}
		t.succeeded[q.Step], t.values[q.Step] = x.Time, v.V
	}
	return nil
}

// adds returns what an amendment adds at this place, and takes it for stale where it can't.
func (t *tale) adds(a *taleAmend) (added []*taleStep, err error) {
	scope := t.scopes[a.scope]
	for _, raw := range a.Add {
		s, err := readTaleStep(raw)
		if err != nil {
			return nil, err
		}
		s.added = a
		old := scope.steps[s.ID]
		if old != nil && !(a.discards(s.ID) && old.discarded == nil && t.waits(a.scope, old)) {
			a.became = becameStale
			return nil, nil
		}
		if old != nil {
			s.before = slices.Concat(old.before, []*taleStep{old})
		}
		added = append(added, s)
	}
	return added, nil
}

// counts lets an amendment do what it says at this place, or nothing.
func (t *tale) counts(a *taleAmend, at time.Time) error {
	if a.became == becameStale {
		return nil
	}
	scope := t.scopes[a.scope]
	added, err := t.adds(a)
	if err != nil || a.became == becameStale {
		return err
	}
	a.became, a.inForceAt = becameInForce, at
	for _, id := range a.Discard.Steps {
		if s := scope.steps[id]; s != nil && s.discarded == nil {
			s.discarded, s.waited = a, t.waits(a.scope, s)
		}
	}
	for _, s := range added {
		scope.steps[s.ID] = s
	}
	return nil
}

func (a *taleAmend) discards(id string) bool {
	for _, d := range a.Discard.Steps {
		if d == id {
			return true
		}
	}
	return false
}

// waits reports whether something that a step refers to has not succeeded yet. Of what is discarded or written again in
// living runs nothing fails that it refers to.
func (t *tale) waits(scope string, s *taleStep) bool {
	for _, ref := range s.Arguments.Of {
		if token, is := t.referred(scope, ref); is {
			if _, ok := t.succeeded[token]; !ok {
				return true
			}
		}
	}
	return false
}

// referred returns the call that a reference is to.
func (t *tale) referred(scope, ref string) (token string, is bool) {
	rest, is := strings.CutPrefix(ref, "$ref:")
	return t.token(scope, strings.TrimSuffix(rest, ".v")), is
}

func (t *tale) token(scope, id string) string {
	if scope == subjects.RootScope {
		return id
	}
	return scope + "/" + id
}

func (t *tale) amend(scope string, number int) *taleAmend {
	if x := t.scopes[scope]; x != nil && number >= 1 && number <= len(x.numbers) {
		return x.numbers[number-1]
	}
	return nil
}

// iterationOf splits the token of a call within a loop.
func iterationOf(token string) (loop string, number int, within string, ok bool) {
	loop, rest, ok := strings.Cut(token, "/=")
	count, within, _ := strings.Cut(rest, "/")
	number, err := strconv.Atoi(count)
	return loop, number, within, ok && err == nil
}

// stepOf returns what a call is of, and its scope: of a loop, the loop's own plan.
func (t *tale) stepOf(token string) (s *taleStep, scope string) {
	if loop, _, within, ok := iterationOf(token); ok {
		if within == "" {
			return t.scopes[subjects.RootScope].steps[loop], subjects.RootScope
		}
		if x := t.scopes[loop]; x != nil {
			return x.steps[within], token[:strings.LastIndexByte(token, '/')]
		}
		return nil, ""
	}
	if scope, id, ok := strings.Cut(token, "/"); ok {
		if x := t.scopes[scope]; x != nil {
			return x.steps[id], scope
		}
		return nil, ""
	}
	return t.scopes[subjects.RootScope].steps[token], subjects.RootScope
}

// arguments are those of a call, as far as what it refers to has succeeded; known says whether it has.
func (t *tale) arguments(scope string, s *taleStep, token string) (args json.RawMessage, known bool) {
	if a := t.answers[token]; a != nil && a.Arguments != nil {
		return a.Arguments, true
	}
	_, number, _, _ := iterationOf(token)
	n := string(s.Arguments.N)
	if n == `"$index"` {
		n = strconv.Itoa(number)
	}
	of := []int{}
	for _, ref := range s.Arguments.Of {
		v, ok := t.value(scope, ref, number)
		if !ok {
			return nil, false
		}
		of = append(of, v)
	}
	list, _ := json.Marshal(of)
	return fmt.Appendf(nil, `{"n":%s,"of":%s}`, n, list), true
}

// value is what a reference stands for.
func (t *tale) value(scope, ref string, number int) (v int, ok bool) {
	switch ref {
	case "$input.i":
		return number, true
	case "$input.v":
		v, ok = t.values[liveFirst]
		return v, ok
	}
	token, is := t.referred(scope, ref)
	v, ok = t.values[token]
	return v, is && ok
}

// needs is when the last that a call refers to had succeeded.
func (t *tale) needs(scope string, s *taleStep) (at time.Time) {
	for _, ref := range s.Arguments.Of {
		if token, is := t.referred(scope, ref); is && t.succeeded[token].After(at) {
			at = t.succeeded[token]
		}
	}
	return at
}
