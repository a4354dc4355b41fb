package orchestrator

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

var formsAt = time.Date(2026, 11, 20, 12, 0, 0, 1500, time.UTC)

func versioned(body []byte) nats.Msg { return nats.Msg{Header: wire.Versioned(), Data: body} }

// as decodes a body into a new T and encodes it again.
func as[T any](t *testing.T) func(nats.Msg) nats.Msg {
	return func(m nats.Msg) nats.Msg {
		v := new(T)
		require.NoError(t, json.Unmarshal(m.Data, v))
		return versioned(written(t, v))
	}
}

func written(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return b
}

func TestOutcomesAreEvents(t *testing.T) {
	t.Parallel()
	problem := conflictProblem(subjects.NewRun("acme", "order-42"), "ab12", "cd34")
	end := outcome.Outcome{
		Run: "order-42", Status: outcome.Partial, Results: outcome.Results{{Step: "b", JSON: []byte(`{"t": 21.0}`)}, {Step: "a", JSON: []byte(`1`)}},
		Errors:   []outcome.StepError{{Step: "c", Code: fault.ToolFailed, Message: "503", Hint: "later", Attempts: 3}},
		Warnings: []fault.Problem{{Code: fault.UnknownField, Path: "/thought", Message: "ignored"}},
		Stats:    outcome.Stats{Steps: 3, Succeeded: 2, Failed: 1, ElapsedMS: 12.4, BytesReturned: 12},
	}
	recode := func(m nats.Msg) nats.Msg {
		var o outcome.Outcome
		require.NoError(t, json.Unmarshal(m.Data, &o))
		return versioned(o.JSON())
	}
	// An orchestrator announces an outcome that another one has stored.
	wiretest.RoundTrip(t, *update, "end_event", versioned(end.JSON()), wiretest.Kept, recode)
	notice := outcome.Outcome{Run: "order-42", Status: outcome.Rejected, Results: outcome.Results{}, Problems: []fault.Problem{problem}}
	wiretest.RoundTrip(t, *update, "notice", versioned(notice.JSON()), wiretest.Kept, recode)
}

func TestRequestsAndAnswers(t *testing.T) {
	t.Parallel()
	wiretest.RoundTrip(t, *update, "ping_answer", versioned(written(t, map[string]string{"name": "o1", "member": "m1", "version": "v1"})), wiretest.Kept, as[map[string]json.RawMessage](t))
	running := outcome.Run{
		Version: 1, Run: "order-42", Tenant: "acme", Generation: 17, Digest: "ab", Status: outcome.Running, Submitted: formsAt, Plan: []byte(`{"steps": []}`),
		Steps: []outcome.Step{{ID: "s1", Tool: "get_weather", Status: outcome.StepRunning, Ready: formsAt, Waiting: "with a worker"}},
	}
	wiretest.RoundTrip(t, *update, "get_answer", versioned(running.JSON()), wiretest.Kept, func(m nats.Msg) nats.Msg {
		var r outcome.Run
		require.NoError(t, json.Unmarshal(m.Data, &r))
		return versioned(r.JSON())
	})
	head := outcome.HeadOf(&running)
	head.Stats.Steps = 1
	wiretest.RoundTrip(t, *update, "head_answer", versioned(wire.HeadReply(head)), wiretest.Ignored, func(m nats.Msg) nats.Msg {
		h, err := wire.ParseHeadReply(&m)
		require.NoError(t, err)
		return versioned(wire.HeadReply(h))
	})
	o, err := tool.ReadOverride([]byte(`{"x-orchestration":{"max_concurrency":8},"by":"ann"}`))
	require.NoError(t, err)
	wiretest.RoundTrip(t, *update, "override_answer", versioned(written(t, kv.Overridden{Name: "get_weather", Override: o})), wiretest.Ignored, as[kv.Overridden](t))
}
