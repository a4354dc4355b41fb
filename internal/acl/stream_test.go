package acl_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// TestAnAgentStreams: to run a plan while it is written takes no more than an agent may.
func TestAnAgentStreams(t *testing.T) {
	t.Parallel()
	inEach(t, map[string]shape{"accounts": {}, "one account": {oneAccount: true}}, func(t *testing.T, s *system) {
		s.staff()
		agent := s.client("agent-acme", "acme")
		succeeded := func(run, step string) {
			require.Eventually(t, func() bool {
				doc, err := agent.Get(s.ctx(), run)
				return err == nil && len(doc.Steps) > 0 && doc.Steps[len(doc.Steps)-1].ID == step && doc.Steps[len(doc.Steps)-1].Status == outcome.StepSucceeded
			}, 30*time.Second, 20*time.Millisecond)
		}
		for run, whole := range map[string]bool{"whole": true, "cut": false} {
			text, model := io.Pipe()
			go func() {
				_, _ = io.WriteString(model, `{"steps":[{"id":"a","tool":"search","arguments":{"text":"x"}}`)
				succeeded(run, "a")
				_, _ = io.WriteString(model, `,{"id":"b","tool":"fetch","arguments":{"text":"y"},"depends_on":["a"]}`)
				succeeded(run, "b")
				if whole {
					_, _ = io.WriteString(model, `]}`)
				}
				_ = model.Close()
			}()
			r, err := agent.Stream(s.ctx(), text, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: run}})
			if !whole {
				require.Equal(t, fault.MalformedJSON, fault.CodeOf(err), "%v", err)
				require.ErrorContains(t, err, "is cancelled, and 2 steps had begun: a, b")
				continue
			}
			require.NoError(t, err)
			o, err := r.Wait(s.ctx())
			require.NoError(t, err)
			require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
		}
	})
}
