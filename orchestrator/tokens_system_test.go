package orchestrator_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// TestWhatIsWrittenIsPassedOn: what a handler writes comes to who watches, whole and in its order, also to who comes while it
// goes on, and letters are never cut; what is told of a step that is not out, or of another attempt, does not. Results don't
// change with it.
func TestWhatIsWrittenIsPassedOn(t *testing.T) {
	t.Parallel()
	s := start(t)
	const letters = 40
	all := strings.Repeat("ab\x1b¢€😀\n", letters)
	let := make(chan struct{}, letters)
	again := &tool.Orchestration{TimeoutMS: patient.TimeoutMS, Retry: &tool.Retry{MaxAttempts: 3}} // so that there may be a second attempt
	s.host("writes", again, func(ctx context.Context, _ json.RawMessage) (worker.Output, error) {
		for i := range all { // byte by byte at letters, and once in the middle of one
			end := i + 1
			for end < len(all) && all[end]&0xC0 == 0x80 {
				end++
			}
			if worker.Write(ctx, all[i:i+1]); i == strings.Index(all, "¢") {
				time.Sleep(600 * time.Millisecond) // as a model that pauses in the middle of a letter: what there is of it waits
			}
			worker.Write(ctx, all[i+1:end])
		}
		<-let
		return worker.Output{Body: []byte(`"written"`)}, nil
	})
	watcher, err := s.client.NewWatcher(ctx(t), "r")
	require.NoError(t, err)
	defer watcher.Close()
	r := s.submit(`{"steps":[{"id":"a","tool":"writes"}]}`, "r")
	id, came, forged := subjects.NewRun(s.client.Tenant(), "r"), "", 0
	require.NoError(t, watcher.Follow(ctx(t), func(e client.Event) {
		if e.Kind != subjects.EventToken {
			return
		}
		if e.Text == "forged" {
			forged++
			return
		}
		if came == "" {
			for _, of := range []subjects.Attempt{
				{Run: id, Generation: r.Generation(), Tool: "writes", Step: "a", Number: 2},
				{Run: id, Generation: r.Generation() + 1, Tool: "writes", Step: "a", Number: 1},
				{Run: id, Generation: r.Generation(), Tool: "echo", Step: "a", Number: 1},
			} {
				require.NoError(t, s.nc.PublishMsg(&nats.Msg{Subject: subjects.Token(of), Reply: s.nc.NewInbox(), Header: wire.Versioned(), Data: wire.Token{Text: "forged"}.Body()}))
			}
		}
		require.Equal(t, client.Event{Kind: subjects.EventToken, Run: "r", Step: "a", Tool: "writes", Attempt: 1, Text: e.Text, Offset: e.Offset}, e)
		require.Equal(t, int64(len(came)), e.Offset, "none is lost while somebody listens")
		if came += e.Text; len(came) == len(all) {
			let <- struct{}{}
		}
	}))
	require.Equal(t, strings.ReplaceAll(all, "\x1b", "_"), came)
	require.Zero(t, forged)
	require.JSONEq(t, `"written"`, result(t, s.wait(r), "a"))
}

// TestWhatNobodyHearsIsHardlyTold: while nobody watches, a handler that writes without end costs a message a second and
// no event; who comes then reads the newest of it.
func TestWhatNobodyHearsIsHardlyTold(t *testing.T) {
	t.Parallel()
	s := start(t)
	sent := make(chan time.Time, 1000)
	sub, err := s.nc.Subscribe(subjects.AllTokens, func(*nats.Msg) { sent <- time.Now() })
	require.NoError(t, err)
	begun, let := make(chan struct{}), make(chan struct{})
	s.host("writes", patient, func(ctx context.Context, _ json.RawMessage) (worker.Output, error) {
		close(begun)
		for i := 0; ; i++ {
			worker.Write(ctx, "word ")
			if i%100 > 0 {
				continue
			}
			select {
			case <-let:
				return worker.Output{Body: []byte(`1`)}, nil
			case <-time.After(10 * time.Millisecond): // a model that is quick
			}
		}
	})
	r := s.submit(`{"steps":[{"id":"a","tool":"writes"}]}`, "quiet")
	<-begun
	<-sent // whose answer says that nobody listens
	first, last := <-sent, time.Time{}
	for range 3 {
		last = <-sent
	}
	require.Greater(t, last.Sub(first), 2500*time.Millisecond, "a second lies between two, and more where there is much to do")
	require.NoError(t, sub.Unsubscribe())
	watched := false
	require.NoError(t, s.client.Watch(ctx(t), "quiet", func(e client.Event) {
		if e.Kind == subjects.EventToken && !watched {
			watched = true
			require.Positive(t, e.Offset)
			require.LessOrEqual(t, len(e.Text), wire.MaxToken)
			close(let)
		}
	}))
	require.True(t, watched)
	require.Equal(t, outcome.Succeeded, s.wait(r).Status)
}

// TestWhatNobodyHeardIsKept: what was told while nobody listens is told again with what has come since, from where it began,
// once it is known that nobody does.
func TestWhatNobodyHeardIsKept(t *testing.T) {
	t.Parallel()
	s := start(t)
	told := make(chan wire.Token, 1000)
	sub, err := s.nc.Subscribe(subjects.AllTokens, func(m *nats.Msg) {
		if x, ok := wire.ParseToken(m.Data); ok {
			told <- x
		}
	})
	require.NoError(t, err)
	defer sub.Unsubscribe() //nolint:errcheck // the test is over
	let := make(chan struct{})
	s.host("writes", patient, func(ctx context.Context, _ json.RawMessage) (worker.Output, error) {
		for {
			worker.Write(ctx, "word ")
			select {
			case <-let:
				return worker.Output{Body: []byte(`1`)}, nil
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	r := s.submit(`{"steps":[{"id":"a","tool":"writes"}]}`, "late")
	before, kept := <-told, false
	for range 5 { // the first may be taken for heard
		next := <-told
		kept = kept || next.At == before.At && strings.HasPrefix(next.Text, before.Text)
		before = next
	}
	require.True(t, kept)
	close(let)
	require.Equal(t, outcome.Succeeded, s.wait(r).Status)
}
