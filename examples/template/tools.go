package main

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// Customer is who asks for a refund.
type Customer struct {
	Customer string `json:"customer"`
}

// History is what check_billing_history returns.
type History struct {
	Orders      int `json:"orders"`
	Chargebacks int `json:"chargebacks"`
}

func history(_ context.Context, in Customer) (History, error) {
	if in.Customer == "cleo" {
		return History{Orders: 5, Chargebacks: 2}, nil
	}
	return History{Orders: 5}, nil
}

// Refunded is what issue_refund returns.
type Refunded struct {
	Confirmation string `json:"confirmation"`
}

func refund(_ context.Context, in struct {
	Customer string  `json:"customer"`
	Amount   float64 `json:"amount"`
}) (Refunded, error) {
	return Refunded{in.Customer + " gets " + strconv.FormatFloat(in.Amount, 'f', 2, 64) + " back"}, nil
}

// Ticket is what escalate returns.
type Ticket struct {
	Ticket string `json:"ticket"`
}

func escalate(_ context.Context, in struct {
	Customer string `json:"customer"`
	Why      string `json:"why"`
}) (Ticket, error) {
	return Ticket{in.Customer + ": " + in.Why}, nil
}

// Complaint is one of open_complaints.
type Complaint struct {
	Customer string  `json:"customer"`
	Paid     float64 `json:"paid"`
}

// Complaints is what open_complaints returns.
type Complaints struct {
	Complaints []Complaint `json:"complaints"`
}

func complaints(context.Context, struct{}) (Complaints, error) {
	return Complaints{[]Complaint{{"ann", 50}, {"bob", 19.9}, {"cleo", 7}}}, nil
}

// apply registers the tools that are plans.
func apply(ctx context.Context, c *client.Client, defs []*tool.Definition) error {
	for _, d := range defs {
		if d.Plan == nil {
			continue
		}
		raw, err := json.Marshal(d)
		if err != nil {
			return err
		}
		if _, err := c.ApplyTemplate(ctx, raw); err != nil {
			return err
		}
	}
	return nil
}

// host adds the tools to a worker that it has functions for, under their definitions.
func host(w *worker.Worker, defs []*tool.Definition) {
	worker.Handle(w, "check_billing_history", history, worker.DefinedBy(defs...))
	worker.Handle(w, "issue_refund", refund, worker.DefinedBy(defs...))
	worker.Handle(w, "escalate", escalate, worker.DefinedBy(defs...))
	worker.Handle(w, "open_complaints", complaints, worker.DefinedBy(defs...))
}
