// A worker of one tool. What its function takes and returns is the tool's contract: the schemas are made of the types.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/worker"
)

// City is what the tool takes.
type City struct {
	Name string `json:"name" jsonschema:"the city to look up"`
}

// Weather is what it returns.
type Weather struct {
	City string  `json:"city"`
	Temp float64 `json:"temp"`
}

// weather is the tool. Put what yours does here; ctx ends when nobody waits for it any more.
func weather(_ context.Context, in City) (Weather, error) {
	temp, known := map[string]float64{"Tokyo": 21.5, "London": 13}[in.Name]
	if !known {
		return Weather{}, worker.Terminal(fmt.Errorf("there is no station in %s", in.Name)) // not tried again
	}
	return Weather{in.Name, temp}, nil
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	nc, err := nats.Connect(cmp.Or(os.Getenv("NATS_URL"), nats.DefaultURL), nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	defer nc.Close()
	w, err := worker.New(nc, worker.Config{Logger: slog.Default()})
	if err != nil {
		return err
	}
	worker.Handle(w, "get_weather", weather, worker.Description("Current weather of a city."))
	return w.Run(ctx) // until it is interrupted; then it finishes what it has
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
