package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/mcp/content"
	"github.com/stepjet/stepjet/mcp/servers"
	"github.com/stepjet/stepjet/mcp/session"
	"github.com/stepjet/stepjet/mcp/task"
	"github.com/stepjet/stepjet/worker"
)

// A server of 2026-07-28 may answer a call with questions to its caller's user, or have its task wait for them. Then the
// attempt ends with a question of the step (docs/adr/0032), whose state says how to go on: by the call again, with what
// the server wants to be told, or by an update of the task. Older servers ask within an open call, which no other worker
// can go on with: to them no elicitation is declared.

// inquiry is what the next attempt has to find again of what a server asks.
type inquiry struct {
	// Keys are the server's names of its questions.
	Keys []string `json:"keys"`
	// Request is its requestState; nil for none.
	Request *string `json:"request,omitempty"`
	// Task is the one that waits; empty where the call is made again.
	Task string `json:"task,omitempty"`
	// Answers are those to the Keys.
	Answers mcp.InputResponseMap `json:"-"`
}

// answered returns what the server of a call is to be told that it has asked in an earlier attempt; nil for nothing.
func answered(ctx context.Context) (*inquiry, error) {
	r, ok := worker.Answered(ctx)
	if !ok {
		return nil, nil
	}
	var q inquiry
	if err := json.Unmarshal(r.State, &q); err != nil || len(q.Keys) == 0 {
		return nil, fault.New(fault.Internal, "what the tool has asked is not what this bridge asks: its state is %s",
			text.Clip(string(r.State), 200))
	}
	answers := map[string]json.RawMessage{q.Keys[0]: r.Answer}
	if len(q.Keys) > 1 {
		answers = nil
		if err := json.Unmarshal(r.Answer, &answers); err != nil {
			return nil, fault.New(fault.Internal, "the answers to several questions are no object: %v", err)
		}
	}
	q.Answers = mcp.InputResponseMap{}
	for _, key := range q.Keys {
		said := &mcp.ElicitResult{Action: "accept"}
		d := json.NewDecoder(bytes.NewReader(answers[key]))
		d.UseNumber()                                   // which go on with all their digits
		if err := d.Decode(&said.Content); err != nil { // of a form without fields anything is an answer
			said.Content = map[string]any{}
		}
		q.Answers[key] = said
	}
	return &q, nil
}

// declare says in a request that its caller's user can be asked by forms: to servers that are told with each request, in
// a step that may ask.
func declare(ctx context.Context, l *line, p *mcp.CallToolParams) {
	if !l.Modern || worker.MayAsk(ctx) == 0 {
		return
	}
	p.Meta[mcp.MetaKeyClientCapabilities] = map[string]any{
		"elicitation": map[string]any{"form": map[string]any{}}, "extensions": map[string]any{task.Extension: map[string]any{}},
	}
}

// ask returns what ends the attempt of a step whose server asks: a question to a person, where that can be, else the
// error that says what could be done before.
func (t *bridged) ask(ctx context.Context, raw json.RawMessage, of string) error {
	asked := content.Asked(raw)
	notForm := func(q content.Question) bool { return !q.Form() }
	if worker.MayAsk(ctx) == 0 || len(asked) == 0 || slices.ContainsFunc(asked, notForm) {
		return asks(t.def, t.name, asked)
	}
	q := inquiry{Task: of}
	var a struct {
		State *string `json:"requestState"`
	}
	_ = json.Unmarshal(raw, &a) // asked has read it already
	if of == "" {
		q.Request = a.State
	}
	var said []string
	for i := range asked {
		q.Keys = append(q.Keys, asked[i].Key)
		said = append(said, servers.Clean(asked[i].Message))
	}
	state, err := jsontape.Marshal(q)
	if err != nil {
		return err
	}
	question := worker.Question{Text: text.Clip(strings.Join(said, "\n"), mostText), Schema: asked[0].Schema, State: state}
	if question.Text == "" {
		question.Text = "The tool " + t.def.Name + " asks."
	}
	if len(asked) > 1 {
		question.Schema = together(asked)
	}
	return worker.Ask(ctx, question)
}

// mostText is the longest text of a question, in bytes.
const mostText = 16_000

// together returns the schema of the answers to several questions, by their keys.
func together(asked []content.Question) json.RawMessage {
	properties, keys := map[string]any{}, make([]string, len(asked))
	for i, q := range asked {
		if keys[i] = q.Key; len(q.Schema) > 0 {
			properties[q.Key] = q.Schema
		} else {
			properties[q.Key] = map[string]any{}
		}
	}
	raw, err := jsontape.Marshal(map[string]any{"type": "object", "properties": properties, "required": keys})
	if err != nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	return raw
}

// resume goes on with a task that has asked. It reports whether it did; else the server knows nothing of the task any
// more, and the call is to be made anew.
func (t *bridged) resume(ctx context.Context, l *line, q *inquiry) (out worker.Output, over bool, err error) {
	err = l.UpdateTask(ctx, q.Task, q.Answers)
	switch {
	case err == nil:
		out, err = t.follow(ctx, l, q.Task, q)
		return out, true, err
	case forgotten(err) && !t.once:
		return worker.Output{}, false, nil
	}
	return worker.Output{}, true, t.broken(ctx, l, err)
}

// forgotten reports whether a server says that what it is told is of nothing that it knows.
func forgotten(err error) bool {
	var f *session.Failure
	var answer *jsonrpc.Error
	return errors.As(err, &f) && f.Status == 0 && errors.As(f.Err, &answer) && answer.Code == jsonrpc.CodeInvalidParams
}

// knows reports whether a task asks nothing but what it is told already.
func (q *inquiry) knows(raw json.RawMessage) bool {
	asked := content.Asked(raw)
	return q != nil && len(asked) > 0 && !slices.ContainsFunc(asked, func(x content.Question) bool { return !slices.Contains(q.Keys, x.Key) })
}
