package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// withTill runs a whole Stepjet in this process, with a tool "charge" that fails until it is mended.
func withTill(use func(ctx context.Context, agent *client.Client, mend func())) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := try(ctx, use); err != nil {
		fmt.Println(err)
	}
}

func try(ctx context.Context, use func(ctx context.Context, agent *client.Client, mend func())) error {
	stack, err := dev.Start(ctx, dev.Options{})
	if err != nil {
		return err
	}
	defer stack.Stop()
	nc, err := stack.Connect(ctx, "example")
	if err != nil {
		return err
	}
	defer nc.Close()
	w, err := worker.New(nc, worker.Config{})
	if err != nil {
		return err
	}
	var mended atomic.Bool
	once := tool.Orchestration{Retry: &tool.Retry{MaxAttempts: 1}}
	worker.Handle(w, "charge", func(ctx context.Context, in map[string]any) (map[string]any, error) {
		if !mended.Load() {
			return nil, errors.New("the bank is closed")
		}
		info, _ := worker.InfoFrom(ctx)
		user, _ := info.Context.Get("user")
		return map[string]any{"charged": in["amount"], "for": user}, nil
	}, worker.InputSchema(json.RawMessage(`{"type":"object"}`)), worker.Contract(once))
	work, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(work) }()
	defer func() { stop(); <-done }()
	<-w.Ready()
	agent, err := client.New(ctx, nc, client.Config{})
	if err != nil {
		return err
	}
	defer agent.Close()
	use(ctx, agent, func() { mended.Store(true) })
	return nil
}

const shopPlan = `{"steps": [
	{"id": "total", "tool": "add", "arguments": {"a": 40, "b": 2}},
	{"id": "pay", "tool": "charge", "arguments": {"amount": "$ref:total.result"}}
], "output_steps": ["pay"]}`

// A finished run is tried again as a new one, which executes only what did not succeed.
func ExampleClient_Retry() {
	withTill(func(ctx context.Context, agent *client.Client, mend func()) {
		out, err := agent.Run(ctx, []byte(shopPlan), client.SubmitOptions{Run: "order-42"})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(out.Run, out.Status)
		mend()
		who, err := wire.NewContext(map[string]string{"user": "Ada"})
		if err != nil {
			fmt.Println(err)
			return
		}
		run, err := agent.Retry(ctx, "order-42", client.RetryOptions{Context: wire.RunContext{All: who}})
		if err != nil {
			fmt.Println(err)
			return
		}
		out, err = run.Wait(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		result, _ := out.Results.Get("pay")
		fmt.Println(out.Run, out.Status, string(result))
		doc, err := agent.Get(ctx, run.ID())
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, s := range doc.Steps {
			fmt.Println(s.ID, "reused:", s.Reused)
		}
	})
	// Output:
	// order-42 failed
	// order-42.2 succeeded {"charged":42,"for":"Ada"}
	// total reused: true
	// pay reused: false
}

// A step that used up its attempts leaves a dead letter, from which the same call can be made again.
func ExampleClient_RetryDead() {
	withTill(func(ctx context.Context, agent *client.Client, mend func()) {
		if _, err := agent.Run(ctx, []byte(shopPlan), client.SubmitOptions{Run: "order-42"}); err != nil {
			fmt.Println(err)
			return
		}
		letter, err := agent.DeadLetter(ctx, "order-42", "pay")
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(letter.Tool, string(letter.Arguments), letter.Error)
		mend()
		run, err := agent.RetryDead(ctx, letter, client.RetryDeadOptions{})
		if err != nil {
			fmt.Println(err)
			return
		}
		out, err := agent.SettleDead(ctx, letter, run)
		if err != nil {
			fmt.Println(err)
			return
		}
		left, err := agent.DeadLetters(ctx, client.DeadOptions{})
		fmt.Println(out.Status, len(left), err)
	})
	// Output:
	// charge {"amount": 42} tool_failed: the bank is closed
	// succeeded 0 <nil>
}
