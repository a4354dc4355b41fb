package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// till is a tool of the tests': it fails while it is closed, and remembers its calls.
type till struct {
	mu    sync.Mutex
	open  bool
	calls []string
	infos []worker.Info
}

func (c *till) set(open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = open
}

func (c *till) called() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.calls...)
}

func (c *till) charge(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	info, _ := worker.InfoFrom(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, string(args))
	c.infos = append(c.infos, info)
	if !c.open {
		token, _ := info.Context.Get("token")
		return nil, errors.New("the till is closed for " + token)
	}
	return args, nil
}

// charging is a real Stepjet with a worker that hosts charge: two attempts, without a pause.
func charging(t *testing.T, log *slog.Logger) (context.Context, *client.Client, *nats.Conn, *till) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	stack, err := dev.Start(ctx, dev.Options{Dir: t.TempDir(), Logger: log})
	require.NoError(t, err)
	t.Cleanup(stack.Stop)
	connect := func(name string) *nats.Conn {
		nc, err := stack.Connect(ctx, name)
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		return nc
	}
	c := &till{}
	w, err := worker.New(connect("till"), worker.Config{Logger: log})
	require.NoError(t, err)
	worker.Handle(w, "charge", c.charge, worker.InputSchema(json.RawMessage(`{"type":"object"}`)),
		worker.Contract(tool.Orchestration{Retry: &tool.Retry{MaxAttempts: 2}, Backoff: &tool.Backoff{Strategy: tool.None}, ErrorPropagation: tool.PartialSuccess}))
	work, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(work) }()
	t.Cleanup(func() {
		stop()
		select {
		case <-done:
		case <-time.After(patience):
			t.Error("the worker did not end")
		}
	})
	select {
	case <-w.Ready():
	case err := <-done:
		require.NoError(t, err)
	}
	nc := connect("test")
	cl, err := client.New(ctx, nc, client.Config{Logger: log})
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	return ctx, cl, nc, c
}

const chargePlan = `{"steps":[
	{"id":"who","tool":"echo","arguments":{"name":"$$ref:x is no reference","n":1.50}},
	{"id":"pay","tool":"charge","arguments":{"who":"$ref:who.name","n":"$ref:who.n"}},
	{"id":"each","tool":"charge","for_each":{"in":[7,8]},"arguments":{"i":"$ref:item"}},
	{"id":"note","tool":"echo","arguments":{"paid":"$ref:pay.n"}}],"output_steps":["note"]}`

// Who makes a call again that the plan had a person approve of, by its own step, by one around it or as a whole, has one
// asked again; a call that nobody was asked about is just made.
func TestApprovedCallsThatDiedAskAgain(t *testing.T) {
	t.Parallel()
	ctx, cl, _, till := charging(t, nil)
	approve := func(run, step string) {
		require.Eventually(t, func() bool {
			q, err := cl.Question(ctx, run, step)
			if err != nil {
				return false
			}
			_, err = cl.Approve(ctx, q, client.Answer{})
			return err == nil
		}, patience, 5*time.Millisecond)
	}
	for name, x := range map[string]struct{ plan, asks, died string }{
		"step":  {`{"steps":[{"id":"pay","tool":"charge","approval":true}]}`, "pay", "pay"},
		"above": {`{"steps":[{"id":"buy","approval":true,"plan":{"steps":[{"id":"pay","tool":"charge"}]}}]}`, "buy", "buy/pay"},
		"whole": {`{"approval":true,"steps":[{"id":"pay","tool":"charge"}]}`, subjects.RootScope, "pay"},
		"none":  {`{"steps":[{"id":"pay","tool":"charge"},{"id":"asked","tool":"echo","approval":{"timeout":"1ms"}}]}`, "", "pay"},
	} {
		r, err := cl.Submit(ctx, []byte(x.plan), client.SubmitOptions{Run: name})
		require.NoError(t, err)
		if x.asks != "" {
			approve(name, x.asks)
		}
		_, err = r.Wait(ctx)
		require.NoError(t, err)
		d, err := cl.DeadLetter(ctx, name, x.died)
		require.NoError(t, err)
		require.Equal(t, x.asks != "", d.Approval, name)
		before := len(till.called())
		again, err := cl.RetryDead(ctx, d, client.RetryDeadOptions{})
		require.NoError(t, err)
		if d.Approval {
			approve(again.ID(), "pay")
		}
		out, err := cl.SettleDead(ctx, d, again)
		require.NoError(t, err)
		require.Equal(t, outcome.Failed, out.Status, "the till is closed")
		require.Len(t, till.called(), before+2)
	}
}

func TestRealDeadLetters(t *testing.T) {
	t.Parallel()
	ctx, cl, _, till := charging(t, nil)
	out, err := cl.Run(ctx, []byte(chargePlan), client.SubmitOptions{Run: "order 42"})
	require.NoError(t, err)
	require.Equal(t, outcome.Failed, out.Status)
	require.Len(t, till.called(), 6, "%s", out.JSON())

	letters, err := cl.DeadLetters(ctx, client.DeadOptions{Tool: "charge"})
	require.NoError(t, err)
	var steps []string
	for _, d := range letters {
		require.Equal(t, "order 42", d.Run)
		require.Equal(t, 2, d.Attempts)
		steps = append(steps, d.Step)
	}
	require.ElementsMatch(t, []string{"pay", "each=0", "each=1"}, steps)
	d, err := cl.DeadLetter(ctx, "order 42", "pay")
	require.NoError(t, err)
	require.Equal(t, `{"who":"$ref:x is no reference","n":1.50}`, string(d.Arguments))
	require.Equal(t, fault.ToolFailed, d.Error.Code)

	// Still closed: the letter stays, and it is one.
	r, err := cl.RetryDead(ctx, d, client.RetryDeadOptions{})
	require.NoError(t, err)
	out, err = cl.SettleDead(ctx, d, r)
	require.NoError(t, err)
	require.Equal(t, outcome.Failed, out.Status)
	letters, err = cl.DeadLetters(ctx, client.DeadOptions{})
	require.NoError(t, err)
	require.Len(t, letters, 3)

	till.set(true)
	before := len(till.called())
	for _, d := range letters {
		for range 2 { // the second one finds what the first came to
			r, err := cl.RetryDead(ctx, d, client.RetryDeadOptions{})
			require.NoError(t, err)
			out, err = r.Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, outcome.Succeeded, out.Status)
		}
		_, err := cl.SettleDead(ctx, d, r)
		require.NoError(t, err)
	}
	require.ElementsMatch(t, []string{`{"who":"$ref:x is no reference","n":1.50}`, `{"i":7}`, `{"i":8}`}, till.called()[before:], "exactly those, once")
	for _, d := range letters {
		again, err := cl.RetryDead(ctx, d, client.RetryDeadOptions{})
		require.NoError(t, err)
		_, err = cl.SettleDead(ctx, d, again)
		require.NoError(t, err)
	}
	letters, err = cl.DeadLetters(ctx, client.DeadOptions{})
	require.NoError(t, err)
	require.Empty(t, letters)
}

func TestRealRetry(t *testing.T) {
	t.Parallel()
	ctx, cl, _, till := charging(t, nil)
	_, err := cl.Run(ctx, []byte(chargePlan), client.SubmitOptions{Run: "order 42"})
	require.NoError(t, err)
	doc, err := cl.Get(ctx, "order 42")
	require.NoError(t, err)
	require.Equal(t, `{"i":8}`, string(doc.Steps[2].Items[1].Arguments), "an item's own arguments")

	till.set(true)
	before := len(till.called())
	r, err := cl.Retry(ctx, "order 42", client.RetryOptions{Context: wire.RunContext{All: bag(t, map[string]string{"user": "ada"})}})
	require.NoError(t, err)
	require.Equal(t, "order 42.2", r.ID())
	out, err := r.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, out.Status)
	require.Equal(t, `{"note":{"paid":1.50}}`, jsonOf(t, out.Results))
	require.Contains(t, till.called()[before:], `{"who":"$ref:x is no reference","n":1.50}`)
	user, _ := till.infos[before].Context.Get("user")
	require.Equal(t, "ada", user, "it was given again")
	doc, err = cl.Get(ctx, r.ID())
	require.NoError(t, err)
	require.Equal(t, "order 42", doc.RetryOf)
	require.True(t, doc.Steps[0].Reused)
	require.Zero(t, doc.Steps[0].Attempts)

	_, err = cl.Retry(ctx, r.ID(), client.RetryOptions{})
	require.Equal(t, fault.AlreadyFinished, fault.CodeOf(err))
	before = len(till.called())
	r, err = cl.Retry(ctx, r.ID(), client.RetryOptions{From: "pay", LessContext: true})
	require.NoError(t, err)
	out, err = r.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, out.Status)
	require.Len(t, till.called(), before+1)
	doc, err = cl.Get(ctx, r.ID())
	require.NoError(t, err)
	require.Equal(t, []bool{true, false, true, false}, []bool{doc.Steps[0].Reused, doc.Steps[1].Reused, doc.Steps[2].Reused, doc.Steps[3].Reused})
}

// A secret gets to the tool, and nowhere else: not into arguments, results, errors, documents, events, dead letters or
// logs. In the ledger and the step streams it stands in the headers of the plan and of the steps on their way.
func TestRealSecretStaysInHeaders(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-4f1c"
	var log safeBuffer
	ctx, cl, nc, till := charging(t, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	wiretap := make(chan *nats.Msg, 1<<14)
	sub, err := nc.ChanSubscribe(">", wiretap)
	require.NoError(t, err)
	defer func() { _ = sub.Unsubscribe() }()
	require.NoError(t, nc.Flush())
	given := wire.RunContext{
		All:   bag(t, map[string]string{"token": secret + "-run", "user": "ada"}, "token"),
		Steps: map[string]wire.Context{"pay": bag(t, map[string]string{"token": secret + "-step"}, "token")},
	}
	r, err := cl.Submit(ctx, []byte(chargePlan), client.SubmitOptions{Run: "r", Context: given})
	require.NoError(t, err)
	out, err := r.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, outcome.Failed, out.Status)
	till.set(true)
	again, err := cl.Retry(ctx, "r", client.RetryOptions{Context: given})
	require.NoError(t, err)
	_, err = again.Wait(ctx)
	require.NoError(t, err)

	got := map[string]bool{}
	for _, info := range till.infos {
		token, _ := info.Context.Get("token")
		got[token] = true
	}
	require.Equal(t, map[string]bool{secret + "-run": true, secret + "-step": true}, got, "the tools have it")

	stored, inHeaders := 0, 0
	look := func(where, subject string, h nats.Header, data []byte) {
		require.NotContains(t, string(data), secret, "%s: body of %s", where, subject)
		for name, values := range h {
			if !strings.Contains(strings.Join(values, " "), secret) {
				continue
			}
			require.Contains(t, []string{subjects.HeaderContext, subjects.HeaderContextSteps}, name, "%s: %s", where, subject)
			inHeaders++
		}
	}
	for _, m := range everyMessage(ctx, t, nc) {
		stored++
		look("stored", m.Subject, m.Header, m.Data)
		if strings.Contains(strings.Join(m.Header[subjects.HeaderContext], ""), secret) {
			rec, _ := subjects.ParseRecord(m.Subject)
			require.True(t, rec.Kind == subjects.PlanKind || strings.HasPrefix(m.Subject, "step.") || strings.HasPrefix(m.Subject, "sched."), m.Subject)
		}
	}
	require.Greater(t, stored, 20)
	heard := 0
	for len(wiretap) > 0 {
		m := <-wiretap
		heard++
		look("sent", m.Subject, m.Header, m.Data)
	}
	require.Greater(t, heard, 20)
	require.Greater(t, inHeaders, 4, "the search finds it where it must be")

	letters, err := cl.DeadLetters(ctx, client.DeadOptions{})
	require.NoError(t, err)
	require.Len(t, letters, 3)
	for _, d := range letters {
		require.NotContains(t, string(d.JSON()), secret)
		require.Contains(t, d.Error.Message, "the till is closed for ")
	}
	for _, run := range []string{"r", again.ID()} {
		doc, err := cl.Get(ctx, run)
		require.NoError(t, err)
		require.NotContains(t, string(doc.JSON()), secret)
	}
	require.NotContains(t, log.String(), secret)
	require.NotEmpty(t, log.String())
}

// everyMessage reads all that any stream holds.
func everyMessage(ctx context.Context, t *testing.T, nc *nats.Conn) (all []*jetstream.RawStreamMsg) {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	streams := js.ListStreams(ctx)
	for info := range streams.Info() {
		s, err := js.Stream(ctx, info.Config.Name)
		require.NoError(t, err)
		for seq := max(info.State.FirstSeq, 1); seq <= info.State.LastSeq; seq++ {
			m, err := s.GetMsg(ctx, seq)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue
			}
			require.NoError(t, err)
			all = append(all, m)
		}
	}
	require.NoError(t, streams.Err())
	return all
}

// safeBuffer is a buffer that many write to.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
