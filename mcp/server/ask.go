package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/mcp/task"
	"github.com/stepjet/stepjet/outcome"
)

// keyOf names a question among all of its run, for good: the step's token, and the number of its question.
func keyOf(q *outcome.Question) string { return q.Step + "#" + strconv.Itoa(q.Number) }

// asked returns what a run asks that a caller may answer, with the arguments.
func (r *runs) asked(ctx context.Context, who Principal, run string) (some []*outcome.Question, err error) {
	all, err := r.client.Questions(ctx, run)
	if err != nil {
		return nil, err
	}
	for _, q := range all {
		if !who.May(scopeOf(q)) {
			continue
		}
		if q.Blob != nil {
			if q, err = r.client.Question(ctx, run, q.Step); fault.CodeOf(err) == fault.NotFound {
				continue // it was answered a moment ago
			} else if err != nil {
				return nil, err
			}
		}
		some = append(some, q)
	}
	return some, nil
}

// scopeOf is what it takes to answer a question.
func scopeOf(q *outcome.Question) string {
	if q.Kind == outcome.Ask {
		return ScopeRun
	}
	return ScopeDecide
}

// waitingFor says what a run waits for, and who can answer.
func waitingFor(all []*outcome.Question) []any {
	var said []any
	for _, q := range all {
		who := "whoever may answer for the tenant: stepjet questions answer"
		if q.Kind == outcome.Approval {
			who = "an approver: stepjet approve " + q.Run + " " + q.Step
		}
		said = append(said, map[string]any{"step": q.Step, "tool": q.Tool, "question": task.FormOf(q).Message, "who": who})
	}
	return said
}

// request is a question as a client is asked to put it to its user, with why the answer before was refused; nil: there
// was none.
func request(q *outcome.Question, why error) *mcp.ElicitParams {
	f := task.FormOf(q)
	if why != nil {
		f.Message = "Not taken: " + reason(why) + "\n\n" + f.Message
	}
	return &mcp.ElicitParams{Mode: "form", Message: f.Message, RequestedSchema: f.Schema}
}

// mostReason bounds what a person is told of why an answer was refused, in bytes.
const mostReason = 512

// reason says why an answer was refused. It may quote the answer, so it is made fit to be shown.
func reason(err error) string { return text.OneLine(text.Clip(fault.As(err).Message, mostReason)) }

// refused reports whether an answer was none that its question takes, so that the person may mend it.
func refused(err error) bool {
	switch fault.CodeOf(err) {
	case fault.InvalidValue, fault.InvalidArguments, fault.TooLarge:
		return true
	}
	return false
}

// requests are questions as a client is asked to put them to its user, by their keys, and why their answers were refused.
func requests(asked []*outcome.Question, why map[string]error) mcp.InputRequestMap {
	all := mcp.InputRequestMap{}
	for _, q := range asked {
		all[keyOf(q)] = request(q, why[keyOf(q)])
	}
	return all
}

// filled is a form that a client's user filled in.
type filled struct {
	action  string
	content json.RawMessage
}

// readFilled reads the answer to an elicitation as it came.
func readFilled(raw json.RawMessage) (filled, error) {
	var said struct {
		Action  string          `json:"action"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return filled{}, fault.New(fault.InvalidValue, "inputResponses: what was asked is an elicitation").
			WithHint(`{"action": "accept", "content": {…}}`)
	}
	return filled{said.Action, said.Content}, nil
}

// elicited reads the answer to an elicitation, as the SDK has it.
func elicited(response mcp.InputResponse) (filled, error) {
	said, ok := response.(*mcp.ElicitResult)
	if !ok {
		return filled{}, invalidParams("inputResponses: what was asked is an elicitation")
	}
	return filledBy(said)
}

// filledBy is the form of an elicitation that was answered.
func filledBy(said *mcp.ElicitResult) (filled, error) {
	content, err := json.Marshal(said.Content)
	if err != nil {
		return filled{}, fault.Wrap(fault.Internal, err, "reading an answer")
	}
	return filled{said.Action, content}, nil
}

// answer takes the answer to a question that a caller names by its key. One that is not asked, or not any more, counts
// for nothing, and so does one that this caller may not answer.
func (r *runs) answer(ctx context.Context, who Principal, run, key string, read func() (filled, error)) error {
	asked, err := r.asked(ctx, who, run)
	if err != nil {
		return err
	}
	for _, q := range asked {
		if keyOf(q) == key {
			f, err := read()
			if err == nil {
				err = r.reply(ctx, who, q, f)
			}
			return err
		}
	}
	return nil
}

// reply says to a question what a client's user made of its form. Where somebody else was faster it counts for nothing.
func (r *runs) reply(ctx context.Context, who Principal, q *outcome.Question, f filled) error {
	if string(f.content) == "null" {
		f.content = nil
	}
	said, err := task.Read(q, f.action, f.content)
	if err != nil {
		return err
	}
	by := r.client
	if q.Kind == outcome.Approval {
		by = r.approver
	}
	a := client.Answer{Arguments: said.Arguments, Reason: said.Reason, By: who.by()}
	switch said.Verdict {
	case task.Approve:
		_, err = by.Approve(ctx, q, a)
	case task.Reject:
		_, err = by.Reject(ctx, q, a)
	case task.Answer:
		_, err = r.client.Answer(ctx, q, said.Value, a)
	case task.Open:
	}
	switch fault.CodeOf(err) {
	case "", fault.Conflict, fault.AlreadyFinished, fault.NotFound:
		return nil
	}
	return fmt.Errorf("answering %s: %w", q.Step, err)
}
