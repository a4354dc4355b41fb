package orchestrator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/catalog"
	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

func manyTools(n int) (list []*tool.Definition) {
	for i := range n {
		list = append(list, &tool.Definition{
			Name: fmt.Sprintf("area%d/tool-%03d", i%7, i), Description: "A tool of many.",
			InputSchema:   json.RawMessage(`{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false}`),
			OutputSchema:  json.RawMessage(`{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}`),
			Orchestration: &tool.Orchestration{MaxConcurrency: 4 + i%5},
		})
	}
	return list
}

// A registry of 300 tools: registered without a worker, listed, exported in every form, hosted, and called from one plan in
// every step stream.
func TestARegistryOf300Tools(t *testing.T) {
	t.Parallel()
	s := start(t)
	list := manyTools(300)
	shards := map[int]int{}
	first := map[int]string{} // a tool of each shard
	began := time.Now()
	for _, d := range list {
		raw, err := json.Marshal(d)
		require.NoError(t, err)
		got, err := s.store.RequestRegister(ctx(t), raw)
		require.NoError(t, err)
		shards[got.Shard]++
		first[got.Shard] = d.Name
	}
	t.Logf("300 tools registered one after the other in %v, %v each", time.Since(began).Round(time.Millisecond), (time.Since(began) / 300).Round(time.Microsecond))
	own := 6 // of the worker of these tests, registered before
	require.Equal(t, map[int]int{0: 100 - own, 1: 100, 2: 100, 3: own}, shards)

	began = time.Now()
	all, err := s.client.Tools(ctx(t))
	require.NoError(t, err)
	require.Len(t, all, 300+own)
	t.Logf("listed in %v", time.Since(began).Round(time.Microsecond))
	effective := make([]*tool.Definition, 0, len(all))
	for i := range all {
		effective = append(effective, all[i].Effective())
	}
	for _, f := range catalog.Forms() {
		b, err := catalog.Export(f, effective, catalog.Options{})
		require.NoError(t, err)
		back, err := tool.ParseDefinitions(b)
		require.NoError(t, err)
		require.Len(t, back, 300+own)
		meta, err := catalog.Meta(f, effective[:catalog.MaxEnum], catalog.Options{})
		require.NoError(t, err)
		require.Equal(t, 2, bytes.Count(meta, []byte(effective[7].Name)), "in the enumeration and in the guide")
		t.Logf("%s: %d kB, with execute_tool_plan of %d kB", f, len(b)>>10, len(meta)>>10)
	}

	w, err := worker.New(natstest.Connect(t, s.srv), worker.Config{Name: "many", Logger: logger(t), Slots: 2})
	require.NoError(t, err)
	for _, d := range list {
		require.NoError(t, w.HandleRaw(d, func(_ context.Context, args json.RawMessage) (worker.Output, error) {
			return worker.Output{Body: args}, nil
		}))
	}
	began = time.Now()
	s.background(w.Run, w.Ready())
	t.Logf("a worker that hosts all of them is ready in %v", time.Since(began).Round(time.Millisecond))
	var steps []string
	for shard := range len(first) {
		x := `1`
		if shard > 0 {
			x = fmt.Sprintf(`"$ref:s%d.x"`, shard-1)
		}
		steps = append(steps, fmt.Sprintf(`{"id":"s%d","tool":%q,"arguments":{"x":%s}}`, shard, first[shard], x))
	}
	plan := `{"steps":[` + joined(steps) + `],"output_steps":["s3"]}`
	o := s.run(plan, "all shards")
	require.Equal(t, outcome.Succeeded, o.Status, "%+v", o)
	result, _ := o.Results.Get("s3")
	require.JSONEq(t, `{"x":1}`, string(result))
}

func joined(parts []string) (all string) {
	for i, p := range parts {
		if i > 0 {
			all += ","
		}
		all += p
	}
	return all
}

// An operator's override counts for runs that start after it, and not for those under way.
func TestAnOverrideReachesPlansAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	o, err := s.store.RequestOverride(ctx(t), "echo", []byte(`{"tenants":["acme"],"x-orchestration":{"max_concurrency":2},"by":"ann"}`))
	require.NoError(t, err)
	require.Equal(t, 2, o.Tool.Contract.Limit)
	out := s.run(`{"steps":[{"id":"a","tool":"echo"}]}`, "refused")
	require.Equal(t, outcome.Rejected, out.Status)
	require.Equal(t, []fault.Code{fault.UnknownTool}, codes(out.Problems))
	_, err = s.store.RequestOverride(ctx(t), "echo", []byte(`{"x-orchestration":{"mode":"dependent"}}`))
	require.Equal(t, fault.InvalidTool, fault.CodeOf(err))
	_, err = s.store.RequestOverride(ctx(t), "echo", nil)
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, s.run(`{"steps":[{"id":"a","tool":"echo"}]}`, "accepted").Status)
}

// What a tenant overrides counts for its own runs, and for nobody else's; nothing that all share changes.
func TestATenantsOverrideIsItsOwn(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, err := s.store.RequestRegister(ctx(t), []byte(`{"name":"narrow","x-orchestration":{"retry":{"max_attempts":3},"max_concurrency":5}}`))
	require.NoError(t, err)
	before, err := s.store.Tool(ctx(t), "narrow")
	require.NoError(t, err)
	o, err := s.store.RequestTenantOverride(ctx(t), "default", "narrow", []byte(`{"x-orchestration":{"wait_timeout_ms":250},"context":{"filter":"none"},"by":"ann"}`))
	require.NoError(t, err)
	require.Equal(t, 250*time.Millisecond, o.Tool.Contract.WaitTimeout)
	after, err := s.store.Tool(ctx(t), "narrow")
	require.NoError(t, err)
	require.Equal(t, before.Revision, after.Revision, "the entry is everybody's")
	all, err := s.store.TenantOverrides(ctx(t), "default")
	require.NoError(t, err)
	require.Equal(t, "ann", all["narrow"].By)
	none, err := s.store.TenantOverrides(ctx(t), "other")
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
	require.NoError(t, other.Cancel(ctx(t), theirs.ID(), "me"))

	_, err = s.store.RequestTenantOverride(ctx(t), "default", "narrow", []byte(`{"x-orchestration":{"max_concurrency":1}}`))
	require.Equal(t, fault.InvalidTool, fault.CodeOf(err))
	_, err = s.store.RequestTenantOverride(ctx(t), "default", "narrow", nil)
	require.NoError(t, err)
	waits := s.submit(plan, "waits")
	require.Never(t, func() bool { // many times as long as it waited under the override
		doc, err := s.client.Get(ctx(t), waits.ID())
		return err == nil && doc.Status == outcome.Failed
	}, 1500*time.Millisecond, 100*time.Millisecond)
	require.NoError(t, s.client.Cancel(ctx(t), waits.ID(), "me"))
}

// A removed tool is unknown to new plans. Its steps of runs under way wait, and are executed once it is registered again.
func TestARemovedToolsStepsWaitForIt(t *testing.T) {
	t.Parallel()
	s := start(t)
	raw := []byte(`{"name":"lonely"}`)
	entry, err := s.store.RequestRegister(ctx(t), raw)
	require.NoError(t, err)
	_, err = s.store.RequestRemove(ctx(t), "lonely", false)
	require.NoError(t, err)
	_, err = s.store.RequestRemove(ctx(t), "lonely", false)
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
	require.Eventually(t, func() bool { // the registry's watch is beside it
		return s.run(`{"steps":[{"id":"a","tool":"lonely"}],"timeout":"50ms"}`, fmt.Sprint("new", time.Now().UnixNano())).Status == outcome.Rejected
	}, patience, 10*time.Millisecond)
	again, err := s.store.RequestRegister(ctx(t), raw)
	require.NoError(t, err)
	require.Equal(t, entry.Shard, again.Shard)

	// The second step is dispatched after its tool was removed.
	r := s.submit(`{"steps":[{"id":"g","tool":"gate"},{"id":"a","tool":"lonely"},{"id":"b","tool":"lonely","depends_on":["g"]}]}`, "waits")
	<-s.tools.begun
	require.Eventually(t, func() bool {
		_, err := s.store.RequestRemove(ctx(t), "lonely", false)
		return fault.CodeOf(err) == fault.Conflict
	},
		patience, 10*time.Millisecond, "a step of it is pending")
	removed, err := s.store.RequestRemove(ctx(t), "lonely", true)
	require.NoError(t, err)
	require.Equal(t, kv.Removed{Name: "lonely", Pending: 1}, removed)
	close(s.tools.gate)
	require.Eventually(t, func() bool {
		e, err := s.store.Read(ctx(t), subjects.ToolFilter("lonely", entry.Shard))
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
