package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// isError is the error of a step whose tool reports one. It may have done part of its work, and says so to a model
// rather than to a program; so it is tried again only where the file names such errors. Where it had asked something
// first, that is most likely why. One that is an error with the code replan asks for a new plan.
func (t *bridged) isError(r content.Result, asked []content.Question) error {
	said := r.Message
	if said == "" {
		said = string(r.Body)
	}
	for _, body := range [...][]byte{r.Body, []byte(r.Message)} {
		if f := wire.AsksToReplan(body); f != nil {
			f.Message, f.Hint = servers.Clean(f.Message), servers.Clean(f.Hint)
			return f
		}
	}
	f := fault.New(fault.ToolFailed, "%s", text.Clip(servers.Clean(said), 16<<10))
	f.Retryable = t.up.entry.RetryErrors != nil && t.up.entry.RetryErrors.MatchString(said)
	if len(asked) > 0 && !f.Retryable {
		return refused(t.def, t.name, asked, f.Message)
	}
	return f
}

// failed is the error of a step whose call brought no result.
func (t *bridged) failed(ctx context.Context, s *session.Session, f *session.Failure) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	server := t.up.entry.Name
	var answer *jsonrpc.Error
	var ours *fault.Error
	switch {
	case f.Huge:
		return fault.New(fault.TooLarge, "the MCP server %s sent a message over 16 MiB, which ended its connection", server).
			WithHint("ask the tool for less; calls beside this one end with the connection too")
	case f.Status != 0:
		return t.unseen(f.Sent && f.Status >= 500,
			session.StatusFault(server, f.Status, f.After, text.Clip(servers.Clean(f.Error()), 2<<10)))
	case errors.As(f.Err, &answer):
		return t.answered(answer, f.Asked)
	case errors.As(f.Err, &ours):
		return ours
	}
	return t.unseen(f.Sent, fault.New(fault.ToolFailed, "the connection to the MCP server %s ended during the call: %s",
		server, s.Why(ctx, f.Err)))
}

// answered is the error of a call that the server answered with an error of the protocol, after it had asked some
// questions in vain.
func (t *bridged) answered(e *jsonrpc.Error, asked []content.Question) error {
	f := fault.New(fault.ToolFailed, "the MCP server %s answered with the error %d: %s", t.up.entry.Name, e.Code,
		text.Clip(servers.Clean(e.Message), 4<<10))
	if final(e) {
		f.Code, f.Retryable = fault.ToolTerminal, false
	}
	if e.Code == mcp.CodeMissingRequiredClientCapabilities {
		f.Hint = "the tool would ask its caller something: " + askHint(t.def, t.name, nil)
	}
	if len(asked) > 0 && !t.once {
		f = refused(t.def, t.name, asked, f.Message)
	}
	f.Details = rpcDetails(e)
	if f.Code == fault.ToolTerminal {
		return f
	}
	return t.unseen(true, f)
}

// final reports whether an error of the protocol will be the same again: −32600 to −32602, and the lack of something
// that the bridge doesn't offer.
func final(e *jsonrpc.Error) bool {
	return e.Code <= jsonrpc.CodeInvalidRequest && e.Code >= jsonrpc.CodeInvalidParams ||
		e.Code == mcp.CodeMissingRequiredClientCapabilities
}

func rpcDetails(e *jsonrpc.Error) json.RawMessage {
	raw, err := jsontape.Marshal(map[string]any{"jsonrpc": e})
	if err != nil || len(raw) > 4<<10 { // data of a server may be anything
		raw, _ = jsontape.Marshal(map[string]any{"jsonrpc": map[string]any{"code": e.Code}})
	}
	return raw
}

// unseen is an error after which nobody knows what the tool has done: of a tool that must not be called twice it is
// outcome_unknown.
func (t *bridged) unseen(sent bool, f *fault.Error) error {
	if !sent || !t.once || f.Code != fault.ToolFailed {
		return f
	}
	g := *f
	g.Code, g.Retryable, g.RetryAfter = fault.OutcomeUnknown, false, 0
	g.Hint = "the tool may have been called: look at what it changes before it is called again"
	return &g
}

// A tool that asks its caller something where nobody can be asked (inquiry.go) ends its step: the error says what is asked,
// and the hint how a plan answers it before.

// asks is the error of a tool that asks; remote is the name that its server has for it.
func asks(d *tool.Definition, remote string, questions []content.Question) *fault.Error {
	var said []string
	for _, q := range questions {
		switch {
		case q.Message != "":
			said = append(said, q.Message)
		case q.Method != "":
			said = append(said, q.Method)
		}
	}
	if len(said) == 0 {
		said = []string{"something"}
	}
	return fault.New(fault.ToolTerminal, "the tool %s asks before it goes on, which a step can't answer: %s", d.Name,
		text.Clip(servers.Clean(strings.Join(said, "; ")), 2<<10)).
		WithHint("%s", askHint(d, remote, questions))
}

// refused is asks for a tool that asked in the middle of its call, was told that nobody answers, and then failed.
func refused(d *tool.Definition, remote string, questions []content.Question, then string) *fault.Error {
	f := asks(d, remote, questions)
	f.Message += "; without an answer it said: " + text.Clip(then, 2<<10)
	return f
}

// inArguments is what to do where more than that is not to be known.
const inArguments = "hand over in the arguments what it asks for, put a step with the tool ask before it"

// mostAsked is how much of a server's own words a hint repeats, in bytes.
const mostAsked = 1 << 10

// askHint says what to do about a tool that asks. It goes by the first question: the others come after that.
func askHint(d *tool.Definition, remote string, questions []content.Question) string {
	exclude := fmt.Sprintf(`leave the tool out: "x-stepjet": {"exclude": %q}`, remote)
	if len(questions) == 0 {
		return inArguments + ", or " + exclude
	}
	q := questions[0]
	switch {
	case q.Method == content.Sample:
		return "it wants a language model's answer, which the bridge never gives; " + exclude
	case q.URL != "":
		return "it wants a person to open " + text.Clip(servers.Clean(q.URL), mostAsked) +
			", and may go on once that is done: stepjet retry RUN; or " + exclude
	case q.Method != content.Elicit:
		return "the bridge offers nothing of that kind; " + exclude
	}
	return formHint(d, q) + "; or " + exclude
}

// formHint says how a plan asks a person for what a form would: by a step of its own, whose answer goes into the
// arguments.
func formHint(d *tool.Definition, q content.Question) string {
	strange := func(name string) bool { return !subjects.ValidTenant(name) } // a reference would need quotes
	fields := slices.DeleteFunc(q.Fields(), strange)
	takes := content.Properties(d.InputSchema)
	both := slices.DeleteFunc(slices.Clone(fields), func(name string) bool { return !slices.Contains(takes, name) })
	switch {
	case len(fields) == 0 || len(takes) == 0: // what fits what is not to be known
		return inArguments
	case len(both) == 0:
		return "it has no argument for " + text.Clip(strings.Join(fields, ", "), mostAsked) +
			": look in its description for one that stands for that"
	}
	arguments := map[string]any{"question": text.Clip(servers.Clean(q.Message), mostAsked)}
	if len(q.Schema) <= mostAsked {
		arguments["schema"] = q.Schema
	}
	step, err := jsontape.Marshal(map[string]any{"id": "asked", "tool": "ask", "arguments": arguments})
	if err != nil { // a schema of the server may be anything
		step = []byte(`{"id": "asked", "tool": "ask", "arguments": {"question": "…"}}`)
	}
	refs := make([]string, len(both))
	for i, name := range both {
		refs[i] = fmt.Sprintf(`%q: "$ref:asked.%s"`, name, name)
	}
	return "ask before it, " + servers.Clean(string(step)) + ", and hand over " +
		text.Clip(strings.Join(refs, ", "), mostAsked)
}
