package ui

import (
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
)

// mostRows bounds the steps of a run that a page is told of. The plan's own steps, at most 10,000, come first; what
// stands below them (items, steps of sub-plans) as far as there is room.
const mostRows = 20_000

// sheet is a run in columns: of a run of thousands of steps that is a fraction of its document, and what a page draws
// from. Times are milliseconds since the run was submitted, to a tenth; -1 where there is none.
type sheet struct {
	Key        string            `json:"key"`
	Run        string            `json:"run"`
	Tenant     string            `json:"tenant"`
	Status     outcome.RunStatus `json:"status"`
	Generation uint64            `json:"generation"`
	Submitted  time.Time         `json:"submitted"`
	Started    time.Time         `json:"started,omitzero"`
	Finished   time.Time         `json:"finished,omitzero"`
	StoppedBy  string            `json:"stopped_by,omitempty"`
	RetryOf    string            `json:"retry_of,omitempty"`
	RetryFrom  string            `json:"retry_from,omitempty"`
	Stats      outcome.Stats     `json:"stats"`
	Problems   []fault.Problem   `json:"problems,omitempty"`
	Context    []string          `json:"context,omitempty"` // keys that a retry has to be given
	Now        time.Time         `json:"now"`

	Tools    []string `json:"tools"`
	Statuses []string `json:"statuses"`
	Codes    []string `json:"codes"`
	LeftOut  int      `json:"left_out,omitempty"`
	Steps    columns  `json:"steps"`
}

// columns hold the steps, each in the same place of every list.
type columns struct {
	ID       []string  `json:"id"`
	Tool     []int     `json:"tool"`
	Status   []int     `json:"status"`
	Code     []int     `json:"code"` // of the error; -1 for none
	Attempts []int     `json:"attempts"`
	Ready    []float64 `json:"ready"`
	Started  []float64 `json:"started"`
	Ended    []float64 `json:"ended"`
	Decided  []float64 `json:"decided"`
	Bytes    []int64   `json:"bytes"`
	Deps     [][]int   `json:"deps"`
	Parent   []int     `json:"parent"` // -1 for the plan's own
	// Tries are those of steps that had more than one, as [started, ended, started, ended, …]; Waiting what steps wait for.
	Tries   map[int][]float64 `json:"tries,omitempty"`
	Waiting map[int]string    `json:"waiting,omitempty"`
}

// sheetOf puts a document into columns.
func sheetOf(key string, doc *outcome.Run) *sheet {
	s := &sheet{
		Key: key, Run: doc.Run, Tenant: doc.Tenant, Status: doc.Status, Generation: doc.Generation,
		Submitted: doc.Submitted.UTC(), Started: doc.Started, Finished: doc.Finished, StoppedBy: doc.StoppedBy,
		RetryOf: doc.RetryOf, RetryFrom: doc.RetryFrom, Stats: doc.Stats, Now: time.Now().UTC(),
		Tools: []string{}, Statuses: []string{}, Codes: []string{},
	}
	s.Steps = columns{ // a rejected run has no steps, and lists that say so
		ID: []string{}, Tool: []int{}, Status: []int{}, Code: []int{}, Attempts: []int{}, Ready: []float64{},
		Started: []float64{}, Ended: []float64{}, Decided: []float64{}, Bytes: []int64{}, Deps: [][]int{}, Parent: []int{},
	}
	if doc.Outcome != nil {
		s.Problems = doc.Outcome.Problems
	}
	for _, c := range doc.Context {
		s.Context = append(s.Context, c.Key)
	}
	var p *plan.Plan
	if len(doc.Plan) > 0 {
		p = plan.Accepted(doc.Plan, doc.Templates)
	}
	w := sheetWriter{s, map[string]int{}, map[string]int{}, map[string]int{}}
	w.scope(doc.Steps, p, nil, -1)
	return s
}

// sheetWriter adds rows to a sheet.
type sheetWriter struct {
	*sheet
	tools, statuses, codes map[string]int
}

// scope adds steps of one plan, and behind them what stands below each. Of items and iterations, which are no steps of a
// plan, each is what each other is: inner is the plan that they all run.
func (w *sheetWriter) scope(steps []outcome.Step, p, inner *plan.Plan, parent int) {
	base := len(w.Steps.ID)
	if parent >= 0 && base+len(steps) > mostRows {
		w.LeftOut += len(steps)
		return
	}
	if p != nil && len(p.Steps) != len(steps) {
		p = nil // it is not the plan that ran
	}
	for i := range steps {
		deps := []int{}
		if p != nil {
			for _, d := range p.Steps[i].Deps {
				deps = append(deps, base+d)
			}
		}
		w.row(&steps[i], deps, parent)
	}
	for i := range steps {
		if p != nil {
			inner = p.Steps[i].Plan
		}
		w.scope(steps[i].Items, nil, inner, base+i)
		if inner != nil && len(inner.Steps) == 1 && inner.Steps[0].ID == plan.IterationStep {
			w.scope(steps[i].Steps, nil, inner.Steps[0].Plan, base+i)
		} else {
			w.scope(steps[i].Steps, inner, nil, base+i)
		}
	}
}

func (w *sheetWriter) row(s *outcome.Step, deps []int, parent int) {
	c, n := &w.Steps, len(w.Steps.ID)
	code := -1
	if s.Error != nil {
		code = number(w.codes, &w.Codes, string(s.Error.Code))
	}
	c.ID = append(c.ID, s.ID)
	c.Tool = append(c.Tool, number(w.tools, &w.Tools, s.Tool))
	c.Status = append(c.Status, number(w.statuses, &w.Statuses, string(s.Status)))
	c.Code = append(c.Code, code)
	c.Attempts = append(c.Attempts, s.Attempts)
	c.Ready = append(c.Ready, w.since(s.Ready))
	c.Started = append(c.Started, w.since(s.Started))
	c.Ended = append(c.Ended, w.since(s.Ended))
	c.Decided = append(c.Decided, w.since(s.Decided))
	c.Bytes = append(c.Bytes, s.Bytes)
	c.Deps = append(c.Deps, deps)
	c.Parent = append(c.Parent, parent)
	if len(s.Tries) > 1 {
		if c.Tries == nil {
			c.Tries = map[int][]float64{}
		}
		for _, t := range s.Tries {
			c.Tries[n] = append(c.Tries[n], w.since(t.Started), w.since(t.Ended))
		}
	}
	if s.Waiting != "" {
		if c.Waiting == nil {
			c.Waiting = map[int]string{}
		}
		c.Waiting[n] = s.Waiting
	}
}

// number returns the place of a name in a list, which it is added to where it isn't there.
func number(places map[string]int, list *[]string, name string) int {
	at, ok := places[name]
	if !ok {
		at = len(*list)
		places[name] = at
		*list = append(*list, name)
	}
	return at
}

func (w *sheetWriter) since(t time.Time) float64 {
	if t.IsZero() {
		return -1
	}
	return max(0, tenths(float64(t.Sub(w.Submitted).Microseconds())/1000))
}
