package ui

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// mostQuestions is how many questions a page is told of, those that were asked first.
const mostQuestions = 500

// questions lists what runs wait for people to say: of the caller's tenants, of the one that the query names, or of a
// run.
func (l looking) questions(_ http.ResponseWriter, r *http.Request) (any, error) {
	of := subjects.Run{}
	switch v := r.URL.Query(); {
	case v.Get("run") != "":
		run, err := named(r, v.Get("run"))
		if err != nil {
			return nil, err
		}
		of = run
	case v.Get("tenant") != "":
		tenant, err := tenant(r)
		if err != nil {
			return nil, err
		}
		of.Tenant = tenant
	}
	all, err := l.asked.list(r.Context())
	if err != nil {
		return nil, err
	}
	out := []asking{}
	for _, q := range all {
		if principal(r).sees(q.Tenant) && (of.Tenant == "" || q.Tenant == of.Tenant) && (of.ID == "" || q.Key == of.Key()) {
			out = append(out, q)
		}
	}
	more := len(out) > mostQuestions
	return map[string]any{"questions": out[:min(len(out), mostQuestions)], "more": more, "now": time.Now().UTC()}, nil
}

// shown is a question with what it shows.
type shown struct {
	asking
	Schema json.RawMessage `json:"schema,omitempty"`
	// Choices are JSON as text, each: what is chosen is sent back as it stands.
	Choices   []string `json:"choices,omitempty"`
	Arguments *value   `json:"arguments,omitempty"`
	Change    *value   `json:"change,omitempty"`
	Plan      *value   `json:"plan,omitempty"` // of a round
}

func (l looking) question(_ http.ResponseWriter, r *http.Request) (any, error) {
	run, err := named(r, r.PathValue("key"))
	if err != nil {
		return nil, err
	}
	c, err := l.docs.client(r.Context(), run.Tenant)
	if err != nil {
		return nil, err
	}
	q, err := c.Question(r.Context(), run.Plain(), r.PathValue("step"))
	if err != nil {
		return nil, err
	}
	x := shown{asking: askingOf(q), Schema: q.Schema, Arguments: valueOf(q.Arguments), Change: valueOf(q.Change), Plan: valueOf(q.Plan)}
	var choices []json.RawMessage
	_ = json.Unmarshal(q.Choices, &choices) // an orchestrator wrote them as a list; without, any value is typed
	for _, c := range choices {
		x.Choices = append(x.Choices, string(c))
	}
	return x, nil
}

// said is what a caller says to a question. Values are JSON as text, so that no number changes on the way.
type said struct {
	Step       string  `json:"step"`
	Generation uint64  `json:"generation"`
	Revision   int     `json:"revision"`
	Digest     string  `json:"digest"`
	Reject     bool    `json:"reject"`
	Arguments  *string `json:"arguments"`
	Value      *string `json:"value"`
	Reason     string  `json:"reason"`
}

// approve gives or refuses an approval, of a step, of a plan, of an amendment or of a round.
func (a acting) approve(w http.ResponseWriter, r *http.Request) (any, error) {
	return a.say(w, r, outcome.Approval, a.docs.approver)
}

// answer gives a step that asks its value, or refuses to.
func (a acting) answer(w http.ResponseWriter, r *http.Request) (any, error) {
	return a.say(w, r, outcome.Ask, a.docs.actor)
}

func (a acting) say(
	w http.ResponseWriter, r *http.Request, kind outcome.QuestionKind,
	as func(context.Context, string) (*client.Client, error),
) (any, error) {
	var in said
	if err := readJSON(w, r, &in); err != nil {
		return nil, err
	}
	run, err := named(r, r.PathValue("key"))
	if err != nil {
		return nil, err
	}
	answer := client.Answer{Reason: in.Reason, By: principal(r).Name}
	switch {
	case in.Digest == "":
		return nil, fault.New(fault.InvalidValue, "the digest of the question is missing").
			WithHint("it stands in the question: an answer counts for what was looked at, and nothing else")
	case in.Arguments != nil && !json.Valid([]byte(*in.Arguments)):
		return nil, fault.New(fault.InvalidArguments, "the arguments are no JSON")
	case kind == outcome.Ask && in.Value == nil && !in.Reject:
		return nil, fault.New(fault.InvalidValue, "there is no value").WithHint(`"value": "\"tuesday\"", or "reject": true`)
	}
	if in.Arguments != nil {
		answer.Arguments = json.RawMessage(*in.Arguments)
	}
	c, err := as(r.Context(), run.Tenant)
	if err != nil {
		return nil, err
	}
	q := &outcome.Question{
		Run: run.Plain(), Tenant: run.Tenant, Generation: in.Generation, Step: in.Step, Revision: in.Revision, Kind: kind,
		Digest: in.Digest,
	}
	var stands *client.Answered
	switch {
	case in.Reject:
		stands, err = c.Reject(r.Context(), q, answer)
	case in.Value != nil:
		stands, err = c.Answer(r.Context(), q, json.RawMessage(*in.Value), answer)
	default:
		stands, err = c.Approve(r.Context(), q, answer)
	}
	a.asked.forget()
	a.docs.forget(run.Key())
	if err != nil {
		return nil, err
	}
	return map[string]any{"decision": stands.Decision, "by": stands.By, "verified": stands.Verified, "at": stands.At.UTC(), "already": stands.Already}, nil
}
