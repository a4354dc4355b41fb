package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// asked is what the planner of the example reads of its requests.
type asked struct {
	Round int `json:"round"`
	Input struct {
		City string `json:"city"`
	} `json:"input"`
	Rounds []struct {
		Records []struct {
			Result struct {
				Rain bool `json:"rain"`
			} `json:"result"`
		} `json:"records"`
	} `json:"rounds"`
}

// planner is a tool as any other: a language model would answer likewise. It takes any object, since a request has more
// members than this one reads.
func planner(_ context.Context, request map[string]any) (map[string]any, error) {
	var in asked
	if raw, err := json.Marshal(request); err != nil || json.Unmarshal(raw, &in) != nil {
		return nil, worker.Terminal(errors.New("this is no request"))
	}
	if in.Round == 0 {
		return map[string]any{"steps": []any{map[string]any{"id": "look", "tool": "forecast", "arguments": in.Input}}}, nil
	}
	if in.Rounds[0].Records[0].Result.Rain {
		return map[string]any{"output": "Take an umbrella."}, nil
	}
	return map[string]any{"output": "Leave it at home."}, nil
}

// An agent: its planner is asked what to do, what it answers is run, and it is asked again.
func Example_agent() {
	srv, err := embedded.Start(embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Shutdown()
	nc, err := nats.Connect("", nats.InProcessServer(srv.InProcess()))
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	o, err := orchestrator.New(nc, orchestrator.Config{})
	if err != nil {
		log.Fatal(err)
	}
	go func() { done <- o.Run(ctx) }()
	<-o.Ready()
	w, err := worker.New(nc, worker.Config{})
	if err != nil {
		log.Fatal(err)
	}
	worker.Handle(w, "planner", planner, worker.Contract(tool.Orchestration{Request: tool.WholeRequest})) // it reads no parts
	worker.Handle(w, "forecast", func(_ context.Context, in struct {
		City string `json:"city"`
	}) (map[string]any, error) {
		return map[string]any{"rain": in.City == "Bergen"}, nil
	})
	go func() { done <- w.Run(ctx) }()
	<-w.Ready()

	c, err := client.New(ctx, nc, client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err = c.ApplyTemplate(ctx, []byte(`{"name":"packer","agent":{"planner":{"tool":"planner","mode":"plan"},"tools":["forecast"]}}`)); err != nil {
		log.Fatal(err)
	}
	out, err := c.Run(ctx, []byte(`{"steps":[{"id":"pack","tool":"packer","for_each":{"in":["Bergen","Yuma"]},"arguments":{"city":"$ref:item"}}]}`), client.SubmitOptions{})
	if err != nil {
		log.Fatal(err)
	}
	advice, _ := out.Results.Get("pack")
	fmt.Println(out.Status, string(advice))

	c.Close()
	cancel()
	fmt.Println(<-done, <-done)
	// Output:
	// succeeded {"results":[{"index":0,"status":"ok","data":"Take an umbrella."},{"index":1,"status":"ok","data":"Leave it at home."}],"summary":{"ok":2,"error":0}}
	// <nil> <nil>
}
