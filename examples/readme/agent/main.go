package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/client"
)

// A model wrote it, in one answer.
const plan = `{
  "steps": [
    {"id": "tokyo",  "tool": "get_weather", "arguments": {"name": "Tokyo"}},
    {"id": "london", "tool": "get_weather", "arguments": {"name": "London"}},
    {"id": "warmer", "tool": "subtract", "arguments": {"a": "$ref:tokyo.temp", "b": "$ref:london.temp"}}
  ],
  "output_steps": ["warmer"]
}`

func run() error {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	nc, err := nats.Connect(cmp.Or(os.Getenv("NATS_URL"), nats.DefaultURL))
	if err != nil {
		return err
	}
	defer nc.Close()
	c, err := client.New(ctx, nc, client.Config{})
	if err != nil {
		return err
	}
	defer c.Close()
	// The run id is the idempotency key: the same id and plan give the same outcome, and nothing is done twice.
	out, err := c.Run(ctx, []byte(plan), client.SubmitOptions{Run: "order-42"})
	if err != nil {
		return err
	}
	fmt.Println(string(out.ForModel())) // what goes back into the model's context
	return nil
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
