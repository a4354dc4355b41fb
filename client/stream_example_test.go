package client_test

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/dev"
)

// A model writes a plan, token by token, and its first step has run before the last is written.
func ExampleClient_Stream() {
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

	text, model := io.Pipe()
	begun := make(chan struct{})
	go func() { // stands in for the answer of a model
		_, _ = io.WriteString(model, "```json\n"+`{"steps": [{"id": "half", "tool": "divide", "arguments": {"a": 9, "b": 2}}, `)
		<-begun
		_, _ = io.WriteString(model, `{"id": "text", "tool": "text_concat", "arguments": {"parts": ["Half of nine is $ref:half.result."]}}]`)
		_, _ = io.WriteString(model, `, "output_steps": ["text"]}`+"\n```")
		_ = model.Close()
	}()
	run, err := agent.Stream(ctx, text, client.StreamOptions{
		SubmitOptions: client.SubmitOptions{Run: "order-42"},
		Begun: func(r *client.Run) {
			fmt.Println(r.ID(), "has begun")
			close(begun)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := run.Wait(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, _ := out.Results.Get("text")
	fmt.Println(out.Status, string(result))
	// Output:
	// order-42 has begun
	// succeeded {"result":"Half of nine is 4.5."}
}
