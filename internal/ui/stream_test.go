package ui_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// slow waits for a person, so that a test says when it goes on.
const slow = `{"steps":[{"id":"hold","tool":"ask","arguments":{"question":"Go on?"}},
	{"id":"each","tool":"echo","for_each":{"in":[1,2,3,4,5]},"arguments":{"i":"$ref:item"},"depends_on":["hold"]}]}`

// answer lets a run go on that holds.
func (w *world) answer(tenant, run string) {
	w.t.Helper()
	c := w.client(tenant)
	require.Eventually(w.t, func() bool {
		q, err := c.Question(w.ctx(), run, "hold")
		if err != nil {
			return false
		}
		_, err = c.Answer(w.ctx(), q, json.RawMessage(`"yes"`), client.Answer{})
		return err == nil
	}, patience, 10*time.Millisecond)
}

// until reads events until one of a kind.
func until(t *testing.T, s *bufio.Scanner, kind string) (all []event) {
	t.Helper()
	for {
		e, ok := next(s)
		require.True(t, ok, "the stream ended before %s", kind)
		if all = append(all, e); e.kind == kind {
			return all
		}
	}
}

// A stream begins with an order to read what is shown, tells each step's end once the reader is there, and then the
// run's.
func TestAStreamTellsWhatBecomesOfARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	_, err := w.client("default").Submit(w.ctx(), []byte(slow), client.SubmitOptions{Run: "r"})
	require.NoError(t, err)
	s := w.stream("?run=default.r")
	first, ok := next(s)
	require.True(t, ok)
	require.Equal(t, "reset", first.kind)
	w.answer("default", "r")
	steps := map[string]string{}
	for _, e := range until(t, s, "end") {
		if e.kind != "steps" {
			continue
		}
		var changes []struct{ Step, Status string }
		require.NoError(t, json.Unmarshal([]byte(e.data), &changes))
		for _, c := range changes {
			steps[c.Step] = c.Status
		}
	}
	for _, step := range []string{"hold", "each", "each=0", "each=4"} {
		require.Equal(t, "succeeded", steps[step], step)
	}
	_, ok = next(s)
	require.False(t, ok, "nothing comes any more, and the stream ends")
}

// Who comes back and has missed nothing goes on, anybody else reads anew.
func TestAGapIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	_, err := w.client("default").Submit(w.ctx(), []byte(slow), client.SubmitOptions{Run: "r"})
	require.NoError(t, err)
	until(t, w.stream("?run=default.r"), "steps") // it keeps the run followed
	now := func() string {                        // what the last event of the run is
		e, ok := next(w.stream("?run=default.r"))
		require.True(t, ok)
		require.Equal(t, "reset", e.kind)
		return e.id
	}
	for _, old := range []string{"", "x", "x-1", strings.Replace(now(), "-", "-9", 1)} {
		e, ok := next(w.stream("?run=default.r", "Last-Event-ID", old))
		require.True(t, ok)
		require.Equal(t, "reset", e.kind, old)
	}
	var there *bufio.Scanner
	require.Eventually(t, func() bool { // nothing came from before it was there until after
		id := now()
		there = w.stream("?run=default.r", "Last-Event-ID", id)
		return now() == id
	}, patience, time.Millisecond)
	w.answer("default", "r")
	e, ok := next(there)
	require.True(t, ok)
	require.NotEqual(t, "reset", e.kind)
}

// A hundred who look at a run cost one subscription.
func TestAHundredViewersAreOneSubscription(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.settled(0) // the list's own subscriptions stand
	_, err := w.client("default").Submit(w.ctx(), []byte(slow), client.SubmitOptions{Run: "r"})
	require.NoError(t, err)
	first := w.stream("?run=default.r")
	until(t, first, "steps")
	one := -1
	require.Eventually(t, func() bool { // what the page asks owners for now and then has an inbox for a moment
		was := one
		one = w.nc.NumSubscriptions()
		return one == was
	}, patience, time.Second)
	var others []*bufio.Scanner
	for range 99 {
		s := w.stream("?run=default.r")
		until(t, s, "reset")
		others = append(others, s)
	}
	require.Eventually(t, func() bool { return w.nc.NumSubscriptions() == one }, patience, 10*time.Millisecond)
	w.answer("default", "r")
	for _, s := range append(others, first) {
		until(t, s, "end")
	}
	require.Eventually(t, func() bool { return w.nc.NumSubscriptions() < one }, patience, 10*time.Millisecond, "nobody looks any more")
}

// Lists are told that they changed, not what: each has filters of its own.
func TestAListIsToldThatItChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.settled(0)
	s := w.stream("")
	until(t, s, "reset")
	for i := range 3 {
		w.run("default", fmt.Sprint(i), `{"steps":[{"id":"a","tool":"echo"}]}`)
		until(t, s, "runs")
	}
	require.Equal(t, 3, w.settled(3).Matched)
}

// What a step is writing is told as it comes, joined between frames, no more of it than a frame has room for; what does not
// follow on what was told begins anew.
func TestAStreamTellsWhatIsWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	_, err := w.client("default").Submit(w.ctx(), []byte(slow), client.SubmitOptions{Run: "r"})
	require.NoError(t, err)
	s := w.stream("?run=default.r")
	until(t, s, "reset")
	nc, stop := w.connect(), make(chan struct{})
	done := make(chan struct{})
	go func() { // at most once: until it has come
		defer close(done)
		for round := 0; ; round++ {
			for _, x := range []wire.Token{{At: 0, Text: "<b>&\n"}, {At: 5, Text: strings.Repeat("é", 2_000)}, {At: 4_005, Text: strings.Repeat("x", 4_000)}, {At: 8_005, Text: strings.Repeat("y", 4_000)}} {
				e := wire.TokenEvent{Run: "r", Step: "hold", Tool: "ask", Attempt: 1, Token: x}
				_ = nc.Publish(subjects.Event(subjects.NewRun("default", "r"), subjects.EventToken), e.Body())
			}
			select {
			case <-stop:
				return
			case <-time.After(300 * time.Millisecond):
			}
		}
	}()
	text, end := "", int64(0)
	for end < 12_005 || int64(len(text)) < 5_000 {
		all := until(t, s, "tokens")
		var list []struct {
			Step, Text       string
			Attempt, At, End int64
		}
		require.NoError(t, json.Unmarshal([]byte(all[len(all)-1].data), &list))
		require.Len(t, list, 1)
		x := list[0]
		require.Equal(t, "hold", x.Step)
		require.Equal(t, x.End, x.At+int64(len(x.Text)))
		require.LessOrEqual(t, len(x.Text), 8<<10)
		if x.At != end {
			text = ""
		}
		text, end = text+x.Text, x.End
	}
	require.True(t, strings.HasSuffix(text, "xy"+strings.Repeat("y", 3_999)), text)
	close(stop)
	<-done
	w.answer("default", "r")
	until(t, s, "end")
}
