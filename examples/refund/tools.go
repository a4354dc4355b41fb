package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// Paid is what process_payment returns.
type Paid struct {
	Receipt string  `json:"receipt"`
	Amount  float64 `json:"amount"`
}

// pay charges a card, as far as the bank lets it. The code of the failure is the tool's own; plans know it as
// $error:<step>.tool_code. It isn't retryable: asked again the bank says the same.
func pay(_ context.Context, in struct {
	Card   string  `json:"card"`
	Amount float64 `json:"amount"`
}) (Paid, error) {
	if strings.HasPrefix(in.Card, "4000-") {
		return Paid{}, &fault.Error{Code: fault.ToolFailed, ToolCode: "card_declined", Message: "Your card was declined."}
	}
	return Paid{Receipt: "rcpt_" + in.Card[len(in.Card)-4:], Amount: in.Amount}, nil
}

// Confirmed is what confirm_order returns.
type Confirmed struct {
	Confirmation string `json:"confirmation"`
}

func confirm(_ context.Context, in struct {
	Receipt string `json:"receipt"`
}) (Confirmed, error) {
	return Confirmed{"confirmed " + in.Receipt}, nil
}

// Ticket is what report_failure returns.
type Ticket struct {
	Ticket string `json:"ticket"`
}

func report(_ context.Context, in struct {
	Error struct {
		Code     string `json:"code"`
		ToolCode string `json:"tool_code"`
		Message  string `json:"message"`
	} `json:"error"`
}) (Ticket, error) {
	return Ticket{"payment failed: " + cmp.Or(in.Error.ToolCode, in.Error.Code) + ": " + in.Error.Message}, nil
}

// Sent is what ask_for_card returns.
type Sent struct {
	Sent string `json:"sent"`
}

func askForCard(_ context.Context, in struct {
	Why string `json:"why"`
}) (Sent, error) {
	return Sent{in.Why + " Please give us another one."}, nil
}

// host adds the tools to a worker, under their definitions.
func host(w *worker.Worker, defs []*tool.Definition) {
	worker.Handle(w, "process_payment", pay, worker.DefinedBy(defs...))
	worker.Handle(w, "confirm_order", confirm, worker.DefinedBy(defs...))
	worker.Handle(w, "report_failure", report, worker.DefinedBy(defs...))
	worker.Handle(w, "ask_for_card", askForCard, worker.DefinedBy(defs...))
}
