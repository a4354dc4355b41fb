package main

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/exampletest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "whsec-7f3a9c51d2"

func receiving(t *testing.T) *receivers {
	t.Helper()
	r, err := listen(secret)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.close()) })
	return r
}

func start(t *testing.T, d *dispatcher, o exampletest.Options, change ...func(*tool.Orchestration)) *exampletest.World {
	t.Helper()
	t.Cleanup(d.http.CloseIdleConnections)
	o.Host, o.Tools = d.host, exampletest.ReadTools(t, definitions)
	for _, f := range change {
		f(o.Tools.Of(t, "dispatch_event").Orchestration)
	}
	return exampletest.Start(t, o)
}

func (r *receivers) statuses(name string) (all []int) {
	for _, x := range r.receipts(name) {
		all = append(all, x.status)
	}
	return all
}

func TestTheToolOwnsItsRetries(t *testing.T) {
	t.Parallel()
	r := receiving(t)
	w := start(t, scene(r), exampletest.Options{})
	out := *w.Run("plan.json", client.SubmitOptions{Run: "webhooks", Context: signedWith(secret)})
	out.Stats.BytesKeptOut, out.Stats.TokensKeptOut = 0, 0 // of the subscribers' addresses, whose port differs from run to run
	exampletest.Check(t, &out, "outcome.json")

	for _, steady := range []string{"billing", "shipping", "mail", "stock"} {
		require.Equal(t, []int{http.StatusAccepted}, r.statuses(steady))
	}
	late := r.receipts("search")
	require.Equal(t, []int{http.StatusServiceUnavailable, http.StatusServiceUnavailable, http.StatusAccepted}, r.statuses("search"))
	for i := 1; i < len(late); i++ {
		require.GreaterOrEqual(t, late[i].at.Sub(late[i-1].at), time.Second, "Retry-After is kept")
		require.Equal(t, late[0].key, late[i].key)
	}
	require.Equal(t, []int{500, 500, 500, 500}, r.statuses("audit"))

	dead, err := w.Client.DeadLetters(exampletest.Context(t), client.DeadOptions{})
	require.NoError(t, err)
	require.Len(t, dead, 1)
	require.Equal(t, "notify=3", dead[0].Step)
	require.Equal(t, 4, dead[0].Attempts)
	require.Equal(t, "audit answered 500 Internal Server Error", dead[0].Error.Message)
}

func TestAWrongSignatureIsFinal(t *testing.T) {
	t.Parallel()
	r := receiving(t)
	w := start(t, scene(r), exampletest.Options{})
	for why, o := range map[string]client.SubmitOptions{
		"search answered 401 Unauthorized":      {Context: signedWith("another secret")},
		"the run's context has no " + secretKey: {},
	} {
		out := w.Run("plan.json", o)
		require.Contains(t, string(out.JSON()), `"summary":{"ok":0,"error":6}`)
		require.Contains(t, string(out.JSON()), why)
	}
	require.Equal(t, []int{http.StatusUnauthorized}, r.statuses("search"), "no second attempt")
}

func TestNeverMoreThanTwentyFiveAtOnce(t *testing.T) {
	t.Parallel()
	r := receiving(t)
	d := scene(r)
	d.subscribers = nil
	for i := range 60 {
		d.subscribers = append(d.subscribers, r.subscribers(fmt.Sprint("shop-", i))...)
	}
	around, open := exampletest.Gate("dispatch_event")
	defer open()
	w := start(t, d, exampletest.Options{Around: around}, func(o *tool.Orchestration) { o.TimeoutMS = 60_000 }) // being held back must not count
	run := w.Submit("plan.json", client.SubmitOptions{Context: signedWith(secret)})
	require.NoError(t, w.Meter.Await(exampletest.Context(t), "dispatch_event", 25))
	require.Contains(t, w.Waiting(run), "fan-out limit 25 of 25")
	open()
	require.Equal(t, outcome.Succeeded, w.Wait(run).Status)
	require.Equal(t, exampletest.Usage{Calls: 60, Most: 25}, w.Meter.Of("dispatch_event"))
}

func TestByHand(t *testing.T) {
	t.Parallel()
	lines := exampletest.ByHand(t, run)
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], `"status":"succeeded"`)
	require.Equal(t, "Dead letter: notify=3 after 4 attempts: audit answered 500 Internal Server Error", lines[1])
}
