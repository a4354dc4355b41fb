package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/exampletest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOneBadRowFailsTheCallAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	c := &crm{}
	w := exampletest.Start(t, exampletest.Options{Host: c.host, Tools: exampletest.ReadTools(t, definitions)})
	exampletest.Check(t, w.Run("plan-bad.json", client.SubmitOptions{Run: "crm-batch-bad"}), "outcome-bad.json")
	require.Empty(t, c.data.contacts)
	require.Equal(t, 1, w.Meter.Of("create_contacts").Calls, "what can't be helped is not tried again")

	exampletest.Check(t, w.Run("plan.json", client.SubmitOptions{Run: "crm-batch"}), "outcome.json")
	require.Len(t, c.data.contacts, 4)
}

// fullOnly lets a batch wait until it is full, so that the number of calls depends on nothing else.
func fullOnly(t *testing.T) exampletest.Tools {
	defs := exampletest.ReadTools(t, definitions)
	defs.Of(t, "create_contacts").Orchestration.Batch.MaxWaitMS = 60_000
	return defs
}

func TestSinglesFromManyRunsAreGathered(t *testing.T) {
	t.Parallel()
	c := &crm{}
	w := exampletest.Start(t, exampletest.Options{Workers: 1, Host: c.host, Tools: fullOnly(t)})
	runs, err := submitSingly(exampletest.Context(t), w.Client, "guest", 50)
	require.NoError(t, err)
	for _, r := range runs {
		require.Equal(t, outcome.Succeeded, w.Wait(r).Status)
	}
	u := w.Meter.Of("create_contacts")
	require.Equal(t, 2, u.Calls)
	require.Equal(t, 50, u.Items)
	require.Len(t, c.data.contacts, 50)
}

// A bad row fails the runs that share its call. They are run again, the bad one corrected, and all of them go through.
func TestABadSingleFailsItsBatch(t *testing.T) {
	t.Parallel()
	c := &crm{data: data{contacts: []Contact{{"c-1", "Old Guest", "guest-7@example.com"}}}}
	w := exampletest.Start(t, exampletest.Options{Workers: 1, Host: c.host, Tools: fullOnly(t)})
	ctx := exampletest.Context(t)
	runs, err := submitSingly(ctx, w.Client, "guest", 25)
	require.NoError(t, err)
	var again []*client.Run
	for i, r := range runs {
		out := w.Wait(r)
		require.Equal(t, outcome.Failed, out.Status)
		if i == 7 {
			require.Equal(t, fault.ToolTerminal, out.Errors[0].Code)
			require.Equal(t, "guest 7 can't have the address guest-7@example.com, which is that of Old Guest", out.Errors[0].Message)
			continue
		}
		require.Equal(t, fault.ToolFailed, out.Errors[0].Code)
		require.Contains(t, out.Errors[0].Message, "of the batch failed: guest 7 can't have the address")
		retry, err := w.Client.Retry(ctx, r.ID(), client.RetryOptions{})
		require.NoError(t, err)
		again = append(again, retry)
	}
	require.Len(t, c.data.contacts, 1, "nothing is half written")

	corrected, err := submitSingly(ctx, w.Client, "other", 1)
	require.NoError(t, err)
	for _, r := range append(again, corrected...) {
		require.Equal(t, outcome.Succeeded, w.Wait(r).Status)
	}
	require.Len(t, c.data.contacts, 26)
	require.Equal(t, 2, w.Meter.Of("create_contacts").Calls)
}

// The first answer is lost after the write. The second attempt has the same key and finds what the first did.
func TestASecondExecutionIsHarmless(t *testing.T) {
	t.Parallel()
	c := &crm{}
	var lost atomic.Bool
	w := exampletest.Start(t, exampletest.Options{Host: c.host, Tools: exampletest.ReadTools(t, definitions), Around: func(next worker.Handler) worker.Handler {
		return func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
			out, err := next(ctx, args)
			if info, _ := worker.InfoFrom(ctx); err == nil && info.Tool == "create_contacts" && !lost.Swap(true) {
				return worker.Output{}, errors.New("the connection broke before the answer came")
			}
			return out, err
		}
	}})
	exampletest.Check(t, w.Run("plan.json", client.SubmitOptions{Run: "crm-batch"}), "outcome.json")
	require.Equal(t, 2, w.Meter.Of("create_contacts").Calls)
	require.Len(t, c.data.contacts, 4)
	for i, contact := range c.data.contacts {
		require.Equal(t, fmt.Sprintf("c-%d", i+1), contact.ID)
	}
}

func TestByHand(t *testing.T) {
	t.Parallel()
	lines := exampletest.ByHand(t, run)
	require.Len(t, lines, 3)
	exampletest.CheckLine(t, lines[0], "outcome-bad.json")
	exampletest.CheckLine(t, lines[1], "outcome.json")
	require.Contains(t, lines[2], "the CRM holds 54 contacts")
}
