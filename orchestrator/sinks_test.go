package orchestrator

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/orchestrator/agents"
	"github.com/stepjet/stepjet/subjects"
)

// slowSink takes each object after a while, or never.
type slowSink struct {
	storage
	after time.Duration
	asked int
}

func (s *slowSink) Send(ctx context.Context, _ string, _ nats.Header, _ []byte) (bool, error) {
	s.asked++
	select {
	case <-time.After(s.after):
		return true, nil
	case <-ctx.Done():
		return false, fault.New(fault.Timeout, "no answer")
	}
}

// A sink that takes each object slowly is sent all of them while the agent goes on: it is not left because there are many. One
// that does not answer is left for now, with all that would follow.
func TestSlowSinksAreSentAll(t *testing.T) {
	t.Parallel()
	var all []agents.Sent
	for i := range 20 {
		all = append(all, agents.Sent{Step: "a/=0/s" + strconv.Itoa(i), Tool: "keep", Type: "Kept", Value: []byte(`1`), To: map[int]agent.Sink{0: {Subject: "kept"}}})
	}
	for after, want := range map[time.Duration]int{soonPatience - time.Millisecond: 20, soonPatience + time.Millisecond: 1} {
		synctest.Test(t, func(t *testing.T) {
			store := &slowSink{after: after}
			s := &sinks{env: &env{ctx: t.Context(), store: store, log: slog.New(slog.DiscardHandler)}}
			send, sent := s.sender(&run{identity: identity{id: subjects.NewRun("t", "r")}, progress: progress{agents: &agentsOf{}}}, false)
			send(t.Context(), "a", all)
			require.Equal(t, want, store.asked)
			for i := range all {
				require.Equal(t, want == len(all), sent(&all[i]))
			}
		})
	}
}
