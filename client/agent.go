package client

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
)

// AgentStep is the one step of the plans by which AgentOf calls agents.
const AgentStep = "agent"

// Agent is one agent, as a client calls it. It may be used from many goroutines.
type Agent struct {
	client *Client
	name   string
}

// AgentOf returns the agent of a name, which nobody is asked about before it is called.
func AgentOf(c *Client, name string) *Agent { return &Agent{c, name} }

// AgentOutcome is what a call of an agent came to.
type AgentOutcome struct {
	*outcome.Outcome
	// Output is the agent's output as JSON; nil where it has not succeeded.
	Output json.RawMessage
}

// Run calls the agent and waits for its output. input is marshalled as encoding/json does, to an object; nil is the
// empty one. A call under a run id that is there (SubmitOptions.Run) with the same input comes to what that came to: no
// planner is asked twice. An agent that does not succeed is an error with its code, such as budget_exceeded or
// rounds_exhausted, and the outcome beside it; a rejected call is the first of its problems. Other errors are those of
// Submit and of Wait, without an outcome.
func (a *Agent) Run(ctx context.Context, input any, o SubmitOptions) (*AgentOutcome, error) {
	r, err := a.Submit(ctx, input, o)
	if err != nil {
		return nil, err
	}
	out, err := r.Wait(ctx)
	if err != nil {
		return nil, err
	}
	came := &AgentOutcome{Outcome: out}
	if out.Status == outcome.Succeeded {
		came.Output, _ = out.Results.Get(AgentStep)
		return came, nil
	}
	return came, a.failed(out)
}

// Submit calls the agent and does not wait: its run has one step, AgentStep, whose rounds Get and NewWatcher show. What
// is said of Client.Submit holds; InvalidArguments for an input that is no object.
func (a *Agent) Submit(ctx context.Context, input any, o SubmitOptions) (*Run, error) {
	if input == nil {
		input = struct{}{}
	}
	raw, err := json.Marshal(input)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidArguments, err, "the input of the agent "+a.name)
	}
	body, err := AgentPlan(a.name, raw)
	if err != nil {
		return nil, err
	}
	return a.client.Submit(ctx, body, o)
}

// AgentPlan returns the plan of one call of an agent, which gets the input as it is: the same bytes for the same input. Errors: InvalidArguments where
// the input is no JSON object.
func AgentPlan(name string, input []byte) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(input, &members); err != nil || members == nil {
		return nil, fault.New(fault.InvalidArguments, "the input of an agent is a JSON object, and this is %s", text.Clip(string(input), 80)).
			WithHint(`give it a struct, a map, or {"topic": "tides"}`)
	}
	called, err := json.Marshal(name)
	if err != nil {
		return nil, err
	}
	if input, err = plan.Escape(input); err != nil { // what looks like a reference is text: there is nothing to refer to
		return nil, err
	}
	return fmt.Appendf(nil, `{"steps":[{"id":%q,"tool":%s,"arguments":%s}]}`, AgentStep, called, input), nil
}

// failed returns why an agent has not succeeded.
func (a *Agent) failed(out *outcome.Outcome) error {
	if len(out.Problems) > 0 {
		p := out.Problems[0]
		return fault.New(p.Code, "the agent %s was not called: %s", a.name, p.Message).WithHint("%s", p.Hint)
	}
	for _, e := range out.Errors {
		if e.Step == AgentStep {
			return fault.New(e.Code, "the agent %s %s: %s", a.name, out.Status, e.Message).WithHint("%s", e.Hint)
		}
	}
	return fault.New(fault.Cancelled, "the agent %s was %s", a.name, out.Status)
}
