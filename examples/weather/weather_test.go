package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/exampletest"
	"github.com/stepjet/stepjet/outcome"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOneTimeoutDoesNotCascade(t *testing.T) {
	t.Parallel()
	w := exampletest.Start(t, exampletest.Options{Host: stations{silent: "Reykjavik"}.host, Tools: exampletest.ReadTools(t, definitions)})
	out := w.Run("plan.json", client.SubmitOptions{Run: "weather"})
	exampletest.Check(t, out, "outcome.json")
	require.Equal(t, 10, w.Meter.Of("get_weather").Calls)

	letter, err := w.Client.DeadLetter(exampletest.Context(t), "weather", "weather=7")
	require.NoError(t, err)
	require.Equal(t, fault.Timeout, letter.Error.Code)
	require.JSONEq(t, `{"city":"Reykjavik"}`, string(letter.Arguments))
}

// Three runs ask two workers for thirty cities. The calls are held back until ten are under way; the others wait for
// the contract.
func TestNeverMoreThanTenAtOnce(t *testing.T) {
	t.Parallel()
	defs := exampletest.ReadTools(t, definitions)
	defs.Of(t, "get_weather").Orchestration.TimeoutMS = 60_000 // being held back must not count
	around, open := exampletest.Gate("get_weather")
	defer open()
	w := exampletest.Start(t, exampletest.Options{Host: stations{}.host, Tools: defs, Around: around})
	var runs []*client.Run
	for i := range 3 {
		runs = append(runs, w.Submit("plan.json", client.SubmitOptions{Run: fmt.Sprint("weather-", i)}))
	}
	require.NoError(t, w.Meter.Await(exampletest.Context(t), "get_weather", 10))
	require.Contains(t, w.Waiting(runs...), "fan-out limit 10 of 10")
	open()
	for _, r := range runs {
		require.Equal(t, outcome.Succeeded, w.Wait(r).Status)
	}
	require.Equal(t, exampletest.Usage{Calls: 30, Most: 10}, w.Meter.Of("get_weather"))
}

func TestByHand(t *testing.T) {
	t.Parallel()
	lines := exampletest.ByHand(t, run)
	require.Len(t, lines, 1)
	exampletest.CheckLine(t, lines[0], "outcome.json")
}
