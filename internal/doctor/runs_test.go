package doctor_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/doctor"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

func TestRunsAndToolsThatNobodyServes(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	run := subjects.NewRun("acme", "order-42")
	g := submit(t, s, run, `{"steps":[]}`)
	gone := register(t, s, "gone", 2)
	start := fmt.Sprintf(`{"tools":{"gone":{"digest":%q,"shard":%d,"ack_wait_ms":4000}}}`, gone.Digest, gone.Shard)
	create(t, s, subjects.StartRecord(run, g, 1), start, nil)
	busy := register(t, s, "busy", 2)
	dispatch(t, s, kv.Dispatch{Attempt: attempt("busy", "a"), Shard: busy.Shard})
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	bucket, err := js.KeyValue(ctx(t), "tools")
	require.NoError(t, err)
	require.NoError(t, bucket.Delete(ctx(t), "gone"))
	require.NoError(t, js.DeleteConsumer(ctx(t), "STEPS_0", "gone"))

	r, err := doctor.Examine(ctx(t), s.Conn(), doctor.Options{Stale: time.Nanosecond})
	require.NoError(t, err)
	require.Contains(t, finding(t, r, "orchestrator", "").Fix, "orchestrator --url")
	require.Contains(t, finding(t, r, "worker", "busy").Found, "1 waiting step")
	require.Contains(t, finding(t, r, "run", "run order-42 of tenant acme").Means, "no orchestrator is alive")
	f := finding(t, r, "frozen-tool", "gone")
	require.Contains(t, f.Found, "run order-42 of tenant acme needs it")
	require.True(t, f.Fixable)

	r, err = doctor.Examine(ctx(t), s.Conn(), doctor.Options{Mend: true})
	require.NoError(t, err)
	require.True(t, finding(t, r, "frozen-tool", "gone").Mended)
	back, err := s.Registry.Tool(ctx(t), "gone")
	require.NoError(t, err)
	require.Equal(t, gone.Digest, back.Digest)
	require.Equal(t, 4*time.Second, back.AckWait)
	require.Equal(t, 2, consumer(t, s, back).Config.MaxAckPending)
}

func TestWhatTheOwnerSaysOfARun(t *testing.T) {
	t.Parallel()
	p := admit(t, kv.Config{})
	run := subjects.NewRun("acme", "order-42")
	submit(t, p.Store, run, `{"steps":[]}`)
	f := finding(t, p.examine(doctor.Options{Stale: time.Nanosecond}), "run", "run order-42")
	require.Equal(t, doctor.Broken, f.Health)
	require.Contains(t, f.Means, "its owner does not answer")
	require.Empty(t, unwell(p.examine(doctor.Options{})), "it has just begun")

	doc, err := json.Marshal(&outcome.Run{Status: outcome.Running, Steps: []outcome.Step{{ID: "a", Status: outcome.StepReady, Waiting: "window full"}}})
	require.NoError(t, err)
	_, err = p.Conn().Subscribe(subjects.API(run, subjects.VerbGet), func(m *nats.Msg) { _ = m.Respond(doc) })
	require.NoError(t, err)
	f = finding(t, p.examine(doctor.Options{Stale: time.Nanosecond}), "run", "run order-42")
	require.Equal(t, doctor.Notable, f.Health)
	require.Contains(t, f.Found, "a: window full")

	_, err = p.Archive.CreateHistory(ctx(t), run, "", finished(run))
	require.NoError(t, err)
	require.Empty(t, unwell(p.examine(doctor.Options{Stale: time.Nanosecond})), "it is over")
}

// An open plan may wait for amendments for as long as it is open for: nothing of it was lost.
func TestAnOpenPlanIsHealthy(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		plan  string
		steps []outcome.Step
		found string
	}{
		"open":       {`{"open":true,"steps":[{"id":"a","tool":"t"}]}`, []outcome.Step{{ID: "a", Status: outcome.StepSucceeded}}, "waits for amendments"},
		"unfinished": {`{"open":true,"steps":[{"id":"a","tool":"t"},{"id":"b","tool":"t"}]}`, []outcome.Step{{ID: "a", Status: outcome.StepReady}, {ID: "b", Status: outcome.StepSucceeded}}, ""},
		"closed":     {`{"steps":[{"id":"a","tool":"t"}]}`, []outcome.Step{{ID: "a", Status: outcome.StepSucceeded}}, ""},
		"within": {`{"steps":[{"id":"p","plan":{"open":true,"steps":[{"id":"a","tool":"t"}]}}]}`,
			[]outcome.Step{{ID: "p", Status: outcome.StepRunning, Steps: []outcome.Step{{ID: "p/a", Status: outcome.StepSucceeded}}}}, "waits for amendments"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := admit(t, kv.Config{})
			run := subjects.NewRun("acme", "order-42")
			submit(t, p.Store, run, x.plan)
			doc, err := json.Marshal(&outcome.Run{Status: outcome.Running, Plan: []byte(x.plan), Steps: x.steps})
			require.NoError(t, err)
			_, err = p.Conn().Subscribe(subjects.API(run, subjects.VerbGet), func(m *nats.Msg) { _ = m.Respond(doc) })
			require.NoError(t, err)
			f := finding(t, p.examine(doctor.Options{Stale: time.Nanosecond}), "run", "run order-42")
			require.Equal(t, x.found == "", f.Health == doctor.Broken, "%+v", f)
			require.Contains(t, f.Found, x.found)
		})
	}
}

func TestStepsThatComeBack(t *testing.T) {
	t.Parallel()
	p := admit(t, kv.Config{AckWait: 200 * time.Millisecond})
	lame := register(t, p.Store, "lame", 1)
	_, delivered := pull(t, p.Store, lame, 2)
	dispatch(t, p.Store, kv.Dispatch{Attempt: attempt("lame", "a"), Shard: lame.Shard})
	receive(t, delivered, "a step")
	receive(t, delivered, "the step again")
	f := finding(t, p.examine(doctor.Options{}), "redelivery", "lame")
	require.Equal(t, doctor.Broken, f.Health, "its only slot")
	require.Contains(t, f.Found, "1 of 1 leased step")
}

func TestNotesAboutClocksLettersAndRoom(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{LedgerMaxBytes: 10_000})
	told, _ := join(t, s, "one")
	until(t, told, "one")
	_, err := s.Conn().Subscribe(subjects.PingSubject, func(m *nats.Msg) {
		body, _ := json.Marshal(map[string]any{"name": "fast", "time": time.Now().Add(time.Hour)})
		_ = m.Respond(body)
	})
	require.NoError(t, err)
	run := subjects.NewRun("acme", "order-42")
	_, err = s.Archive.CreateDead(ctx(t), run, "", &outcome.DeadLetter{
		Run: run.Plain(), Tenant: run.Tenant, Generation: 7, Step: "a", Tool: "echo", Attempts: 2, Key: "key",
		Error: fault.New(fault.Timeout, "it failed"), Failed: time.Now().UTC(), Arguments: []byte(`{"a":1}`),
	})
	require.NoError(t, err)
	submit(t, s, run, strings.Repeat("x", 9_000))
	r, err := doctor.Examine(ctx(t), s.Conn(), doctor.Options{})
	require.NoError(t, err)
	f := finding(t, r, "clock", "orchestrator fast")
	require.Equal(t, doctor.Broken, f.Health)
	require.Contains(t, f.Found, "before this machine's")
	require.Contains(t, finding(t, r, "dead-letters", "").Found, "1 step")
	require.Contains(t, finding(t, r, "room", "KV_runs_0").Fix, "--max-bytes=20000")
}

// finished returns the document of a run that succeeded.
func finished(r subjects.Run) *outcome.Run {
	return &outcome.Run{
		Version: 1, Run: r.Plain(), Tenant: r.Tenant, Generation: 7, Digest: "d", Status: outcome.Succeeded,
		Submitted: time.Now().UTC(), Finished: time.Now().UTC(),
		Outcome: &outcome.Outcome{Run: r.Plain(), Status: outcome.Succeeded, Results: outcome.Results{{Step: "a", JSON: []byte(`"x"`)}}},
		Plan:    []byte(`{"steps":[]}`),
	}
}

// TestRunsThatWaitForPeople: however many they are, they are one note, whatever their owner can say of them.
func TestRunsThatWaitForPeople(t *testing.T) {
	t.Parallel()
	p := admit(t, kv.Config{})
	for i := range 8 {
		run := subjects.NewRun("acme", fmt.Sprint("order-", i))
		g := submit(t, p.Store, run, `{"steps":[]}`)
		require.NoError(t, p.Archive.PutQuestion(ctx(t), run, "", &outcome.Question{
			Run: run.Plain(), Tenant: run.Tenant, Generation: g, Step: "a", Number: 1, Kind: outcome.Approval, Digest: "d", Since: time.Now(),
		}))
	}
	r := p.examine(doctor.Options{Stale: time.Nanosecond})
	require.Empty(t, r.Problems())
	f := finding(t, r, "run", "")
	require.Equal(t, doctor.Notable, f.Health)
	require.Contains(t, f.Found, "8 runs with a question")
	require.Contains(t, f.Fix, "stepjet questions list")
}

// TestManyRunsThatAreWell: those that are not named are no worse than those that are.
func TestManyRunsThatAreWell(t *testing.T) {
	t.Parallel()
	p := admit(t, kv.Config{})
	large := outcome.Run{Status: outcome.Running, Steps: []outcome.Step{{ID: "a", Status: outcome.StepReady, Waiting: "window full"}}}
	doc, err := json.Marshal(large)
	require.NoError(t, err)
	for i := range 7 {
		run := subjects.NewRun("acme", fmt.Sprint("order-", i))
		submit(t, p.Store, run, `{"steps":[]}`)
		h, err := p.Archive.PutBlob(ctx(t), "", subjects.RunBlobName(run, 1, "document", "x"), doc)
		require.NoError(t, err)
		answer, err := json.Marshal(outcome.Run{Blob: h})
		require.NoError(t, err)
		_, err = p.Conn().Subscribe(subjects.API(run, subjects.VerbGet), func(m *nats.Msg) { _ = m.Respond(answer) })
		require.NoError(t, err)
	}
	require.NoError(t, p.Conn().Flush())
	r := p.examine(doctor.Options{Stale: time.Nanosecond})
	require.Empty(t, r.Problems())
	require.Contains(t, r.Findings, doctor.Finding{Check: "run", Health: doctor.Notable, Found: "2 more runs like these"})
}
