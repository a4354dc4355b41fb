package server

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/mcp/content"
	"github.com/stepjet/stepjet/outcome"
)

// planOf divides the arguments of execute_tool_plan into the name of the run and the plan.
func planOf(arguments json.RawMessage) (name string, body []byte, err error) {
	if !isObject(arguments) {
		return "", nil, fault.New(fault.InvalidArguments, "a plan is a JSON object").WithHint(`{"steps": [{"id": "a", "tool": "…"}]}`)
	}
	var args struct {
		Run json.RawMessage `json:"run"`
	}
	if err := json.Unmarshal(arguments, &args); err != nil || args.Run == nil {
		return "", arguments, nil // what is wrong with it, its judge says
	}
	if err := json.Unmarshal(args.Run, &name); err != nil {
		return "", nil, fault.New(fault.InvalidValue, `"run" is no text`).WithHint(`"run": "order-42", or leave it out`)
	}
	rest := []byte{'{'}
	jsontape.Members(arguments, func(key, value []byte) bool {
		if jsontape.Unquoted(key) != "run" {
			if len(rest) > 1 {
				rest = append(rest, ',')
			}
			rest = append(append(append(rest, key...), ':'), value...)
		}
		return true
	})
	return name, append(rest, '}'), nil
}

// nameOf returns what the caller calls the run of its call; empty where it does not.
func nameOf(req *mcp.CallToolRequest, name string) (string, error) {
	key, there := req.Params.Meta[content.KeyMeta]
	if !there {
		return name, nil
	}
	text, ok := key.(string)
	if !ok || text == "" || name != "" && name != text {
		return "", invalidParams("_meta " + content.KeyMeta + ": a text, and the same as \"run\" where both are there")
	}
	return text, nil
}

// start submits the plan of a call and waits for what it comes to.
func (c *call) start(ctx context.Context, name string, body []byte) (*mcp.CallToolResult, error) {
	if !c.caller.May(ScopeRun) {
		return nil, noScope(ScopeRun)
	}
	name, err := nameOf(c.req, name)
	if err != nil {
		return nil, err
	}
	if c.req.Params.RequestState != "" {
		return c.goOn(ctx)
	}
	values, err := c.cfg.Context.of(c.req.Params.Meta, c.caller, headerOf(c.req.Extra))
	if err != nil {
		return nil, invalidParams(err.Error())
	}
	if c.run, c.named = namedRun(c.caller, name), name != ""; !c.named {
		id, err := uuid.NewV7() // dated, so that a task knows when it began without asking
		if err != nil {
			return failed(err)
		}
		c.run = id.String()
	}
	within, cancel := context.WithTimeout(ctx, c.cfg.submit)
	defer cancel()
	r, err := c.runs.client.Submit(within, body, client.SubmitOptions{
		Run: c.run, Context: values, Header: traceHeader(c.req.Params.Meta, headerOf(c.req.Extra)),
		Permissions: c.caller.groups(),
	})
	if err != nil {
		if within.Err() != nil { // it may have been accepted all the same
			c.leave()
		}
		if code := fault.CodeOf(err); within.Err() != nil && (code == fault.Timeout || code == fault.Cancelled) { // nothing was said of why
			err = fault.New(fault.NotReady, "the plan was not acknowledged within %v", c.cfg.submit)
		}
		return failed(err)
	}
	return c.await(ctx, r)
}

// goOn takes what the client's user answered and waits on.
func (c *call) goOn(ctx context.Context) (*mcp.CallToolResult, error) {
	state, ok := c.states.Open(c.req.Params.RequestState, c.caller.owner(), time.Now())
	if !ok || state.Arguments != c.digest() || state.Kind != c.kind {
		return nil, invalidParams(unknownHandle)
	}
	c.run, c.named, c.refused = state.Run, state.Named, state.Refused
	why := map[string]error{}
	for key, response := range c.req.Params.InputResponses {
		err := c.runs.answer(ctx, c.caller, c.run, key, func() (filled, error) { return elicited(response) })
		if refused(err) {
			why[key] = err
		} else if err != nil {
			return failed(err)
		}
	}
	if len(why) > 0 {
		if res, err := c.askAgain(ctx, why); res != nil || err != nil {
			return res, err
		}
	}
	r, err := c.runs.client.Attach(c.run)
	if err != nil {
		return failed(err)
	}
	return c.await(ctx, r)
}

// askAgain answers a call with the questions whose answers were refused, by their keys; nil where none of them is asked
// any more.
func (c *call) askAgain(ctx context.Context, why map[string]error) (*mcp.CallToolResult, error) {
	asked, err := c.mine(ctx)
	if err != nil {
		return failed(err)
	}
	asked = slices.DeleteFunc(asked, func(q *outcome.Question) bool { return why[keyOf(q)] == nil })
	if len(asked) == 0 {
		return nil, nil
	}
	if c.refused++; c.refused >= mostAsked {
		return c.stillRunning(ctx, why[keyOf(asked[0])])
	}
	return c.inputRequired(asked, why), nil
}
