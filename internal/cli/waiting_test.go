package cli

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// unfinishedRun is one of whose steps each waits for something else.
func unfinishedRun() *outcome.Run {
	at := func(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
	step := func(id, tool string, status outcome.StepStatus, waiting string) outcome.Step {
		return outcome.Step{ID: id, Tool: tool, Status: status, Waiting: waiting}
	}
	r := &outcome.Run{
		Version: 1, Run: "order-42.2", Tenant: "default", Digest: "0123", Status: outcome.Running, Submitted: at(0), Started: at(1),
		RetryOf: "order-42", RetryFrom: "orders",
	}
	r.Steps = []outcome.Step{
		step("cities", "list_cities", outcome.StepSucceeded, ""),
		step("orders", "list_orders", outcome.StepSucceeded, ""),
		step("tokyo", "get_weather", outcome.StepReady, "no worker of get_weather is alive"),
		step("paris", "get_weather", outcome.StepReady, "fan-out limit 8 of 8"),
		step("rome", "get_weather", outcome.StepReady, "window full: 64 of its steps are out"),
		step("oslo", "get_weather", outcome.StepReady, "a worker of get_weather, on its way"),
		step("bern", "get_weather", outcome.StepRetrying, "backoff until 12:03:04.000, then attempt 2"),
		step("notify", "notify", outcome.StepRunning, "3 of 10 items"),
		step("pay", "charge", outcome.StepRunning, ""),
		step("compare", "compare_data", outcome.StepWaiting, "tokyo, paris and 3 more"),
	}
	r.Steps[0].Reused, r.Steps[0].Result = true, json.RawMessage(`["Tokyo","Paris"]`)
	r.Steps[1].Attempts, r.Steps[1].Worker, r.Steps[1].Started, r.Steps[1].Ended, r.Steps[1].Bytes = 1, "w-1", at(1), at(13), 5<<20
	r.Steps[6].Attempts, r.Steps[6].Worker, r.Steps[6].Error = 1, "w-2\x1b[2J", fault.New(fault.Timeout, "took longer than 2s")
	notify := &r.Steps[7]
	notify.Attempts = 8
	for i := range 10 {
		item := step(fmt.Sprintf("notify=%d", i), "notify", outcome.StepSucceeded, "")
		item.Attempts = 1
		switch {
		case i == 2 || i == 5:
			item.Status, item.Attempts, item.Error = outcome.StepFailed, 3, fault.New(fault.ToolFailed, "503")
		case i == 7:
			item.Status, item.Attempts, item.Waiting = outcome.StepReady, 0, "fan-out limit 2 of 2"
		case i > 7:
			item.Status, item.Attempts, item.Waiting = outcome.StepWaiting, 0, ""
		}
		notify.Items = append(notify.Items, item)
	}
	r.Stats = outcome.Stats{Steps: 10, Succeeded: 2}
	return r
}

func TestGoldenWaiting(t *testing.T) {
	t.Parallel()
	a, out, _ := paper("text")
	require.NoError(t, a.showRun(unfinishedRun(), false))
	fmt.Fprintln(out, "----")
	require.NoError(t, a.showRun(unfinishedRun(), true))
	fmt.Fprintln(out, "----")
	over := unfinishedRun()
	over.Status, over.Finished, over.Steps = outcome.Partial, noon.Add(time.Second), over.Steps[:8]
	over.Outcome = &outcome.Outcome{Run: over.Run, Status: over.Status}
	over.Stats = outcome.Stats{Steps: 8, Succeeded: 7, Failed: 1, ElapsedMS: 1000}
	for i := range over.Steps {
		over.Steps[i].Status, over.Steps[i].Waiting, over.Steps[i].Error = outcome.StepSucceeded, "", nil
	}
	notify := &over.Steps[7]
	notify.Status, notify.Error = outcome.StepFailed, fault.New(fault.ToolFailed, "2 of 10 items failed")
	for i := 7; i < 10; i++ {
		notify.Items[i].Status, notify.Items[i].Waiting = outcome.StepSucceeded, ""
	}
	require.NoError(t, a.showRun(over, false))
	for _, id := range []string{"notify", "notify=2", "notify=7", "tokyo"} {
		fmt.Fprintln(out, "----")
		require.NoError(t, a.writeStep(out, accountOf(unfinishedRun()), findStep(unfinishedRun(), id)))
	}
	golden(t, "waiting", out.String())
	require.NotContains(t, out.String(), "\x1b")
	require.Nil(t, findStep(unfinishedRun(), "notify=10"))
}
