package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// permissions adds a user "limited" with some permissions to the server; everybody else may do anything.
func permissions(t *testing.T, rules string) func(*embedded.Options) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats.conf")
	text := "authorization: {users: [{user: all, password: x}, {user: limited, password: x, permissions: {" + rules + "}}]}\nno_auth_user: all\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return func(o *embedded.Options) { o.ConfigFile, o.Listen = file, "127.0.0.1:0" }
}

func limited(t *testing.T, srv *embedded.Server) *nats.Conn {
	t.Helper()
	return natstest.Connect(t, srv, nats.UserInfo("limited", "x"))
}

func (w *world) submit(run string) *client.Run {
	w.t.Helper()
	r, err := w.client.Submit(w.ctx(), []byte(planA), client.SubmitOptions{Run: run})
	require.NoError(w.t, err)
	return r
}

func TestWaitTakesTheOutcomeFromItsNotice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.submit("r")
	doc := document("r", planA, resultA)
	w.announce("r", doc.Outcome.JSON())
	w.announce("r", doc.Outcome.JSON()) // twice is as good as once
	out, err := r.Wait(w.ctx())
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, out.Status)
	require.Equal(t, string(doc.Outcome.JSON()), string(out.JSON()))
	again, err := r.Wait(w.ctx())
	require.NoError(t, err)
	require.Equal(t, string(out.JSON()), string(again.JSON()))
}

// A notice may be lost. The history tells all the same.
func TestWaitReadsTheHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.submit("r")
	w.finish("r", planA, resultA)
	out, err := r.Wait(w.ctx())
	require.NoError(t, err)
	require.Equal(t, `{"x":1.0}`, string(out.Results[0].JSON))
}

// The notice of a large outcome holds no results; a notice that can't be read is as good as none.
func TestWaitReadsTheHistoryOfALargeOutcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, short := range []string{`{"run":"r","status":"succeeded","stats":{"steps":1}}`, `{`, ``, `null`, `[]`} {
		run := fmt.Sprintf("r%d", len(short))
		r := w.submit(run)
		w.finish(run, planA, resultA)
		w.announce(run, []byte(short))
		out, err := r.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, `{"x":1.0}`, string(out.Results[0].JSON))
	}
}

// Somebody submits another plan under the same id, maybe through this very client. Who waits for the run is not told a
// wrong outcome by it.
func TestWaitIsNotEndedByAConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.submit("r")
	conflict := outcome.Outcome{Run: "r", Status: outcome.Rejected, Problems: []fault.Problem{{Code: fault.Conflict, Message: "another plan"}}}
	w.announce("r", conflict.JSON())
	short, cancel := context.WithTimeout(w.ctx(), 300*time.Millisecond)
	defer cancel()
	_, err := r.Wait(short)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	w.finish("r", planA, resultA)
	w.announce("r", conflict.JSON())
	out, err := r.Wait(w.ctx())
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, out.Status)
}

// The id was used by another plan whose run ended between the look at the history and the submit.
func TestWaitFindsThatTheIDIsAnotherPlans(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.submit("r")
	w.finish("r", planB, resultA)
	_, err := r.Wait(w.ctx())
	require.Equal(t, fault.Conflict, fault.CodeOf(err), "%v", err)
}

func TestWaitForARejectedPlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.submit("r")
	rejected := outcome.Outcome{Run: "r", Status: outcome.Rejected, Generation: r.Generation(), Problems: []fault.Problem{{Code: fault.UnknownTool, Path: "/steps/0/tool", Message: "no tool"}}}
	w.announce("r", rejected.JSON())
	out, err := r.Wait(w.ctx())
	require.NoError(t, err)
	require.Equal(t, outcome.Rejected, out.Status)
	require.Equal(t, rejected.Problems, out.Problems)
}

func TestAttach(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit("r")
	other := w.newClient(client.Config{})
	r, err := other.Attach("r")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		out, err := r.Wait(w.ctx())
		if err == nil && out.Status != outcome.Succeeded {
			err = errors.New(string(out.Status))
		}
		ended <- err
	}()
	w.finish("r", planA, resultA)
	require.NoError(t, <-ended)

	r, err = other.Attach("nobody")
	require.NoError(t, err)
	_, err = r.Wait(w.ctx())
	require.Equal(t, fault.NotFound, fault.CodeOf(err), "%v", err)
	_, err = other.Attach("")
	require.Equal(t, fault.InvalidID, fault.CodeOf(err))
}

func TestWaitEndsWithContextAndClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.submit("r")
	ctx, cancel := context.WithCancelCause(w.ctx())
	cancel(errors.New("enough"))
	_, err := r.Wait(ctx)
	require.EqualError(t, err, "enough")

	ended := make(chan error, 1)
	go func() {
		_, err := r.Wait(context.Background())
		ended <- err
	}()
	w.client.Close()
	require.Equal(t, fault.NoConnection, fault.CodeOf(<-ended))
	w.client.Close() // again is nothing
}

// A thousand waits cost one subscription, and no goroutine but the waiters' own. Not parallel: it counts those of the
// process.
func TestManyWaits(t *testing.T) {
	const n = 1000
	w := newWorld(t)
	runs := make([]*client.Run, n)
	for i := range runs {
		runs[i] = w.submit(fmt.Sprintf("r%d", i))
	}
	before := runtime.NumGoroutine()
	var wg sync.WaitGroup
	errs := make(chan error, n)
	for i, r := range runs {
		wg.Go(func() {
			out, err := r.Wait(w.ctx())
			if err == nil && out.Run != fmt.Sprintf("r%d", i) {
				err = fmt.Errorf("run %d got the outcome of %s", i, out.Run)
			}
			errs <- err
		})
	}
	require.Less(t, runtime.NumGoroutine(), before+n+200)
	token := w.record("r0").Header.Get(subjects.HeaderClient)
	for i := range runs {
		run := fmt.Sprintf("r%d", i)
		if i%10 == 0 { // every tenth notice is lost
			w.finish(run, planA, resultA)
			continue
		}
		name := subjects.NewRun("default", run)
		require.NoError(t, w.nc.Publish(subjects.Notify(name, token), document(run, planA, resultA).Outcome.JSON()))
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
}

// departing is a client with a run, of a server that can go away and come back to where it was.
type departing struct {
	ctx     context.Context
	options embedded.Options
	srv     *embedded.Server
	nc      *nats.Conn
	store   *kv.Store
	client  *client.Client
	run     *client.Run
}

func newDeparting(t *testing.T) *departing {
	t.Helper()
	d := &departing{options: embedded.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"}}
	var err error
	d.srv, err = embedded.Start(d.options)
	require.NoError(t, err)
	d.options.Listen = d.srv.URL()[len("nats://"):]
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	d.ctx = ctx
	d.nc, err = nats.Connect(d.srv.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(d.nc.Close)
	d.store, err = kv.Setup(d.ctx, d.nc, kv.Config{})
	require.NoError(t, err)
	t.Cleanup(d.store.Close)
	d.client, err = client.New(d.ctx, d.nc, client.Config{})
	require.NoError(t, err)
	t.Cleanup(d.client.Close)
	d.run, err = d.client.Submit(d.ctx, []byte(planA), client.SubmitOptions{Run: "r"})
	require.NoError(t, err)
	return d
}

// The server goes away and comes back; what it announced meanwhile was announced to nobody.
func TestWaitSurvivesAReconnect(t *testing.T) {
	t.Parallel()
	d := newDeparting(t)

	d.srv.Shutdown()
	srv, err := embedded.Start(d.options)
	require.NoError(t, err)
	defer srv.Shutdown()
	require.Eventually(t, func() bool {
		_, err := d.store.Archive.CreateHistory(d.ctx, subjects.NewRun("default", "r"), "", document("r", planA, resultA))
		return err == nil
	}, patience, 50*time.Millisecond)
	out, err := d.run.Wait(d.ctx)
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, out.Status)
}

// What was announced is that the run is over; its outcome is large and has to be read, and the server is away for longer
// than any single request is repeated.
func TestWaitGoesOnWhileALargeOutcomeCanNotBeRead(t *testing.T) {
	t.Parallel()
	d := newDeparting(t)
	name := subjects.NewRun("default", "r")
	e, err := d.store.Ledger.Read(d.ctx, subjects.PlanRecord(name, 1))
	require.NoError(t, err)
	_, err = d.store.Archive.CreateHistory(d.ctx, name, "", document("r", planA, resultA))
	require.NoError(t, err)
	require.NoError(t, d.nc.Publish(subjects.Notify(name, e.Header.Get(subjects.HeaderClient)), []byte(`{"status":"succeeded"}`)))
	require.NoError(t, d.nc.Flush())

	d.srv.Shutdown()
	const away = 17 * time.Second
	back := make(chan *embedded.Server, 1)
	time.AfterFunc(away, func() {
		srv, err := embedded.Start(d.options)
		assert.NoError(t, err)
		back <- srv
	})
	out, err := d.run.Wait(d.ctx)
	(<-back).Shutdown()
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, out.Status)
	require.NotNil(t, out.Results)
}

// Who looks at a run goes on where the server is away for longer than any single request is repeated.
func TestFollowGoesOnWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	d := newDeparting(t)
	w, err := d.client.NewWatcher(d.ctx, "r")
	require.NoError(t, err)
	defer w.Close()
	d.srv.Shutdown()
	const away = 17 * time.Second
	back := make(chan *embedded.Server, 1)
	time.AfterFunc(away, func() {
		srv, err := embedded.Start(d.options)
		assert.NoError(t, err)
		_, err = d.store.Archive.CreateHistory(d.ctx, subjects.NewRun("default", "r"), "", document("r", planA, resultA))
		assert.NoError(t, err)
		back <- srv
	})
	var last client.Event
	err = w.Follow(d.ctx, func(e client.Event) { last = e })
	(<-back).Shutdown()
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, last.Outcome.Status)
}

// Who hears that a run is over and asks a copy of the history that does not have it yet asks again.
func TestWaitGoesOnWhereALargeOutcomeIsNotThereYet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cl, err := client.New(w.ctx(), w.nc, client.Config{})
	require.NoError(t, err)
	defer cl.Close()
	r, err := cl.Submit(w.ctx(), []byte(planA), client.SubmitOptions{Run: "r"})
	require.NoError(t, err)
	name := subjects.NewRun("default", "r")
	e, err := w.store.Ledger.Read(w.ctx(), subjects.PlanRecord(name, 1))
	require.NoError(t, err)
	require.NoError(t, w.nc.Publish(subjects.Notify(name, e.Header.Get(subjects.HeaderClient)), []byte(`{"status":"succeeded"}`)))
	require.NoError(t, w.nc.Flush())
	time.AfterFunc(time.Second, func() {
		_, err := w.store.Archive.CreateHistory(w.ctx(), name, "", document("r", planA, resultA))
		assert.NoError(t, err)
	})
	out, err := r.Wait(w.ctx())
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, out.Status)
	require.NotNil(t, out.Results)
}

func TestWaitNamesAMissingRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t, permissions(t, `publish: {deny: ["$JS.API.STREAM.MSG.GET.KV_history", "$JS.API.DIRECT.GET.KV_history.>", "$JS.API.DIRECT.GET.KV_history"]}`))
	cl, err := client.New(w.ctx(), limited(t, w.srv), client.Config{})
	require.NoError(t, err)
	defer cl.Close()
	r, err := cl.Submit(w.ctx(), []byte(planA), client.SubmitOptions{})
	require.NoError(t, err)
	_, err = r.Wait(w.ctx())
	require.Equal(t, fault.Permission, fault.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, "KV_history")
}
