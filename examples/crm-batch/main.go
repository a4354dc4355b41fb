// Crm-batch writes contacts, all or none: a plan with a bad row, the corrected plan, and then fifty runs with one
// contact each, whose steps the worker gathers into a few calls.
package main

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

//go:embed plan-bad.json
var bad []byte

//go:embed plan.json
var good []byte

//go:embed tools.json
var definitions []byte

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, cmp.Or(os.Getenv("NATS_URL"), nats.DefaultURL), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run hosts the tools, has the plans run, and prints what came of it.
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
	w, err := worker.New(nc, worker.Config{Name: "crm-batch"})
	if err != nil {
		return err
	}
	store := &crm{}
	store.host(w, defs)
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
	for _, plan := range [][]byte{bad, good} {
		o, err := c.Run(ctx, plan, client.SubmitOptions{})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n", o.JSON())
	}
	if err := createSingly(ctx, c, "guest", 50); err != nil {
		return err
	}
	after, err := store.list(ctx, struct{}{})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "After 50 runs with one contact each the CRM holds %d contacts.\n", len(after.Contacts))
	stop() // the worker finishes what it has
	return <-worked
}

// createSingly waits until all of submitSingly's runs have succeeded.
func createSingly(ctx context.Context, c *client.Client, name string, n int) error {
	runs, err := submitSingly(ctx, c, name, n)
	if err != nil {
		return err
	}
	for _, r := range runs {
		out, err := r.Wait(ctx)
		if err != nil {
			return err
		}
		if out.Status != outcome.Succeeded {
			return fmt.Errorf("run %s: %s", r.ID(), out.JSON())
		}
	}
	return nil
}

// submitSingly starts n runs that create one contact each, with the fields of a row as the step's arguments.
func submitSingly(ctx context.Context, c *client.Client, name string, n int) (runs []*client.Run, err error) {
	for i := range n {
		plan := fmt.Appendf(nil, `{"steps": [{"id": "create", "tool": "create_contacts",
			"arguments": {"name": "%s %d", "email": "%[1]s-%[2]d@example.com"}}]}`, name, i)
		r, err := c.Submit(ctx, plan, client.SubmitOptions{})
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}
