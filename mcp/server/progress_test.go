package server

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// However much happens, a client is told of it at most four times in any second, and of the last of it; where nothing
// happens, at least every 15 s.
func TestTheRateOfProgress(t *testing.T) {
	t.Parallel()
	for name, every := range map[string]time.Duration{
		"a flood": time.Millisecond, "more than beats": 90 * time.Millisecond, "as often as beats": beatEvery,
		"bursts": 900 * time.Millisecond, "now and then": 7 * time.Second, "nothing": time.Hour,
	} {
		synctest.Test(t, func(t *testing.T) {
			var at []time.Time
			var last float64
			req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{}}
			req.Params.SetProgressToken("tok")
			p := newProgress(req, "", quietest)
			p.say = func(_ context.Context, n *mcp.ProgressNotificationParams) {
				require.True(t, len(at) == 0 || n.Progress > last, "it rises")
				at, last = append(at, time.Now()), n.Progress
			}
			p.total = 1000
			p.tell(t.Context())
			// As a call waits: events as they come, ten at once, and a beat four times a second.
			events, beats := time.NewTicker(every), time.NewTicker(beatEvery)
			defer events.Stop()
			defer beats.Stop()
			began := time.Now()
			done := 0.0
			for time.Since(began) < time.Minute {
				select {
				case <-events.C:
					for range 10 {
						done += 0.02
						p.heard(client.Event{Kind: subjects.EventProgress, Step: "a", Progress: &outcome.Progress{Message: fmt.Sprint(done)}})
						p.over = int(done)
						p.soon(t.Context())
					}
				case <-beats.C:
					p.beat(t.Context())
				}
			}
			for i, this := range at[1:] {
				require.LessOrEqual(t, this.Sub(at[i]), quietest, name)
				if i >= mostASecond-1 {
					require.GreaterOrEqual(t, this.Sub(at[i+1-mostASecond]), time.Second, "%s: five within a second", name)
				}
			}
			require.LessOrEqual(t, time.Since(at[len(at)-1]), quietest, name)
			if every < time.Second {
				require.Greater(t, len(at), 120, "%s: and not much less", name)
				require.LessOrEqual(t, time.Since(at[len(at)-1]), time.Second, "%s: the last is told", name)
			}
		})
	}
}
