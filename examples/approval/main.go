// Approval pays an order back once a person has approved of it. Here the program is that person, and gives back less
// than was asked for.
package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

//go:embed plan.json
var plan []byte

//go:embed tools.json
var definitions []byte

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, cmp.Or(os.Getenv("NATS_URL"), nats.DefaultURL), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run hosts the tools, has the plan run, approves of what it asks for, and prints what came of it.
func run(ctx context.Context, url string, out io.Writer) error {
	defs, err := tool.ParseDefinitions(definitions)
	if err != nil {
		return err
	}
	nc, err := nats.Connect(url)
	if err != nil {
		return err
	}
	defer nc.Close()
	w, err := worker.New(nc, worker.Config{Name: "approval"})
	if err != nil {
		return err
	}
	host(w, defs)
	c, err := client.New(ctx, nc, client.Config{})
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	worked := make(chan error, 1)
	go func() { worked <- w.Run(ctx) }()
	select {
	case <-w.Ready():
	case err := <-worked:
		return err
	}
	r, err := c.Submit(ctx, plan, client.SubmitOptions{})
	if err != nil {
		return err
	}
	o, err := approveAll(ctx, c, r.ID(), func(*outcome.Question) json.RawMessage {
		return json.RawMessage(`{"order": "order-42", "amount": 40}`)
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", o.JSON())
	stop() // the worker finishes what it has
	return <-worked
}

// approveAll watches a run until it is over, and approves of all that it asks for, with the arguments that edit
// returns.
func approveAll(
	ctx context.Context, c *client.Client, run string, edit func(*outcome.Question) json.RawMessage,
) (o *outcome.Outcome, err error) {
	watching := c.Watch(ctx, run, func(e client.Event) {
		if o = e.Outcome; e.Status != outcome.StepAsking || err != nil {
			return
		}
		q, asked := c.Question(ctx, run, e.Step)
		if errors.Is(asked, &fault.Error{Code: fault.NotFound}) {
			return // answered, or about to be told of
		}
		if err = asked; err == nil {
			_, err = c.Approve(ctx, q, client.Answer{Arguments: edit(q), By: "bob", Reason: "the rest is a credit note"})
		}
	})
	return o, errors.Join(err, watching)
}
