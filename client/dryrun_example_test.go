package client_test

import (
	"context"
	"fmt"
	"time"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/dev"
)

// What a plan would come to: its calls, and where made-up results would lead. Nothing runs.
func ExampleClient_DryRun() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	stack, err := dev.Start(ctx, dev.Options{}) // stands in for a Stepjet that runs elsewhere
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stack.Stop()
	nc, err := stack.Connect(ctx, "agent")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer nc.Close()
	agent, err := client.New(ctx, nc, client.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer agent.Close()

	d, err := agent.DryRun(ctx, []byte(`{"steps": [
		{"id": "half", "tool": "divide", "arguments": {"a": 9, "b": 2}},
		{"id": "text", "tool": "text_concat", "arguments": {"parts": ["Half of nine is $ref:half.result."]}}
	]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Calls, "calls,", d.Status)
	fmt.Println(string(d.Steps[1].Arguments))
	result, _ := d.Results.Get("text")
	fmt.Println(string(result))
	// Output:
	// 2 calls, succeeded
	// {"parts": ["Half of nine is 0."]}
	// {"result":""}
}
