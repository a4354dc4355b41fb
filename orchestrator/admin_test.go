package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// An operator's override counts for runs that start after it, and not for those under way.
func TestAnOverrideReachesPlansAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	o, err := s.store.Requests.RequestOverride(ctx(t), "echo", []byte(`{"tenants":["acme"],"x-orchestration":{"max_concurrency":2},"by":"ann"}`))
	require.NoError(t, err)
	require.Equal(t, 2, o.Tool.Contract.Limit)
	out := s.run(`{"steps":[{"id":"a","tool":"echo"}]}`, "refused")
	require.Equal(t, outcome.Rejected, out.Status)
	require.Equal(t, []fault.Code{fault.UnknownTool}, codes(out.Problems))
	_, err = s.store.Requests.RequestOverride(ctx(t), "echo", []byte(`{"x-orchestration":{"mode":"dependent"}}`))
	require.Equal(t, fault.InvalidTool, fault.CodeOf(err))
	_, err = s.store.Requests.RequestOverride(ctx(t), "echo", nil)
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, s.run(`{"steps":[{"id":"a","tool":"echo"}]}`, "accepted").Status)
}

// What a tenant overrides counts for its own runs, and for nobody else's; nothing that all share changes.
func TestATenantsOverrideIsItsOwn(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, err := s.store.Requests.RequestRegister(ctx(t), []byte(`{"name":"narrow","x-orchestration":{"retry":{"max_attempts":3},"max_concurrency":5}}`))
	require.NoError(t, err)
	before, err := s.store.Registry.Tool(ctx(t), "narrow")
	require.NoError(t, err)
	o, err := s.store.Requests.RequestTenantOverride(ctx(t), "default", "narrow", []byte(`{"x-orchestration":{"wait_timeout_ms":250},"context":{"filter":"none"},"by":"ann"}`))
	require.NoError(t, err)
	require.Equal(t, 250*time.Millisecond, o.Tool.Contract.WaitTimeout)
	after, err := s.store.Registry.Tool(ctx(t), "narrow")
	require.NoError(t, err)
	require.Equal(t, before.Revision, after.Revision, "the entry is everybody's")
	all, err := s.store.Registry.TenantOverrides(ctx(t), "default")
	require.NoError(t, err)
	require.Equal(t, "ann", all["narrow"].By)
	none, err := s.store.Registry.TenantOverrides(ctx(t), "other")
	require.NoError(t, err)
	require.Empty(t, none)

	// Nobody hosts the tool. A run of the tenant gives up waiting, one of another tenant goes on waiting.
	const plan = `{"steps":[{"id":"a","tool":"narrow","retry":{"max_attempts":1}}]}`
	other, err := client.New(ctx(t), s.nc, client.Config{Tenant: "other"})
	require.NoError(t, err)
	defer other.Close()
	theirs, err := other.Submit(ctx(t), []byte(plan), client.SubmitOptions{Run: "theirs"})
	require.NoError(t, err)
	out := s.run(plan, "own")
	require.Equal(t, outcome.Failed, out.Status)
	require.Equal(t, fault.Timeout, out.Errors[0].Code, "%+v", out.Errors)
	doc, err := other.Get(ctx(t), theirs.ID())
	require.NoError(t, err)
	require.Equal(t, outcome.Running, doc.Status)
	require.NoError(t, cancelled(other.Cancel(ctx(t), theirs.ID(), "me")))

	_, err = s.store.Requests.RequestTenantOverride(ctx(t), "default", "narrow", []byte(`{"x-orchestration":{"max_concurrency":1}}`))
	require.Equal(t, fault.InvalidTool, fault.CodeOf(err))
	_, err = s.store.Requests.RequestTenantOverride(ctx(t), "default", "narrow", nil)
	require.NoError(t, err)
	waits := s.submit(plan, "waits")
	require.Never(t, func() bool { // many times as long as it waited under the override
		doc, err := s.client.Get(ctx(t), waits.ID())
		return err == nil && doc.Status == outcome.Failed
	}, 1500*time.Millisecond, 100*time.Millisecond)
	require.NoError(t, cancelled(s.client.Cancel(ctx(t), waits.ID(), "me")))
}

// A removed tool is unknown to new plans. Its steps of runs under way wait, and are executed once it is registered
// again.
func TestARemovedToolsStepsWaitForIt(t *testing.T) {
	t.Parallel()
	s := start(t)
	raw := []byte(`{"name":"lonely"}`)
	entry, err := s.store.Requests.RequestRegister(ctx(t), raw)
	require.NoError(t, err)
	_, err = s.store.Requests.RequestRemove(ctx(t), "lonely", false)
	require.NoError(t, err)
	_, err = s.store.Requests.RequestRemove(ctx(t), "lonely", false)
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
	require.Eventually(t, func() bool { // the registry's watch is beside it
		return s.run(`{"steps":[{"id":"a","tool":"lonely"}],"timeout":"50ms"}`, fmt.Sprint("new", time.Now().UnixNano())).Status == outcome.Rejected
	}, patience, 10*time.Millisecond)
	again, err := s.store.Requests.RequestRegister(ctx(t), raw)
	require.NoError(t, err)
	require.Equal(t, entry.Shard, again.Shard)

	// The second step is dispatched after its tool was removed.
	r := s.submit(`{"steps":[{"id":"g","tool":"gate"},{"id":"a","tool":"lonely"},{"id":"b","tool":"lonely","depends_on":["g"]}]}`, "waits")
	<-s.tools.begun
	require.Eventually(t, func() bool {
		return s.lies(subjects.Step(s.attemptOf(r.ID(), r.Generation(), "lonely", "a", 1), entry.Shard))
	}, patience, 10*time.Millisecond)
	_, err = s.store.Requests.RequestRemove(ctx(t), "lonely", false)
	require.Equal(t, fault.Conflict, fault.CodeOf(err), "a step of it is pending")
	removed, err := s.store.Requests.RequestRemove(ctx(t), "lonely", true)
	require.NoError(t, err)
	require.Equal(t, kv.Removed{Name: "lonely", Pending: 1}, removed)
	close(s.tools.gate)
	require.Eventually(t, func() bool {
		e, err := s.store.Ledger.Read(ctx(t), subjects.ToolFilter("lonely", entry.Shard))
		if err != nil {
			return false
		}
		a, _, _ := subjects.ParseStep(e.Subject)
		return a.Step == "b"
	}, patience, 10*time.Millisecond, "it is dispatched all the same")

	w, err := worker.New(natstest.Connect(t, s.srv), worker.Config{Name: "late", Logger: logger(t)})
	require.NoError(t, err)
	require.NoError(t, w.HandleRaw(&tool.Definition{Name: "lonely"}, func(context.Context, json.RawMessage) (worker.Output, error) {
		return worker.Output{Body: []byte(`"here"`)}, nil
	}))
	s.background(w.Run, w.Ready())
	require.Equal(t, outcome.Succeeded, s.wait(r).Status)
}

func TestRequestsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	s := start(t)
	for subject, body := range map[string]string{
		"api.tools.override.=zz": "{}", "api.tools.remove.=zz": "", subjects.Remove("echo"): "nonsense", subjects.Override("echo"): "nonsense",
	} {
		m, err := s.nc.Request(subject, []byte(body), patience)
		require.NoError(t, err, subject)
		require.Equal(t, subjects.StatusError, m.Header.Get(subjects.HeaderStatus), subject)
	}
	require.Equal(t, outcome.Succeeded, s.run(`{"steps":[{"id":"a","tool":"echo"}]}`, "still here").Status)
}
