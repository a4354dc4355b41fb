package main

import (
	"context"

	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// Rate is what get_exchange_rate returns.
type Rate struct {
	Rate float64 `json:"rate"`
}

func getExchangeRate(context.Context, struct {
	From string `json:"from"`
	To   string `json:"to"`
}) (Rate, error) {
	return Rate{0.92}, nil
}

// host adds the tool to a worker, under its definition.
func host(w *worker.Worker, defs []*tool.Definition) {
	worker.Handle(w, "get_exchange_rate", getExchangeRate, worker.DefinedBy(defs...))
}
