package client_test

import (
	"context"
	"fmt"
	"time"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/dev"
)

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// A whole Stepjet in this process stands in for one that runs elsewhere.
	stack, err := dev.Start(ctx, dev.Options{})
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
	plan := []byte(`{"steps": [
		{"id": "half", "tool": "divide", "arguments": {"a": 9, "b": 2}},
		{"id": "text", "tool": "text_concat", "arguments": {"parts": ["Half of nine is $ref:half.result."]}}
	], "output_steps": ["text"]}`)
	out, err := agent.Run(ctx, plan, client.SubmitOptions{Run: "order-42"})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, _ := out.Results.Get("text")
	fmt.Println(out.Run, out.Status)
	fmt.Println(string(result))
	// Output:
	// order-42 succeeded
	// {"result":"Half of nine is 4.5."}
}
