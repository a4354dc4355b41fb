package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

func (l looking) run(_ http.ResponseWriter, r *http.Request) (any, error) {
	run, doc, err := l.of(r)
	if err != nil {
		return nil, err
	}
	return sheetOf(run.Key(), doc), nil
}

// of returns the run that a request names, and what is known of it.
func (l looking) of(r *http.Request) (subjects.Run, *outcome.Run, error) {
	run, err := named(r, r.PathValue("key"))
	if err != nil {
		return run, nil, err
	}
	doc, err := l.docs.run(r.Context(), run)
	return run, doc, err
}

// mostText is how much of a value a page is told, in bytes.
const mostText = 64 << 10

// value is JSON as text: a browser's numbers are not those of a tool.
type value struct {
	Text  string `json:"text"`
	Bytes int64  `json:"bytes"`
	Cut   bool   `json:"cut,omitempty"`
}

func valueOf(raw []byte) *value {
	if raw == nil {
		return nil
	}
	v := &value{Bytes: int64(len(raw))}
	if v.Cut = len(raw) > mostText; v.Cut {
		raw = raw[:mostText]
	}
	v.Text = string(raw) // JSON, so that what is cut in the middle of a character is mended by the encoder
	return v
}

// detail is all that a page shows of one step.
type detail struct {
	outcome.Step
	// Arguments and Result take the place of those of the step.
	Arguments *value `json:"arguments,omitempty"`
	Result    *value `json:"result,omitempty"`
	// Again is a plan of one step that makes the same call again; empty where the arguments are not known, or large.
	Again string `json:"again,omitempty"`
	// Rounds are those of an agent, and Whole says what they came to together.
	Rounds []round `json:"rounds,omitempty"`
	Whole  string  `json:"whole,omitempty"`
}

// mostBlob is the largest result that is read to show its beginning.
const mostBlob = 4 << 20

func (l looking) step(_ http.ResponseWriter, r *http.Request) (any, error) {
	run, doc, err := l.of(r)
	if err != nil {
		return nil, err
	}
	token := r.PathValue("step")
	s := find(doc.Steps, token)
	if s == nil {
		return nil, fault.New(fault.NotFound, "run %q has no step %q", run.Plain(), token)
	}
	d := &detail{Step: *s, Arguments: valueOf(s.Arguments), Again: again(s)}
	d.Step.Arguments, d.Step.Result, d.Step.Items, d.Step.Steps = nil, nil, nil, nil
	d.ofRound(doc)
	d.ofAgent(s)
	d.Result, err = l.result(r, run.Tenant, doc, s)
	return d, err
}

// ofRound shows with the planner of a round what its agent was told of for that round, what it told people in it, and why its answer
// was refused.
func (d *detail) ofRound(doc *outcome.Run) {
	round := subjects.ScopeOf(d.ID)
	if !subjects.IsIteration(round) || d.ID != subjects.OwnCall(round, "plan") {
		return
	}
	name := subjects.ScopeOf(round)
	agent := find(doc.Steps, name)
	if agent == nil {
		return
	}
	is := func(n int) bool { return subjects.Iteration(name, n) == round }
	for _, w := range agent.Said {
		if w.Round != nil && is(*w.Round) {
			d.Said = append(d.Said, w)
		}
	}
	for i := range agent.Messages {
		if is(agent.Messages[i].Round) {
			d.Messages = append(d.Messages, agent.Messages[i])
		}
	}
	for _, x := range agent.Refused {
		if is(x.Round) {
			d.Refused = append(d.Refused, x)
		}
	}
}

// result returns the beginning of what a step returned. Of a blob that is large, or no longer kept, it says how large.
func (l looking) result(r *http.Request, tenant string, doc *outcome.Run, s *outcome.Step) (*value, error) {
	if s.Blob != nil && s.Blob.Size > mostBlob && near(doc, s) == nil {
		return &value{Bytes: s.Blob.Size, Cut: true}, nil
	}
	raw, err := l.whole(r.Context(), tenant, doc, s)
	if s.Blob == nil || near(doc, s) != nil {
		return valueOf(raw), err
	}
	if fault.CodeOf(err) == fault.NotFound {
		return &value{Bytes: s.Blob.Size, Cut: true}, nil // it is no longer kept
	}
	if err == nil && s.Text {
		raw, err = json.Marshal(string(raw))
	}
	return valueOf(raw), err
}

// whole returns all that a step returned, as it was recorded: in the step, in the outcome or in a blob, whose text is no
// JSON where the step says so. nil where it returned nothing.
func (l looking) whole(ctx context.Context, tenant string, doc *outcome.Run, s *outcome.Step) ([]byte, error) {
	if raw := near(doc, s); raw != nil || s.Blob == nil {
		return raw, nil
	}
	c, err := l.docs.client(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return c.Blob(ctx, s.Blob)
}

// near returns what a step returned where the document has it; nil where it lies in a blob, or there is nothing.
func near(doc *outcome.Run, s *outcome.Step) []byte {
	if s.Result != nil {
		return s.Result
	}
	if doc.Outcome != nil {
		for _, x := range doc.Outcome.Results {
			if x.Step == s.ID {
				return x.JSON
			}
		}
	}
	return nil
}

func find(steps []outcome.Step, token string) *outcome.Step {
	for i := range steps {
		if steps[i].ID == token {
			return &steps[i]
		}
		for _, below := range [][]outcome.Step{steps[i].Items, steps[i].Steps} {
			if s := find(below, token); s != nil {
				return s
			}
		}
	}
	return nil
}

// again returns a plan of one step that calls a tool with the arguments of a step, in which nothing is read as a
// reference.
func again(s *outcome.Step) string {
	if len(s.Arguments) == 0 || len(s.Arguments) > mostText || s.Tool == "" {
		return ""
	}
	arguments, err := plan.Escape(s.Arguments)
	if err != nil {
		return ""
	}
	tool, _ := json.Marshal(s.Tool) // a string can be written
	return fmt.Sprintf(`{"steps":[{"id":"again","tool":%s,"arguments":%s}]}`, tool, arguments)
}
