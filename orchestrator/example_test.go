package orchestrator_test

import (
	"context"
	"fmt"
	"log"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/worker"
)

// A whole Stepjet in one process: server, orchestrator, worker and agent.
func Example() {
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
	worker.Handle(w, "double", func(_ context.Context, in struct {
		N int `json:"n"`
	}) (int, error) {
		return 2 * in.N, nil
	})
	go func() { done <- w.Run(ctx) }()
	<-w.Ready()

	c, err := client.New(ctx, nc, client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	out, err := c.Run(ctx, []byte(`{"steps":[
		{"id":"a","tool":"double","arguments":{"n":21}},
		{"id":"b","tool":"double","arguments":{"n":"$ref:a"}}],"output_steps":["b"]}`), client.SubmitOptions{})
	if err != nil {
		log.Fatal(err)
	}
	b, _ := out.Results.Get("b")
	fmt.Println(out.Status, string(b))

	c.Close()
	cancel()
	fmt.Println(<-done, <-done)
	// Output:
	// succeeded 84
	// <nil> <nil>
}
