package main

import (
	"context"
	"fmt"

	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// Line is one line of an order.
type Line struct {
	Article  string  `json:"article"`
	Quantity int     `json:"quantity"`
	Price    float64 `json:"price"`
}

// Order is what get_order returns.
type Order struct {
	Customer string `json:"customer"`
	Country  string `json:"country"`
	Lines    []Line `json:"lines"`
}

func getOrder(context.Context, struct {
	Number string `json:"number"`
}) (Order, error) {
	return Order{Customer: "Kim & Sons", Country: "DE", Lines: []Line{
		{Article: "screw", Quantity: 3, Price: 0.1},
		{Article: "hammer", Quantity: 1, Price: 24.99},
		{Article: "ladder", Quantity: 2, Price: 89.5},
	}}, nil
}

// Rate is what get_tax_rate returns.
type Rate struct {
	Percent float64 `json:"percent"`
}

func getTaxRate(_ context.Context, in struct {
	Country string `json:"country"`
}) (Rate, error) {
	if in.Country == "DE" {
		return Rate{19}, nil
	}
	return Rate{}, nil
}

// Sent is what send_invoice returns.
type Sent struct {
	Invoice string `json:"invoice"`
	Lines   int    `json:"lines"`
}

func sendInvoice(_ context.Context, in struct {
	Customer string `json:"customer"`
	Lines    []struct {
		Text string  `json:"text"`
		Net  float64 `json:"net"`
	} `json:"lines"`
	Net   float64 `json:"net"`
	Tax   float64 `json:"tax"`
	Total float64 `json:"total"`
}) (Sent, error) {
	return Sent{fmt.Sprintf("%s: %.2f + %.2f = %.2f", in.Customer, in.Net, in.Tax, in.Total), len(in.Lines)}, nil
}

// host adds the tools to a worker, under their definitions.
func host(w *worker.Worker, defs []*tool.Definition) {
	worker.Handle(w, "get_order", getOrder, worker.DefinedBy(defs...))
	worker.Handle(w, "get_tax_rate", getTaxRate, worker.DefinedBy(defs...))
	worker.Handle(w, "send_invoice", sendInvoice, worker.DefinedBy(defs...))
}
