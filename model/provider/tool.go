package provider

import (
	"context"
	"encoding/json"

	"github.com/stepjet/stepjet/model"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// timeoutMS is the longest that a model may take to answer: ten minutes, in milliseconds.
const timeoutMS = 600_000

// attempts is how often a step asks a model: what it is refused for comes and goes within minutes.
const attempts = 10

// Definition returns a model as a tool: how its steps may be called, and what they bring.
func Definition(name, description string, c *model.Config) *tool.Definition {
	limit := c.MaxConcurrency
	if limit == 0 {
		limit = model.DefaultConcurrency
	}
	if description == "" {
		description = "Asks a language model. Models: " + c.Names() + "."
	}
	yes := true
	return &tool.Definition{
		Name: name, Description: description, InputSchema: inputSchema,
		Annotations: &tool.Annotations{ReadOnlyHint: &yes, OpenWorldHint: &yes},
		Orchestration: &tool.Orchestration{
			MaxConcurrency: limit, TimeoutMS: timeoutMS, Retry: &tool.Retry{MaxAttempts: attempts}, PartContent: true,
		},
	}
}

// inputSchema is what a step may bring. It leaves open what an agent's loop adds.
var inputSchema = json.RawMessage(`{"type":"object","properties":{
"model":{"type":"string","description":"Name of a model"},
"mode":{"type":"string","enum":["text","tools","plan","calls","commands"]},
"instructions":{"type":"string","description":"The system prompt"},
"input":{"description":"What is asked"},
"messages":{"type":"array","items":{"type":"object","properties":{"role":{"type":"string"},"content":{}},"required":["role","content"]}},
"outputSchema":{"type":["object","null"],"description":"JSON Schema of the answer's output"},
"max_output_tokens":{"type":"integer","minimum":1}}}`)

// Host adds a model to a worker as a tool, which has not been started yet. Errors are those of worker.HandleRaw.
func (c *Caller) Host(w *worker.Worker, def *tool.Definition) error {
	if c.fetch == nil {
		c.fetch = worker.ReadPart
	}
	return w.HandleRaw(def, func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
		a, err := c.Call(ctx, args)
		if err != nil {
			return worker.Output{}, err
		}
		return worker.Output{Body: a.JSON()}, nil
	})
}
