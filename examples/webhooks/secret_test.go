package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/exampletest"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// The secret travels in the context headers of the plan and of the steps that it is for. It is in no body, in no other
// header, in nothing that is stored but those, in no document and in no log.
func TestTheSecretStaysInItsHeaders(t *testing.T) {
	t.Parallel()
	r := receiving(t)
	d := scene(r)
	delete(r.unready, "search")
	var log logs
	w := start(t, d, exampletest.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))},
		func(o *tool.Orchestration) { o.Retry.MaxAttempts = 2 })
	ctx := exampletest.Context(t)
	nc := w.Connect()
	heard := make(chan *nats.Msg, 1<<16)
	_, err := nc.ChanSubscribe(">", heard)
	require.NoError(t, err)
	require.NoError(t, nc.Flush())

	out := w.Run("plan.json", client.SubmitOptions{Run: "webhooks", Context: signedWith(secret)})
	require.NotContains(t, string(out.JSON()), secret)
	doc, err := w.Client.Get(ctx, "webhooks")
	require.NoError(t, err)
	letter, err := w.Client.DeadLetter(ctx, "webhooks", "notify=3")
	require.NoError(t, err)
	for _, document := range []any{doc, letter} {
		raw, err := json.Marshal(document)
		require.NoError(t, err)
		require.NotContains(t, string(raw), secret)
	}

	require.NoError(t, nc.Flush()) // all that was sent until now has been heard
	checked := map[string]int{}
	for range len(heard) {
		m := <-heard
		inContext(t, m.Subject, m.Header, m.Data, checked)
	}
	require.NotZero(t, checked[subjects.HeaderContextSteps], "the plan was heard")
	require.NotZero(t, checked[subjects.HeaderContext], "steps were heard")
	stored(t, nc, func(m *jetstream.RawStreamMsg) { inContext(t, m.Subject, m.Header, m.Data, checked) })
	require.NotEmpty(t, log.String())
	require.NotContains(t, log.String(), secret)
}

// inContext fails where a message has the secret anywhere but in the headers that are made for it.
func inContext(t *testing.T, subject string, h nats.Header, body []byte, found map[string]int) {
	t.Helper()
	require.False(t, bytes.Contains(body, []byte(secret)), "the body of %s", subject)
	for name, values := range h {
		if !strings.Contains(strings.Join(values, " "), secret) {
			continue
		}
		require.Contains(t, []string{subjects.HeaderContext, subjects.HeaderContextSteps}, name, "a header of %s", subject)
		found[name]++
	}
}

// stored calls each for every message of every stream.
func stored(t *testing.T, nc *nats.Conn, each func(*jetstream.RawStreamMsg)) {
	t.Helper()
	ctx := exampletest.Context(t)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	n := 0
	for info := range js.ListStreams(ctx).Info() {
		s, err := js.Stream(ctx, info.Config.Name)
		require.NoError(t, err)
		for seq := max(1, info.State.FirstSeq); seq <= info.State.LastSeq; seq++ {
			m, err := s.GetMsg(ctx, seq)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue
			}
			require.NoError(t, err)
			each(m)
			n++
		}
	}
	require.NotZero(t, n)
}

// logs is a buffer that many may write to.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
