package acl_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// TestAPlannerHandsOverStepsUnderItsRole, which its printed permissions allow for its own calls. Another worker of the same tool, that has
// not claimed the attempt, hands over nothing of it, nor does who hosts another tool, or submits runs.
func TestAPlannerHandsOverStepsUnderItsRole(t *testing.T) {
	t.Parallel()
	inEach(t, map[string]shape{"accounts": {}, "one account": {oneAccount: true}}, func(t *testing.T, s *system) {
		s.orchestrate(1)
		s.host("worker-crm_2Fget-fetch", "crm/get", "fetch")
		agent := s.client("agent-acme", "acme")
		began := make(chan subjects.Attempt, 1)
		goOn := make(chan struct{})
		w, err := worker.New(s.connect("worker-search"), worker.Config{Name: "planner", Logger: s.log("planner")})
		require.NoError(t, err)
		const step = `{"id":"a","tool":"fetch","arguments":{"text":"x"}}`
		require.NoError(t, w.HandleRaw(&tool.Definition{Name: "search"}, func(ctx context.Context, _ json.RawMessage) (worker.Output, error) {
			info, _ := worker.InfoFrom(ctx)
			if !strings.HasSuffix(info.Step, "/=0/=plan") {
				return worker.Output{Body: []byte(`{"output":"done"}`)}, nil
			}
			worker.NewStream(ctx).Step(json.RawMessage(step))
			began <- subjects.Attempt{Run: subjects.NewRun(info.Tenant, info.Run), Generation: info.Generation, Tool: "search", Step: info.Step, Number: info.Attempt}
			select {
			case <-goOn:
			case <-ctx.Done():
			}
			return worker.Output{Body: []byte(`{"steps":[` + step + `]}`)}, ctx.Err()
		}))
		s.run(w)
		r, err := agent.Submit(s.ctx(), []byte(`{"steps":[{"id":"a","agent":{"planner":{"tool":"search","mode":"plan"},"tools":["fetch"],"stream_plan":true}}]}`), client.SubmitOptions{Run: "streams"})
		require.NoError(t, err)
		attempt := <-began
		require.Eventually(t, func() bool {
			doc, err := agent.Get(s.ctx(), "streams")
			return err == nil && strings.Contains(string(doc.JSON()), `"a/=0/=stream/a"`)
		}, time.Minute, 20*time.Millisecond, "it begins while its planner writes")
		more := wire.HandOver{Nonce: "guessed", Add: []json.RawMessage{[]byte(`{"id":"b","tool":"fetch","arguments":{"text":"y"}}`)}}
		for user, code := range map[string]fault.Code{"worker-search": fault.Permission, "worker-crm_2Fget-fetch": fault.Permission, "agent-acme": fault.Permission} {
			store, err := kv.Open(s.ctx(), s.trespass(user))
			require.NoError(t, err, user)
			ctx, cancel := context.WithTimeout(s.ctx(), 5*time.Second)
			_, err = store.Beats().HandOver(ctx, attempt, more)
			cancel()
			require.Equal(t, code, fault.CodeOf(err), "%s: %v", user, err)
			store.Close()
		}
		close(goOn)
		o, err := r.Wait(s.ctx())
		require.NoError(t, err)
		require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
		doc, err := agent.Get(s.ctx(), "streams")
		require.NoError(t, err)
		require.NotContains(t, string(doc.JSON()), `/b"`)
	})
}
