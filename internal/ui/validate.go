package ui

import (
	"net/http"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
)

// tried is what a plan would come to, with where in its text that stands which is wrong.
type tried struct {
	*outcome.DryRun
	// ProblemPlaces and WarningPlaces are those of Problems and Warnings, one of each: the first of several.
	ProblemPlaces []plan.Place `json:"problem_places"`
	WarningPlaces []plan.Place `json:"warning_places"`
}

// validate says what a plan would come to.
func (a acting) validate(w http.ResponseWriter, r *http.Request) (any, error) {
	of, body, err := posted(w, r)
	if err != nil {
		return nil, err
	}
	c, err := a.docs.client(r.Context(), of)
	if err != nil {
		return nil, err
	}
	d, err := c.DryRun(r.Context(), body)
	if err != nil {
		return nil, err
	}
	return tried{d, places(body, d.Problems), places(body, d.Warnings)}, nil
}

func places(text []byte, of []fault.Problem) []plan.Place {
	pointers := make([]string, len(of))
	for i := range of {
		pointers[i] = of[i].Path
	}
	return plan.Locate(text, pointers...)
}

// text returns the plan of a run as it was submitted, whole: to be changed, and run again.
func (l looking) text(_ http.ResponseWriter, r *http.Request) (any, error) {
	run, doc, err := l.of(r)
	if err != nil {
		return nil, err
	}
	if len(doc.Plan) == 0 {
		return nil, fault.New(fault.NotFound, "the plan of run %q is not kept", run.Plain())
	}
	return value{Text: string(doc.Plan), Bytes: int64(len(doc.Plan))}, nil
}
