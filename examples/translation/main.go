// Translation writes down in which language a text is, and what it says in English. The schema of the state says which
// places the plan has to fill.
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

// run hosts the tools, has the plan run, and prints what came of it.
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
	w, err := worker.New(nc, worker.Config{Name: "translation"})
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
	o, err := c.Run(ctx, plan, client.SubmitOptions{})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", o.JSON())
	stop() // the worker finishes what it has
	return <-worked
}
