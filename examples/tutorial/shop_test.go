package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/stepjettest"
	"github.com/stepjet/stepjet/worker"
)

// plan returns the plan that a model wrote.
func plan(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("plan.json")
	require.NoError(t, err)
	return string(text)
}

func TestAnOrderIsPlaced(t *testing.T) {
	s, o := stepjettest.New(t), &orders{placed: map[string]Receipt{}}
	s.Host(o.host)
	out := s.Run(plan(t))
	require.Equal(t, outcome.Succeeded, out.Status)
	order, _ := out.Results.Get("order")
	require.JSONEq(t, `{"order_id": "order-1", "total_cents": 26800}`, string(order))
}

func TestWhatIsNotSoldIsNotOrdered(t *testing.T) {
	s, o := stepjettest.New(t), &orders{placed: map[string]Receipt{}}
	s.Host(o.host)
	out := s.Run(strings.ReplaceAll(plan(t), "desk", "sofa"))
	require.Equal(t, outcome.Failed, out.Status)
	require.Equal(t, "there is no sofa in this shop", out.Errors[0].Message)
	require.Empty(t, o.placed)
}

// The first answer of place_order is lost after the order was placed. The step is executed again.
func TestAnOrderIsPlacedOnce(t *testing.T) {
	s, o := stepjettest.New(t), &orders{placed: map[string]Receipt{}}
	lost := false
	s.Host(func(w *worker.Worker) {
		o.host(w)
		w.Use(func(next worker.Handler) worker.Handler {
			return func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
				out, err := next(ctx, args)
				if info, _ := worker.InfoFrom(ctx); info.Tool == "place_order" && !lost {
					lost = true
					return worker.Output{}, errors.New("the connection broke before the answer came")
				}
				return out, err
			}
		})
	})
	out := s.Run(plan(t))
	require.Equal(t, outcome.Succeeded, out.Status)
	require.Len(t, o.placed, 1)
}
