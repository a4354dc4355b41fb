// Package dog is a plan that is changed while it runs: see its README.
package dog

import (
	"context"
	_ "embed"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/exampletest"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

//go:embed tools.json
var definitions []byte

//go:embed steps.json
var steps []byte

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Trip is what the tools are asked for.
type Trip struct {
	Destination string `json:"destination"`
	Arrival     string `json:"arrival"`
	Pet         string `json:"pet"`
}

func host(w *worker.Worker, defs []*tool.Definition) {
	by := worker.DefinedBy(defs...)
	worker.Handle(w, "book_flight", func(_ context.Context, in Trip) (map[string]string, error) {
		return map[string]string{"flight": "to " + in.Destination, "arrival": "2026-12-01"}, nil
	}, by)
	worker.Handle(w, "book_hotel", func(_ context.Context, in Trip) (map[string]string, error) {
		return map[string]string{"hotel": "a room in " + in.Destination}, nil
	}, by)
	worker.Handle(w, "find_pet_friendly_hotel", func(_ context.Context, in Trip) (map[string]string, error) {
		return map[string]string{"hotel": "a room for you and your " + in.Pet + " from " + in.Arrival}, nil
	}, by)
}

// The hotel is discarded while it waits for the flight, so it is never booked. The other one is.
func TestTheDogComesAlong(t *testing.T) {
	t.Parallel()
	around, land := exampletest.Gate("book_flight")
	w := exampletest.Start(t, exampletest.Options{Host: host, Tools: exampletest.ReadTools(t, definitions), Around: around})
	r := w.Submit("plan.json", client.SubmitOptions{Run: "trip"})
	ctx := exampletest.Context(t)
	require.NoError(t, w.Meter.Await(ctx, "book_flight", 1))
	var added []json.RawMessage
	require.NoError(t, json.Unmarshal(steps, &added))
	dog := client.Amendment{Add: added, Discard: []string{"hotel"}, Close: true, Reason: "with a dog", By: "model"}
	x, err := w.Client.Amend(ctx, "trip", dog)
	require.NoError(t, err)
	require.Equal(t, &client.Amended{Revision: 1, Steps: 3}, x)
	x, err = w.Client.Amend(ctx, "trip", dog)
	require.NoError(t, err)
	require.True(t, x.Already, "asking twice is asking once")
	_, err = w.Client.Amend(ctx, "trip", client.Amendment{Discard: []string{"flight"}})
	require.Equal(t, fault.Conflict, fault.CodeOf(err), "it is made for the plan as it was submitted")
	land()
	exampletest.Check(t, w.Wait(r), "outcome.json")
	require.Zero(t, w.Meter.Of("book_hotel").Calls)
	require.Equal(t, 1, w.Meter.Of("find_pet_friendly_hotel").Calls)
}
