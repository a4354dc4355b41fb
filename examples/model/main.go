// Model asks a language model in two steps of a plan: one sorts a letter, the other answers it if it is a complaint.
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
	config, end, err := models(os.Args[1:])
	if err == nil {
		defer end()
		err = run(ctx, cmp.Or(os.Getenv("NATS_URL"), nats.DefaultURL), config, os.Stdout)
	}
	if err != nil {
		log.Fatal(err) //nolint:gocritic // what is left open ends with the program
	}
}

// models returns the configuration of the file that is named, or of the script.
func models(args []string) (config []byte, end func(), err error) {
	if len(args) == 0 {
		return scripted()
	}
	config, err = os.ReadFile(args[0])
	return config, func() {}, err
}

// run hosts the tools, has the plan run, and prints what came of it.
func run(ctx context.Context, url string, config []byte, out io.Writer) error {
	defs, err := tool.ParseDefinitions(definitions)
	if err != nil {
		return err
	}
	c, caller, err := asks(config)
	if err != nil {
		return err
	}
	defer caller.Close()
	nc, err := nats.Connect(url)
	if err != nil {
		return err
	}
	defer nc.Close()
	w, err := worker.New(nc, worker.Config{Name: "model"})
	if err != nil {
		return err
	}
	if err := host(w, defs, c, caller); err != nil {
		return err
	}
	return submit(ctx, nc, w, out)
}

func submit(ctx context.Context, nc *nats.Conn, w *worker.Worker, out io.Writer) error {
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
