// Webhooks sends one signed event to all subscribers. One of them is not ready twice, one is broken for good.
package main

import (
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"net/http"
	"os"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/example"
	"github.com/stepjet/stepjet/wire"
)

var (
	//go:embed plan.json
	plans embed.FS
	//go:embed tools.json
	toolsJSON []byte
)

func main() {
	r, err := listen(rand.Text())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	example.Main(byHand(r, scene(r)))
}

// byHand is what "go run" shows.
func byHand(r *receivers, d *dispatcher) example.Example {
	return example.Example{
		Name:   "webhooks",
		About:  "Send one signed event to six subscribers: search answers 503 twice, audit always 500.",
		Files:  plans,
		World:  example.Options{Host: d.host(example.MustTools(toolsJSON))},
		Submit: client.SubmitOptions{Context: signedWith(r.secret)},
		More:   deadLetters,
	}
}

func deadLetters(ctx context.Context, w *example.World) (lines []string, err error) {
	dead, err := w.Client.DeadLetters(ctx, client.DeadOptions{})
	for _, l := range dead {
		lines = append(lines, fmt.Sprintf("Dead letter: %s of run %s after %d attempts: %s", l.Step, l.Run, l.Attempts, l.Error.Message))
	}
	return append(lines, ""), err
}

// scene sets six subscribers up, two of which have a bad day.
func scene(r *receivers) *dispatcher {
	r.unready["search"], r.broken["audit"] = 2, true
	return &dispatcher{http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 25}},
		subscribers: r.subscribers("billing", "shipping", "search", "audit", "mail", "stock")}
}

// signedWith hands the secret to the step that signs, and to no other.
func signedWith(secret string) wire.RunContext {
	c, err := wire.NewContext(map[string]string{secretKey: secret}, secretKey)
	if err != nil {
		panic(err) // of a key that is no key
	}
	return wire.RunContext{Steps: map[string]wire.Context{"notify": c}}
}
