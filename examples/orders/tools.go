package main

import (
	"context"

	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// Order names one.
type Order struct {
	Number string `json:"number"`
}

// Orders is what list_orders returns.
type Orders struct {
	Open []Order `json:"open"`
}

func listOrders(context.Context, struct{}) (Orders, error) {
	return Orders{[]Order{{"A-1"}, {"A-2"}}}, nil
}

// Stock is what check_stock returns.
type Stock struct {
	There bool `json:"there"`
}

func checkStock(_ context.Context, in Order) (Stock, error) { return Stock{in.Number == "A-1"}, nil }

// Parcel is what ship returns.
type Parcel struct {
	Parcel string `json:"parcel"`
}

func ship(_ context.Context, in Order) (Parcel, error) { return Parcel{"P-" + in.Number}, nil }

// Mail is what mail is given.
type Mail struct {
	Text string `json:"text"`
}

func mail(_ context.Context, in Mail) (Mail, error) { return in, nil }

// host adds the tools to a worker, under their definitions.
func host(w *worker.Worker, defs []*tool.Definition) {
	worker.Handle(w, "list_orders", listOrders, worker.DefinedBy(defs...))
	worker.Handle(w, "check_stock", checkStock, worker.DefinedBy(defs...))
	worker.Handle(w, "ship", ship, worker.DefinedBy(defs...))
	worker.Handle(w, "mail", mail, worker.DefinedBy(defs...))
}
