package doctor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/doctor"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// say has a worker say that it lives whenever somebody asks.
func say(t *testing.T, s *kv.Store, name string, w tool.Worker) {
	t.Helper()
	sub, err := s.Conn().Subscribe(subjects.AskBeats, func(*nats.Msg) {
		_ = s.Beats().Say(name, wire.Beat{Worker: w}) // one that is not heard fails the test
	})
	require.NoError(t, err)
	require.NoError(t, s.Conn().Flush())
	t.Cleanup(func() { _ = sub.Unsubscribe() })
}

// Versions that differ are told, and of tools that are wanted those that no live worker serves.
func TestWhoSaysThatItLives(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	hold(t, s.Conn(), 0, map[string]wire.DemandNow{"dead": {Held: 2}, "held": {Held: 1}, "served": {Held: 1}, "many": {Held: 1}})
	for _, name := range []string{"dead", "held", "served", "idle", "many"} {
		x := register(t, s, name, 2)
		if name != "idle" {
			dispatch(t, s, kv.Dispatch{Attempt: attempt(name, name), Shard: x.Shard})
		}
		if name == "dead" { // its worker has a step, and says nothing
			_, err := s.Conn().Request(subjects.ConsumerRequest("MSG.NEXT", subjects.StepsStream(x.Shard), subjects.Durable(name)), nil, time.Minute)
			require.NoError(t, err)
		}
	}
	of := func(name string, held bool) []tool.WorkerTool {
		return []tool.WorkerTool{{Tool: name, Slots: 2, Held: held}}
	}
	say(t, s, "a", tool.Worker{Version: "v0.3.0", Tools: of("served", false)})
	say(t, s, "b", tool.Worker{Version: "v0.2.0", Tools: of("held", true)})
	say(t, s, "c", tool.Worker{Version: "v0.3.0"})
	about := func(r *doctor.Report) map[string]string {
		found := map[string]string{}
		for _, f := range r.Findings {
			if f.Check == "alive" {
				found[f.About] = fmt.Sprint(f.Health, " ", f.Found)
			}
		}
		return found
	}
	r, err := doctor.Examine(ctx(t), s.Conn(), doctor.Options{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"":     fmt.Sprint(doctor.Notable, " v0.2.0: 1 worker; v0.3.0: 2 workers"),
		"dead": fmt.Sprint(doctor.Notable, " 2 steps wanted, and 1 leased: no worker of it says that it lives"),
		"held": fmt.Sprint(doctor.Notable, " 1 step wanted, and 1 live worker, all of which hold it"),
	}, about(r))
	say(t, s, "d", tool.Worker{Version: "v0.3.0", Tools: of("other", false), More: 2744})
	r, err = doctor.Examine(ctx(t), s.Conn(), doctor.Options{})
	require.NoError(t, err)
	require.Len(t, about(r), 1, "one that names not all of its tools may have any")
}
