package client_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// owner answers requests about runs as their owner does, and is silent about all others.
func (w *world) owner(run, verb string, answer func(m *nats.Msg) *nats.Msg) {
	w.t.Helper()
	sub, err := w.nc.Subscribe(subjects.API(subjects.NewRun("default", run), verb), func(m *nats.Msg) {
		reply := answer(m)
		reply.Subject = m.Reply
		_ = w.nc.PublishMsg(reply) // the test waits for it
	})
	require.NoError(w.t, err)
	require.NoError(w.t, w.nc.Flush())
	w.t.Cleanup(func() { _ = sub.Unsubscribe() })
}

func refusal(code fault.Code, message string) *nats.Msg {
	body, _ := json.Marshal(fault.New(code, "%s", message))
	return &nats.Msg{Header: nats.Header{subjects.HeaderStatus: {subjects.StatusError}}, Data: body}
}

const chain = `{"steps":[
	{"id":"a","tool":"echo","arguments":{"n":12345678901234567890,"s":"é"}},
	{"id":"b","tool":"echo","arguments":{"from":"$ref:a.n","all":"$ref:a","text":"n=$ref:a.n"}},
	{"id":"c","tool":"echo","arguments":{"from":"$ref:b.missing"}},
	{"id":"d","tool":"echo","arguments":{"from":"$ref:c"}}],"output_steps":["b"]}`

// chainDocument is the run of chain in which c failed.
func chainDocument() *outcome.Run {
	doc := document("r", chain, outcome.Results{{Step: "b", JSON: json.RawMessage(`{"from":12345678901234567890}`)}})
	doc.Status, doc.Outcome.Status = outcome.Partial, outcome.Partial
	now := doc.Finished
	doc.Steps = []outcome.Step{
		{ID: "a", Tool: "echo", Status: outcome.StepSucceeded, Attempts: 1, Decided: now, Result: json.RawMessage(`{"n":12345678901234567890,"s":"é"}`)},
		{ID: "b", Tool: "echo", Status: outcome.StepSucceeded, Attempts: 2, Decided: now},
		{ID: "c", Tool: "echo", Status: outcome.StepFailed, Attempts: 1, Decided: now, Error: fault.New(fault.ToolTerminal, "no")},
		{ID: "d", Tool: "echo", Status: outcome.StepSkipped, Decided: now, Error: fault.New(fault.Skipped, "Skipped because dependency 'c' failed")},
	}
	doc.Stats = outcome.Stats{Steps: 4, Succeeded: 2, Failed: 1, Skipped: 1}
	doc.Outcome.Stats = doc.Stats
	return doc
}

func (w *world) keep(doc *outcome.Run) {
	w.t.Helper()
	_, err := w.store.Archive.CreateHistory(w.ctx(), subjects.NewRun(doc.Tenant, doc.Run), "", doc)
	require.NoError(w.t, err)
}

func TestGetRecomputesArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.keep(chainDocument())
	doc, err := w.client.Get(w.ctx(), "r")
	require.NoError(t, err)
	require.JSONEq(t, `{"n":12345678901234567890,"s":"é"}`, string(doc.Steps[0].Arguments))
	require.Equal(t, `{"from":12345678901234567890,"all":{"n":12345678901234567890,"s":"é"},"text":"n=12345678901234567890"}`, string(doc.Steps[1].Arguments))
	require.Equal(t, `{"from":null}`, string(doc.Steps[2].Arguments))
	require.Nil(t, doc.Steps[3].Arguments, "it never ran")
}

func TestGetReadsLargeResults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	large := append(append([]byte(`{"n":7,"s":"`), bytes.Repeat([]byte("x"), 1<<20)...), `"}`...)
	handle, err := w.store.Archive.PutBlob(w.ctx(), "", "default/r/1/a/1/x", large)
	require.NoError(t, err)
	doc := chainDocument()
	doc.Steps[0].Result, doc.Steps[0].Blob, doc.Steps[0].Bytes = nil, handle, int64(len(large))
	w.keep(doc)
	doc, err = w.client.Get(w.ctx(), "r")
	require.NoError(t, err)
	require.Equal(t, `{"from":7,"all":`+string(large)+`,"text":"n=7"}`, string(doc.Steps[1].Arguments))
	raw, err := w.client.Blob(w.ctx(), doc.Steps[0].Blob)
	require.NoError(t, err)
	require.Equal(t, large, raw)

	// Where a blob is gone, what it went into is left out, and all else is there.
	doc = chainDocument()
	doc.Run = "gone"
	doc.Steps[0].Result, doc.Steps[0].Blob = nil, &outcome.Handle{Name: "default/gone/1/a/1/x", Size: 9, SHA256: handle.SHA256}
	w.keep(doc)
	doc, err = w.client.Get(w.ctx(), "gone")
	require.NoError(t, err)
	require.NotNil(t, doc.Steps[0].Arguments)
	require.Nil(t, doc.Steps[1].Arguments)
	require.NotNil(t, doc.Steps[2].Arguments)
}

func TestGetAsksTheOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	doc := chainDocument()
	doc.Status, doc.Outcome = outcome.Running, nil
	asked := 0
	w.owner("r", subjects.VerbGet, func(*nats.Msg) *nats.Msg {
		if asked++; asked == 1 {
			return refusal(fault.NotFound, "not yet") // then the history is read once more, and there is none
		}
		return &nats.Msg{Data: doc.JSON()}
	})
	_, err := w.client.Get(w.ctx(), "r")
	require.Equal(t, fault.NotFound, fault.CodeOf(err), "%v", err)
	got, err := w.client.Get(w.ctx(), "r")
	require.NoError(t, err)
	require.Equal(t, outcome.Running, got.Status)
	require.JSONEq(t, `{"n":12345678901234567890,"s":"é"}`, string(got.Steps[0].Arguments))
}

// An owner that has yet to read a plan which was accepted a moment ago says that it knows no such run.
func TestTheOwnerOfARunSubmittedAMomentAgoIsAskedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit("r")
	doc := chainDocument()
	doc.Status, doc.Outcome = outcome.Running, nil
	answers := func(good *nats.Msg) func(*nats.Msg) *nats.Msg {
		asked := 0
		return func(*nats.Msg) *nats.Msg {
			if asked++; asked < 3 {
				return refusal(fault.NotFound, "not yet")
			}
			return good
		}
	}
	w.owner("r", subjects.VerbGet, answers(&nats.Msg{Data: doc.JSON()}))
	got, err := w.client.Get(w.ctx(), "r")
	require.NoError(t, err)
	require.Equal(t, outcome.Running, got.Status)
	w.owner("r", subjects.VerbCancel, answers(&nats.Msg{Data: []byte(`{}`)}))
	require.NoError(t, cancelled(w.client.Cancel(w.ctx(), "r", "me")))
}

// Who waits for a run that its owner leaves alone, since that is older, is told once, and goes on when a newer one owns it; what
// this program can't read itself ends the wait.
func TestARunThatIsLeftAloneIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	doc := chainDocument()
	asked := 0
	w.owner("r", subjects.VerbGet, func(*nats.Msg) *nats.Msg {
		if asked++; asked < 3 {
			return refusal(fault.NewerVersion, "run 'r' was written by a newer version of Stepjet")
		}
		return &nats.Msg{Data: doc.JSON()}
	})
	watch, err := w.client.NewWatcher(w.ctx(), "r")
	require.NoError(t, err)
	defer watch.Close()
	var alone []client.Event
	var out *outcome.Outcome
	require.NoError(t, watch.Follow(w.ctx(), func(e client.Event) {
		switch e.Kind {
		case client.EventLeftAlone:
			alone = append(alone, e)
		case subjects.EventEnd:
			out = e.Outcome
		}
	}))
	require.NotNil(t, out)
	require.Equal(t, 3, asked)
	require.Len(t, alone, 1)
	require.Equal(t, fault.NewerVersion, alone[0].Error.Code)
	require.Contains(t, alone[0].Error.Message, "was written by a newer version")

	_, err = w.client.Get(w.ctx(), "r")
	require.NoError(t, err)
	w.owner("never", subjects.VerbGet, func(*nats.Msg) *nats.Msg { return refusal(fault.NewerVersion, "no") })
	_, err = w.client.Get(w.ctx(), "never")
	require.Equal(t, fault.NewerVersion, fault.CodeOf(err), "who looks once is told at once")
	w.owner("odd", subjects.VerbGet, func(*nats.Msg) *nats.Msg {
		return &nats.Msg{Header: nats.Header{subjects.HeaderVersion: {"99"}}, Data: doc.JSON()}
	})
	other, err := w.client.NewWatcher(w.ctx(), "odd")
	require.NoError(t, err)
	defer other.Close()
	require.Equal(t, fault.NewerVersion, fault.CodeOf(other.Follow(w.ctx(), func(client.Event) {})), "another orchestrator knows no better what this program can read")
}

// A document that is too large for a message comes through a blob.
func TestGetFollowsTheOwnersHandle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	doc := chainDocument()
	doc.Status, doc.Outcome = outcome.Running, nil
	handle, err := w.store.Archive.PutBlob(w.ctx(), "", "default/r/1/=get/x", doc.JSON())
	require.NoError(t, err)
	doc.Blob = handle
	w.owner("r", subjects.VerbGet, func(*nats.Msg) *nats.Msg { return &nats.Msg{Data: doc.Head()} })
	got, err := w.client.Get(w.ctx(), "r")
	require.NoError(t, err)
	require.Len(t, got.Steps, 4)
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.client.Ping(w.ctx())
	require.Equal(t, fault.NotReady, fault.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, "no orchestrator answers on api.ping")
}

func TestPing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sub, err := w.nc.Subscribe(subjects.PingSubject, func(m *nats.Msg) { _ = m.Respond([]byte(`{"name":"o1","version":"v1"}`)) })
	require.NoError(t, err)
	defer func() { _ = sub.Unsubscribe() }()
	require.NoError(t, w.nc.Flush())
	s, err := w.client.Ping(w.ctx())
	require.NoError(t, err)
	require.Equal(t, client.Server{Name: "o1", Version: "v1"}, s)
}

func TestCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	by := make(chan string, 1)
	w.owner("r", subjects.VerbCancel, func(m *nats.Msg) *nats.Msg {
		by <- string(m.Data)
		return &nats.Msg{Data: []byte(`{"run":"r","status":"cancelled"}`)}
	})
	require.NoError(t, cancelled(w.client.Cancel(w.ctx(), "r", `Ada "the boss"`)))
	require.JSONEq(t, `{"by":"Ada \"the boss\""}`, <-by)
	for run, want := range map[string]client.Stopped{
		"counts":  {Status: outcome.Cancelled, By: "ann"},
		"stood":   {Status: outcome.Cancelled, By: "bob", Already: true},
		"expired": {Status: outcome.Expired, By: "deadline", Already: true},
	} {
		reply := wire.Cancelled{Run: run, Status: want.Status, By: want.By, Already: want.Already}
		w.owner(run, subjects.VerbCancel, func(*nats.Msg) *nats.Msg { return &nats.Msg{Data: reply.Body()} })
		stopped, err := w.client.Cancel(w.ctx(), run, "ann")
		require.NoError(t, err)
		require.Equal(t, want, *stopped)
	}

	w.owner("done", subjects.VerbCancel, func(*nats.Msg) *nats.Msg { return refusal(fault.NotFound, "no active run") })
	require.Equal(t, fault.NotFound, fault.CodeOf(cancelled(w.client.Cancel(w.ctx(), "done", ""))))
	w.finish("done", planA, resultA)
	_, err := w.client.Cancel(w.ctx(), "done", "")
	require.Equal(t, fault.AlreadyFinished, fault.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, "succeeded")

	w.owner("late", subjects.VerbCancel, func(*nats.Msg) *nats.Msg { return refusal(fault.AlreadyFinished, "over") })
	require.Equal(t, fault.AlreadyFinished, fault.CodeOf(cancelled(w.client.Cancel(w.ctx(), "late", ""))))
}

// Who answers a question is told whether theirs counted, as the owner says.
func TestAnAnswerSaysWhetherItStoodBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n, already := range []bool{false, true} {
		run := fmt.Sprint("asks", n)
		reply := wire.AnswerReply{Run: run, Step: "s", Answered: outcome.Answered{Decision: outcome.DecisionApproved, By: "ann"}, Already: already}
		w.owner(run, subjects.VerbApprove, func(*nats.Msg) *nats.Msg { return &nats.Msg{Data: reply.Body()} })
		stands, err := w.client.Approve(w.ctx(), &outcome.Question{Run: run, Step: "s", Digest: "d", Kind: outcome.Approval}, client.Answer{By: "ann"})
		require.NoError(t, err)
		require.Equal(t, "ann", stands.By)
		require.Equal(t, already, stands.Already)
	}
}

func TestListIsNewestFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.newClient(client.Config{Tenant: "acme"})
	_, err := other.Submit(w.ctx(), []byte(planA), client.SubmitOptions{Run: "theirs"})
	require.NoError(t, err)
	for i := range 5 {
		run := fmt.Sprintf("r%d", i)
		w.submit(run)
		if i%2 == 0 {
			w.finish(run, planA, resultA) // its plan record is still there
		}
	}
	partial := chainDocument()
	partial.Run = "partial"
	w.keep(partial) // its plan record is not

	names := func(o client.ListOptions) (all []string) {
		t.Helper()
		runs, err := w.client.List(w.ctx(), o)
		require.NoError(t, err)
		for _, r := range runs {
			require.Equal(t, "default", r.Tenant)
			all = append(all, r.Run+" "+string(r.Status))
		}
		return all
	}
	require.Equal(t, []string{"partial partial", "r4 succeeded", "r3 running", "r2 succeeded", "r1 running", "r0 succeeded"}, names(client.ListOptions{}))
	require.Equal(t, []string{"r3 running", "r1 running"}, names(client.ListOptions{Status: []outcome.RunStatus{outcome.Running}}))
	require.Equal(t, []string{"partial partial", "r4 succeeded"}, names(client.ListOptions{Status: []outcome.RunStatus{outcome.Succeeded, outcome.Partial}, Limit: 2}))
	require.Empty(t, names(client.ListOptions{Status: []outcome.RunStatus{outcome.Failed}}))
	runs, err := w.client.List(w.ctx(), client.ListOptions{Limit: 1})
	require.NoError(t, err)
	require.Equal(t, 4, runs[0].Stats.Steps)
	require.Equal(t, []string{"echo"}, runs[0].Tools)
}

// BenchmarkList measures a list of 10,000 finished runs of 20 steps, with heads beside their documents and, as older
// orchestrators wrote them, without: "go test ./client -run - -bench List -benchtime 5x".
func BenchmarkList(b *testing.B) {
	for _, headed := range []bool{true, false} {
		b.Run(fmt.Sprintf("heads=%t", headed), func(b *testing.B) {
			const runs = 10_000
			nc := natstest.Connect(b, natstest.Start(b))
			store, err := kv.Setup(b.Context(), nc, kv.Config{})
			require.NoError(b, err)
			defer store.Close()
			c, err := client.New(b.Context(), nc, client.Config{})
			require.NoError(b, err)
			defer c.Close()
			js, err := jetstream.New(nc)
			require.NoError(b, err)
			for i := range runs {
				doc := document(fmt.Sprint("r", i), chain, outcome.Results{{Step: "b", JSON: json.RawMessage(`{"n":1}`)}})
				for k := range 20 {
					doc.Steps = append(doc.Steps, outcome.Step{
						ID: fmt.Sprint("step", k), Tool: fmt.Sprint("tool", k%5), Status: outcome.StepSucceeded, Attempts: 1,
						Ready: doc.Submitted, Started: doc.Submitted, Ended: doc.Finished, Decided: doc.Finished, Worker: "worker-1", Bytes: 9,
					})
				}
				m := nats.NewMsg(subjects.BucketSubject(subjects.HistoryBucket, subjects.NewRun("default", doc.Run).Key()))
				if m.Data = doc.JSON(); headed {
					m.Header = wire.Documented(doc, nil)
				} else {
					m.Header = wire.Versioned()
				}
				_, err := js.PublishMsgAsync(m)
				require.NoError(b, err)
			}
			<-js.PublishAsyncComplete()
			for b.Loop() {
				list, err := c.List(b.Context(), client.ListOptions{Limit: -1})
				require.NoError(b, err)
				require.Len(b, list, runs)
				require.Len(b, list[0].Tools, 6)
			}
		})
	}
}

func TestToolsOfATenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, def := range []string{
		`{"name":"everybodys","inputSchema":{"type":"object"}}`,
		`{"name":"theirs","inputSchema":{"type":"object"},"tenants":["acme"]}`,
		`{"name":"ours","inputSchema":{"type":"object"},"tenants":["acme","default"]}`,
	} {
		_, err := w.store.Registry.Register(w.ctx(), []byte(def))
		require.NoError(t, err)
	}
	tools, err := w.client.Tools(w.ctx())
	require.NoError(t, err)
	require.Len(t, tools, 2)
	require.Equal(t, "everybodys", tools[0].Name)
	require.Equal(t, "ours", tools[1].Name)
}

func TestAFullSetOfClientsEndsCleanly(t *testing.T) {
	t.Parallel()
	srv := newWorld(t).srv
	for range 20 { // Open and Close under stress: nothing is left behind (goleak)
		cl, err := client.New(t.Context(), natstest.Connect(t, srv), client.Config{})
		require.NoError(t, err)
		cl.Close()
	}
}
