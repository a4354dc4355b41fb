package kv

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/subjects"
)

// One of many tools for which nothing comes is asked for less often; one of few, or one that is in use, as ever.
func TestAnIdleToolOfManyIsAskedForLessOften(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	s, err := Setup(t.Context(), nc, Config{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	asked := make(chan string, 9)
	next := subjects.StepsStream(0) + "." + subjects.Durable("idle")
	_, err = nc.Subscribe(apiPrefix+"CONSUMER.MSG.NEXT."+next, func(m *nats.Msg) { asked <- string(m.Data) })
	require.NoError(t, err)
	for _, c := range []struct {
		tools int64
		quiet time.Duration
		want  string
	}{
		{1, time.Hour, `{"batch":1,"expires":5000000000,"idle_heartbeat":2000000000}`},
		{3000, time.Second, `{"batch":1,"expires":5000000000,"idle_heartbeat":2000000000}`},
		{300, time.Hour, `{"batch":1,"expires":30000000000,"idle_heartbeat":12000000000}`},
		{3000, time.Hour, `{"batch":1,"expires":90000000000,"idle_heartbeat":36000000000}`},
		{100_000, time.Hour, `{"batch":1,"expires":120000000000,"idle_heartbeat":48000000000}`},
	} {
		s.Queue.pullers.Store(c.tools)
		p := &Puller{s: s.Queue, slots: 1, free: 1, most: 1, next: apiPrefix + "CONSUMER.MSG.NEXT." + next, inbox: &inbox{prefix: nc.NewInbox() + "."}, came: time.Now().Add(-c.quiet)}
		p.ask()
		require.Equal(t, c.want, <-asked)
		var request struct {
			Heartbeat time.Duration `json:"idle_heartbeat"`
		}
		require.NoError(t, json.Unmarshal([]byte(c.want), &request))
		require.Greater(t, p.silence, 2*request.Heartbeat)
		require.Greater(t, p.due(), p.silence-time.Minute/2, "nobody looks before that")
	}
	s.Queue.pullers.Store(0)
}
