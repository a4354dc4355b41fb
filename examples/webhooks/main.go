// Webhooks sends one signed event to all subscribers. One of them is not ready twice, one is broken for good.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"io"
	"log"
	"net/http"
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
	w, err := worker.New(nc, worker.Config{Name: "webhooks"})
	if err != nil {
		return err
	}
	hooks, err := listen(rand.Text())
	if err != nil {
		return err
	}
	defer hooks.close()
	d := scene(hooks)
	defer d.http.CloseIdleConnections()
	d.host(w, defs)
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
	o, err := c.Run(ctx, plan, client.SubmitOptions{Context: signedWith(hooks.secret)})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", o.JSON())
	letter, err := c.DeadLetter(ctx, o.Run, "notify=3")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Dead letter: %s after %d attempts: %s\n", letter.Step, letter.Attempts, letter.Error.Message)
	stop() // the worker finishes what it has
	return <-worked
}

// scene sets six subscribers up, two of which have a bad day.
func scene(r *receivers) *dispatcher {
	r.unready["search"], r.broken["audit"] = 2, true
	return &dispatcher{http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 25}},
		subscribers: r.subscribers("billing", "shipping", "search", "audit", "mail", "stock")}
}

// signedWith hands the secret to the step that signs, and to no other.
func signedWith(secret string) client.RunContext {
	c, err := client.NewContext(map[string]string{secretKey: secret}, secretKey)
	if err != nil {
		panic(err) // of a key that is no key
	}
	return client.RunContext{Steps: map[string]client.Context{"notify": c}}
}
