package orchestrator

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// ear counts what is published, and remembers what asked for an answer.
type ear struct {
	heard   int
	replies []string
}

func (e *ear) Publish(string, []byte) error   { e.heard++; return nil }
func (e *ear) PublishMsg(*nats.Msg) error     { return nil }
func (e *ear) lastToken(t *testing.T) uint64  { return token(t, e.replies[len(e.replies)-1]) }
func (e *ear) questions() int                 { return len(e.replies) }
func (e *ear) heardAfter(do func()) (new int) { before := e.heard; do(); return e.heard - before }
func (e *ear) PublishRequest(_, reply string, _ []byte) error {
	e.heard++
	e.replies = append(e.replies, reply)
	return nil
}

func token(t *testing.T, reply string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(reply[len("answers."):], 36, 64)
	require.NoError(t, err)
	return n
}

type stoppedClock struct {
	wall
	now time.Time
}

func (c *stoppedClock) Now() time.Time { return c.now }

func TestEventsGoToListenersAlone(t *testing.T) {
	t.Parallel()
	e, c := &ear{}, &stoppedClock{now: time.Unix(1_800_000_000, 0)}
	a := newAnnouncer(&env{bus: e, clock: c, ctx: context.Background()})
	a.answers = "answers."
	r := &run{}
	tell := func() { a.tell(r, "event.t.r.step", func() []byte { return nil }) }

	require.Equal(t, 3, e.heardAfter(func() { tell(); tell(); tell() }), "somebody may listen, as long as the server doesn't deny it")
	require.Equal(t, 1, e.questions())

	a.nobody(e.lastToken(t))
	require.Zero(t, e.heardAfter(tell), "nobody listens")
	before := e.lastToken(t)
	a.arrived(r)
	require.Equal(t, 2, e.heardAfter(func() { tell(); tell() }), "somebody read the run, and may listen from now on")
	require.Equal(t, 2, e.questions())
	a.nobody(before)
	require.Equal(t, 1, e.heardAfter(tell), "the server's word of before counts no more, however late it comes")

	a.nobody(e.lastToken(t))
	c.now = c.now.Add(askEvery - 1)
	require.Zero(t, e.heardAfter(tell))
	c.now = c.now.Add(1)
	require.Equal(t, 2, e.heardAfter(func() { tell(); tell() }), "the server's word has run out")
	require.Equal(t, 3, e.questions())

	a.forget(r)
	require.Empty(t, a.listeners)
	a.nobody(e.lastToken(t)) // an answer that comes late is nobody's
	require.False(t, r.audience.none)
}
