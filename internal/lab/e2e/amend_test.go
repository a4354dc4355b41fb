package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/wire"
)

var amendments = flag.Int("amendments", 125, "how many amendments each of 8 clients makes of one run; the most is 125")

// storm is many clients that amend one run, each with steps of its own.
type storm struct {
	t             testing.TB
	run, scope    string
	clients, each int
	mu            sync.Mutex
	whose         map[int]string // the step that each revision added
}

func (s *storm) step(k, n int) string {
	return fmt.Sprintf(`{"id":"s%d_%d","tool":"add","arguments":{"a":%d,"b":"$ref:one.result"}}`, k, n, 1000*k+n)
}

// blow is one client. Whatever becomes of a request, it asks again: the same, until it knows that another was first.
func (s *storm) blow(c *client.Client, k int) {
	revision := 0
	for n := 0; n < s.each; {
		a := client.Amendment{Scope: s.scope, Revision: revision, Add: []json.RawMessage{json.RawMessage(s.step(k, n))}}
		x, err := c.Amend(within(s.t, time.Minute), s.run, a)
		var now wire.AmendConflict
		switch code := fault.CodeOf(err); {
		case err == nil:
			s.mu.Lock()
			s.whose[x.Revision] += fmt.Sprintf("s%d_%d ", k, n)
			s.mu.Unlock()
			revision, n = x.Revision, n+1
		case code == fault.Conflict && json.Unmarshal(fault.As(err).Details, &now) == nil:
			revision = now.Revision
		case code == fault.NotReady || code == fault.NoConnection || code == fault.NotFound || code == fault.Internal || code == fault.NoJetStream:
			time.Sleep(20 * time.Millisecond) // everything fell
		default:
			s.t.Errorf("s%d_%d: %v", k, n, err)
			return
		}
	}
}

// results are those of a run, by step.
func results(t testing.TB, c *client.Client, run string) map[string]any {
	t.Helper()
	var o struct {
		Status  string         `json:"status"`
		Results map[string]any `json:"results"`
	}
	require.NoError(t, json.Unmarshal([]byte(told(t, c, run)), &o))
	require.Equal(t, "succeeded", o.Status)
	return o.Results
}

// TestAmendmentsOutliveEverything: 8 clients amend one run, and server, orchestrators and worker are killed in the middle of
// it. Each revision is of one amendment, each amendment has one revision, and the run comes to what it comes to as a whole.
func TestAmendmentsOutliveEverything(t *testing.T) {
	t.Parallel()
	s := &storm{t: t, run: "storm", clients: 8, each: *amendments, whose: map[int]string{}}
	h := &house{t: t, options: embedded.Options{Dir: t.TempDir(), Listen: freeAddress(t)}}
	h.start()
	_, c := h.client()
	const one = `{"id":"one","tool":"add","arguments":{"a":0,"b":1}}`
	_, err := c.Submit(within(t, time.Minute), []byte(`{"open":true,"steps":[`+one+`]}`), client.SubmitOptions{Run: s.run})
	require.NoError(t, err)
	var all sync.WaitGroup
	for k := range s.clients {
		_, mine := h.client()
		all.Go(func() { s.blow(mine, k) })
	}
	total := s.clients * s.each
	falls := 1 + *amendments/40
	for fell := 1; fell <= falls; fell++ {
		require.Eventually(t, func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.whose) >= fell*total/(falls+1)
		}, 5*time.Minute, 5*time.Millisecond)
		h.fall()
		h.start()
	}
	all.Wait()
	require.Len(t, s.whose, total, "each revision is of one amendment")
	for n, who := range s.whose {
		require.Equal(t, 1, strings.Count(who, " "), "revision %d is of %s", n, who)
	}
	nc, c := h.client()
	_, err = c.Amend(within(t, time.Minute), s.run, client.Amendment{Revision: total, Close: true})
	require.NoError(t, err)
	got := results(t, c, s.run)

	steps := []string{one}
	for k := range s.clients {
		for n := range s.each {
			steps = append(steps, s.step(k, n))
		}
	}
	_, err = c.Submit(within(t, time.Minute), []byte(`{"steps":[`+strings.Join(steps, ",")+`]}`), client.SubmitOptions{Run: "calm"})
	require.NoError(t, err)
	require.Equal(t, results(t, c, "calm"), got)
	doc, err := c.Get(within(t, time.Minute), s.run)
	require.NoError(t, err)
	for _, st := range doc.Steps {
		require.Equal(t, 1, st.Attempts, "%s", st.ID)
	}
	require.Equal(t, total+1, amendRecords(t, nc, doc))
}
