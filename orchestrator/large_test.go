//go:build !race

// What is large here is long under the race detector, and races no more than what is small: "make test-pure" runs it
// without.

package orchestrator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/catalog"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

func TestTenThousandSteps(t *testing.T) {
	t.Parallel()
	s := start(t)
	var b strings.Builder
	b.WriteString(`{"steps":[`)
	for i := range 9999 {
		fmt.Fprintf(&b, `{"id":"s%d","tool":"echo","arguments":{"x":%d}},`, i, i)
	}
	b.WriteString(`{"id":"end","tool":"echo","arguments":{"first":"$ref:s0.x","last":"$ref:s9998.x"}}]}`)
	o := s.run(b.String(), "wide")
	require.Equal(t, outcome.Succeeded, o.Status, "%v", o.Errors)
	require.Len(t, o.Results, 10_000)
	got, _ := o.Results.Get("end")
	require.Equal(t, `{"first":0,"last":9998}`, string(got))
	require.Len(t, s.history("default", "wide").Steps, 10_000)
}

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

// A registry of 300 tools: registered without a worker, listed, exported in every form, hosted, and called from one
// plan in every step stream.
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
		got, err := s.store.Requests.RequestRegister(ctx(t), raw)
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

// TestValuesThatDoubleInARun: a chain in which each value holds the one before twice ends with the first that there is
// no room for, and what came before is kept.
func TestValuesThatDoubleInARun(t *testing.T) {
	t.Parallel()
	s := start(t)
	var b strings.Builder
	fmt.Fprintf(&b, `{"steps":[{"id":"v0","value":"%s"}`, strings.Repeat("x", 998))
	for i := 1; i < 100; i++ {
		fmt.Fprintf(&b, `,{"id":"v%d","value":["$ref:v%[2]d","$ref:v%[2]d"]}`, i, i-1)
	}
	o := s.run(b.String()+`,{"id":"n","value":{"$calc":"len($ref:v14)"}}],"output_steps":["v0","v12"]}`, "r")
	require.Equal(t, outcome.Partial, o.Status)
	require.Equal(t, 2, o.Stats.Failed, "what doubles, and what would read 16 MiB: %v", o.Errors)
	codes := map[string]fault.Code{}
	for _, e := range o.Errors {
		codes[e.Step] = e.Code
	}
	require.Equal(t, fault.TooLarge, codes["v16"], "%v", codes)
	require.Equal(t, fault.Skipped, codes["v17"])
	require.Equal(t, fault.ConditionFailed, codes["n"])
	got, _ := o.Results.Get("v12")
	require.Greater(t, len(got), 998<<12)
	doc := s.history("default", "r")
	require.NotNil(t, doc.Steps[15].Blob, "it is kept as a handle")
	require.Nil(t, doc.Steps[15].Result)
}
