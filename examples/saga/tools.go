package main

import (
	"context"
	"slices"
	"sync"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// books hold what is booked and not cancelled, and in which order things happened.
type books struct {
	mu      sync.Mutex
	booked  []string
	journal []string
}

func (b *books) book(booking string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.booked = append(b.booked, booking)
	b.journal = append(b.journal, "book "+booking)
}

// Booking is what the tools that book return.
type Booking struct {
	Booking string `json:"booking"`
	Arrival string `json:"arrival,omitempty"`
}

func (b *books) flight(_ context.Context, in struct {
	To string `json:"to"`
}) (Booking, error) {
	b.book("flight-" + in.To)
	return Booking{"flight-" + in.To, "2026-11-28"}, nil
}

func (b *books) hotel(_ context.Context, in struct {
	City    string `json:"city"`
	Arrival string `json:"arrival"`
}) (Booking, error) {
	if in.City == "Hamburg" {
		return Booking{}, soldOut("No room in Hamburg on " + in.Arrival + ".")
	}
	b.book("hotel-" + in.City)
	return Booking{Booking: "hotel-" + in.City}, nil
}

func (b *books) car(_ context.Context, in struct {
	City    string `json:"city"`
	Arrival string `json:"arrival"`
	Hotel   string `json:"hotel"`
}) (Booking, error) {
	if in.City == "Berlin" {
		return Booking{}, soldOut("No car in Berlin on " + in.Arrival + ".")
	}
	b.book("car-" + in.City)
	return Booking{Booking: "car-" + in.City}, nil
}

func soldOut(message string) error {
	return &fault.Error{Code: fault.ToolFailed, ToolCode: "sold_out", Message: message}
}

// Cancelled is what cancel returns.
type Cancelled struct {
	Cancelled string `json:"cancelled"`
}

func (b *books) cancel(_ context.Context, in struct {
	Booking string `json:"booking"`
	Because string `json:"because"`
}) (Cancelled, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.booked = slices.DeleteFunc(b.booked, func(x string) bool { return x == in.Booking })
	b.journal = append(b.journal, "cancel "+in.Booking+": "+in.Because)
	return Cancelled{in.Booking}, nil
}

// host adds the tools to a worker, under their definitions.
func (b *books) host(w *worker.Worker, defs []*tool.Definition) {
	worker.Handle(w, "book_flight", b.flight, worker.DefinedBy(defs...))
	worker.Handle(w, "book_hotel", b.hotel, worker.DefinedBy(defs...))
	worker.Handle(w, "book_car", b.car, worker.DefinedBy(defs...))
	worker.Handle(w, "cancel", b.cancel, worker.DefinedBy(defs...))
}
