package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/worker"
)

// planner is a script in the place of a language model: it has a number halved, and answers with what came of it.
func planner(_ context.Context, request json.RawMessage) (any, error) {
	var in struct {
		Round int
		Input struct{ Number int }
	}
	if err := json.Unmarshal(request, &in); err != nil || in.Input.Number < 0 {
		return nil, worker.Terminal(errors.New("no numbers below zero"))
	}
	if in.Round == 0 {
		return json.RawMessage(fmt.Sprintf(`{"steps":[{"id":"half","tool":"divide","arguments":{"a":%d,"b":2}}]}`, in.Input.Number)), nil
	}
	return json.RawMessage(`{"output":{"half":"$ref:r0.half.result"}}`), nil
}

func Example_agent() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// A whole Stepjet in this process stands in for one that runs elsewhere; its worker hosts the planner, too.
	stack, err := dev.Start(ctx, dev.Options{More: func(w *worker.Worker) error {
		worker.Handle(w, "planner", planner)
		return nil
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stack.Stop()
	nc, err := stack.Connect(ctx, "caller")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer nc.Close()
	c, err := client.New(ctx, nc, client.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	if _, err := c.ApplyTemplate(ctx, []byte(`{"name":"halver","agent":{"planner":{"tool":"planner","mode":"plan"},"tools":["divide"]}}`)); err != nil {
		fmt.Println(err)
		return
	}

	halver := client.AgentOf(c, "halver")
	out, err := halver.Run(ctx, map[string]int{"number": 9}, client.SubmitOptions{Run: "nine"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out.Status, string(out.Output))

	out, err = halver.Run(ctx, map[string]int{"number": -1}, client.SubmitOptions{})
	fmt.Println(out.Status, fault.CodeOf(err), out.Output == nil)
	_, err = halver.Run(ctx, 9, client.SubmitOptions{})
	fmt.Println(fault.CodeOf(err))
	_, err = client.AgentOf(c, "halfer").Run(ctx, nil, client.SubmitOptions{})
	fmt.Println(err)
	// Output:
	// succeeded {"half":4.5}
	// failed tool_terminal true
	// invalid_arguments
	// unknown_tool: the agent halfer was not called: there is no tool "halfer" (did you mean "halver"?)
}
