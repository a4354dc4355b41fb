package main

import (
	"context"

	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// Order is what get_order returns.
type Order struct {
	ID       string  `json:"id"`
	Customer string  `json:"customer"`
	Paid     float64 `json:"paid"`
}

func order(_ context.Context, in struct {
	ID string `json:"id"`
}) (Order, error) {
	return Order{ID: in.ID, Customer: "ann", Paid: 50}, nil
}

// Refunded is what process_refund returns.
type Refunded struct {
	Amount float64 `json:"amount"`
}

func refund(_ context.Context, in struct {
	Order  string  `json:"order"`
	Amount float64 `json:"amount"`
}) (Refunded, error) {
	return Refunded{in.Amount}, nil
}

// Sent is what write_to returns.
type Sent struct {
	Sent string `json:"sent"`
}

func write(_ context.Context, in struct {
	Customer string `json:"customer"`
	Text     string `json:"text"`
}) (Sent, error) {
	return Sent{in.Customer + ": " + in.Text}, nil
}

// host adds the tools to a worker, under their definitions.
func host(w *worker.Worker, defs []*tool.Definition) {
	worker.Handle(w, "get_order", order, worker.DefinedBy(defs...))
	worker.Handle(w, "process_refund", refund, worker.DefinedBy(defs...))
	worker.Handle(w, "write_to", write, worker.DefinedBy(defs...))
}
