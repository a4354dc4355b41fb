package orchestrator_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/doctor"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/internal/version"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// kindOf names the kind of a message by its subject; "" for what is not Stepjet's own form: JetStream's requests and
// answers, acknowledgements, and the object store's chunks.
func kindOf(m *nats.Msg, answers map[string]bool) string {
	first, rest, _ := strings.Cut(m.Subject, ".")
	switch {
	case answers[m.Subject]:
		return "answer"
	case first == "$KV":
		if rec, ok := subjects.ParseRecord(m.Subject); ok {
			return map[subjects.RecordKind]string{
				subjects.PlanKind: "plan record", subjects.StartKind: "start", subjects.StopKind: "stop", subjects.StepKind: "record", subjects.ClaimKind: "claim",
			}[rec.Kind]
		}
		bucket, key, _ := strings.Cut(rest, ".")
		if i := strings.IndexByte(key, '.'); bucket == subjects.ToolsBucket && i > 0 {
			return bucket + " " + key[:i]
		}
		return bucket
	case first == "event":
		return "event " + m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	case first == "api":
		if tokens := strings.Split(rest, "."); len(tokens) > 1 { // a partition, or "tools", stands before the verb
			rest = tokens[1]
		}
		return "api " + rest
	case strings.HasPrefix(m.Subject, "$") || strings.HasPrefix(m.Subject, "_"):
		return ""
	}
	return first
}

// TestEveryMessageSaysItsVersion listens to all that goes through the server while everything is done that Stepjet can
// do.
func TestEveryMessageSaysItsVersion(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	var mu sync.Mutex
	kinds, bare, answers := map[string]int{}, map[string]int{}, map[string]bool{}
	_, err := natstest.Connect(t, srv).Subscribe(">", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		kind := kindOf(m, answers)
		if kind == "" || m.Header.Get("Status") != "" {
			return
		}
		kinds[kind]++
		if strings.HasPrefix(kind, "api") && m.Reply != "" {
			answers[m.Reply] = true
		}
		if m.Header.Get(subjects.HeaderVersion) != subjects.Version {
			bare[kind+" on "+m.Subject]++
		}
	})
	require.NoError(t, err)
	s := startOn(t, srv)
	once, err := worker.New(natstest.Connect(t, srv), worker.Config{Name: "once", Logger: logger(t)})
	require.NoError(t, err)
	worker.Handle(once, "once", func(context.Context, struct{}) (string, error) { return "done", nil }, worker.Contract(tool.Orchestration{Delivery: tool.AtMostOnce}))
	s.background(once.Run, once.Ready())

	const all = `{"steps":[{"id":"o","tool":"once"},{"id":"f","tool":"flaky"},{"id":"b","tool":"big","arguments":{"bytes":300000}},{"id":"x","tool":"fail"},
		{"id":"l","tool":"length","arguments":{"text":"$ref:b.text"}}]}`
	require.Equal(t, outcome.Partial, s.run(all, "all").Status)
	_, err = s.client.Submit(ctx(t), []byte(`{"steps":[{"id":"z","tool":"echo"}]}`), client.SubmitOptions{Run: "all"})
	require.Equal(t, fault.Conflict, fault.CodeOf(err))
	held := s.submit(`{"steps":[{"id":"g","tool":"gate"}]}`, "held")
	<-s.tools.begun
	_, err = s.client.Get(ctx(t), "held")
	require.NoError(t, err)
	// Somebody's other plan under the id of a run that goes on.
	require.NoError(t, s.nc.PublishMsg(&nats.Msg{Subject: subjects.Submit("default", subjects.Encode("held")), Header: nats.Header{subjects.HeaderVersion: {"1"}}, Data: []byte(`{}`)}))
	require.NoError(t, cancelled(s.client.Cancel(ctx(t), "held", "ann")))
	require.Equal(t, outcome.Cancelled, s.wait(held).Status)
	_, err = s.store.Requests.RequestOverride(ctx(t), "echo", []byte(`{"by":"ann"}`))
	require.NoError(t, err)
	_, err = s.store.Requests.RequestOverride(ctx(t), "echo", nil)
	require.NoError(t, err)
	pong, err := s.client.Ping(ctx(t))
	require.NoError(t, err)
	require.Equal(t, version.Stepjet(), pong.Version)

	for _, kind := range []string{
		"answer", "api cancel", "api get", "api override", "api ping", "api register", "cancel", "claim", "dead", "event conflict", "event end", "event start",
		"event step", "history", "members", "notify", "plan", "record", "sched", "start", "step", "stop", "tools", "tools def", "tools override",
	} {
		require.Eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return kinds[kind] > 0
		}, patience, 10*time.Millisecond, "never seen: %s, of %v", kind, kinds)
	}
	mu.Lock()
	defer mu.Unlock()
	require.Empty(t, bare)
}

// TestRequestsOfANewerVersionAreLeftAlone: nobody answers them, and what they ask for is not done.
func TestRequestsOfANewerVersionAreLeftAlone(t *testing.T) {
	t.Parallel()
	s := start(t)
	held := s.submit(`{"steps":[{"id":"g","tool":"gate"}]}`, "held")
	<-s.tools.begun
	run := subjects.NewRun("default", "held")
	for _, subject := range []string{
		subjects.PingSubject, subjects.DemandSubject, subjects.WaitingSubject, subjects.QueuesSubject, subjects.API(run, subjects.VerbGet), subjects.API(run, subjects.VerbCancel), subjects.Override("echo"), subjects.Remove("echo"),
		subjects.Register("echo"),
	} {
		m := &nats.Msg{Subject: subject, Header: nats.Header{subjects.HeaderVersion: {"2"}}, Data: []byte(`{"name":"echo","by":"ann"}`)}
		_, err := s.nc.RequestMsg(m, 200*time.Millisecond)
		require.ErrorIs(t, err, nats.ErrTimeout, subject)
	}
	// Nor does a worker heed such a cancel, or a client such an end.
	doc, err := s.client.Get(ctx(t), "held")
	require.NoError(t, err)
	attempt := subjects.Attempt{Run: run, Generation: doc.Generation, Tool: "gate", Step: "g", Number: 1}
	later := nats.Header{subjects.HeaderVersion: {"2"}}
	require.NoError(t, s.nc.PublishMsg(&nats.Msg{Subject: subjects.Cancel(attempt), Header: later}))
	end, err := json.Marshal(&outcome.Outcome{Run: "held", Status: outcome.Failed, Results: outcome.Results{}})
	require.NoError(t, err)
	require.NoError(t, s.nc.PublishMsg(&nats.Msg{Subject: subjects.Event(run, subjects.EventEnd), Header: later, Data: end}))
	require.NoError(t, s.nc.Flush())
	o, err := s.store.Registry.OverrideOf(ctx(t), "echo")
	require.NoError(t, err)
	require.Nil(t, o)
	close(s.tools.gate)
	require.Equal(t, outcome.Succeeded, s.wait(held).Status)
	require.Equal(t, outcome.Succeeded, s.run(`{"steps":[{"id":"e","tool":"echo"}]}`, "after").Status, "the tool is still there")
}

// TestARunOfANewerVersionIsSaidToBeOne: whoever asks for it is told, the doctor says who leaves it alone, and what it
// says to do removes it.
func TestARunOfANewerVersionIsSaidToBeOne(t *testing.T) {
	t.Parallel()
	s := start(t)
	m := &nats.Msg{Subject: subjects.Submit("default", "later"), Header: nats.Header{subjects.HeaderVersion: {"9"}}, Data: []byte(`{"steps":[{"id":"e","tool":"echo"}]}`)}
	_, err := s.nc.RequestMsg(m, patience)
	require.NoError(t, err)
	s.run(`{"steps":[{"id":"e","tool":"echo"}]}`, "now") // read after it
	_, err = s.client.Get(ctx(t), "later")
	require.Equal(t, fault.NewerVersion, fault.CodeOf(err), "%v", err)

	about := func() (found []doctor.Finding) {
		r, err := doctor.Examine(ctx(t), s.nc, doctor.Options{Stale: time.Nanosecond, Mend: true})
		require.NoError(t, err)
		for _, f := range r.Findings {
			if f.Check == "run" && strings.Contains(f.About, "later") {
				found = append(found, f)
			}
		}
		return found
	}
	found := about()
	require.Len(t, found, 1)
	require.Equal(t, doctor.Notable, found[0].Health)
	require.Contains(t, found[0].Found, "its owner leaves it alone")
	_, purge, ok := strings.Cut(found[0].Fix, "remove it: nats stream purge KV_runs_0 --subject '")
	require.True(t, ok, found[0].Fix)
	require.NoError(t, s.store.Ledger.PurgeSubject(ctx(t), strings.TrimSuffix(purge, "'")))
	require.Empty(t, about())
	require.Equal(t, outcome.Succeeded, s.run(`{"steps":[{"id":"e","tool":"echo"}]}`, "later").Status, "its id is free")
}

// TestAnOutcomeOfANewerVersionIsLeftAlone: an id whose outcome this version can't read is not run again.
func TestAnOutcomeOfANewerVersionIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := start(t)
	js, err := s.nc.JetStream()
	require.NoError(t, err)
	run := subjects.NewRun("default", "later")
	later := nats.Header{subjects.HeaderVersion: {"2"}}
	_, err = js.PublishMsg(&nats.Msg{Subject: subjects.BucketSubject(subjects.HistoryBucket, run.Key()), Header: later, Data: []byte(`{"entirely":"different"}`)})
	require.NoError(t, err)
	_, err = s.client.Submit(ctx(t), []byte(`{"steps":[{"id":"e","tool":"echo"}]}`), client.SubmitOptions{Run: "later"})
	require.Equal(t, fault.NewerVersion, fault.CodeOf(err))
	_, err = s.nc.Request(subjects.Submit("default", subjects.Encode("later")), []byte(`{"steps":[{"id":"e","tool":"echo"}]}`), patience)
	require.NoError(t, err, "a client that does not look gets its plan accepted")
	require.Equal(t, outcome.Succeeded, s.run(`{"steps":[{"id":"e","tool":"echo"}]}`, "after").Status)
	require.Zero(t, s.tools.calls["default/later"])
	starts := 0
	for key := range s.tools.calls {
		if strings.HasPrefix(key, "default/later/") {
			starts++
		}
	}
	require.Zero(t, starts)
	attached, err := s.client.Attach("later")
	require.NoError(t, err)
	_, err = attached.Wait(ctx(t))
	require.Equal(t, fault.NewerVersion, fault.CodeOf(err))
}
