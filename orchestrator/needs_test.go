package orchestrator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/doctor"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// later is what plans that say so need, for an orchestrator that knows it.
var later = wire.Knowledge{"later": {In: func(plan []byte) bool { return bytes.Contains(plan, []byte("needs later")) }}}

const (
	laterPlan = `{"thought":"needs later","steps":[{"id":"a","tool":"echo"}]}`
	laterGate = `{"thought":"needs later","steps":[{"id":"g","tool":"gate"},{"id":"z","tool":"echo","depends_on":["g"]}]}`
	plainPlan = `{"steps":[{"id":"a","tool":"echo"}]}`
)

// settled waits until members that know as many needs as all together serve all partitions, and the others none.
func (s *system) settled() {
	s.t.Helper()
	js, err := s.nc.JetStream()
	require.NoError(s.t, err)
	bucket, err := js.KeyValue(subjects.MembersBucket)
	require.NoError(s.t, err)
	require.Eventually(s.t, func() bool {
		ids, err := bucket.Keys()
		if err != nil {
			return false
		}
		var knowing, lacking uint64
		for _, id := range ids {
			e, err := bucket.Get(id)
			if err != nil {
				return false
			}
			if m := wire.ParseMember(e.Value()); slices.Contains(m.Knows, "later") {
				knowing |= m.Serves
			} else {
				lacking |= m.Serves
			}
		}
		return knowing == ^uint64(0) && lacking == 0
	}, patience, 20*time.Millisecond)
}

// needFinding returns what the doctor says of a need, if that is not as it should be. On a busy machine it may find for a
// moment that nobody answers, or that the server does not: that is not asked about.
func (s *system) needFinding(need string) (f doctor.Finding, is bool) {
	s.t.Helper()
	report, err := doctor.Examine(ctx(s.t), s.nc, doctor.Options{})
	if fault.CodeOf(err) == fault.Timeout {
		return f, false
	}
	require.NoError(s.t, err)
	for _, f := range report.Findings {
		if f.Check == "orchestrator" && f.Health != doctor.Healthy && strings.Contains(f.Expected+f.Found, need) {
			return f, true
		}
	}
	return f, false
}

// needed waits until the doctor finds a need in some health.
func (s *system) needed(need string, health doctor.Health) (f doctor.Finding) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		found, is := s.needFinding(need)
		f = found
		return is && f.Health == health
	}, patience, 20*time.Millisecond, "%s", need)
	return f
}

// runUntilNeeded runs a plan again and again until the doctor says that some don't know what it needs: before the first such
// run all share, and whoever owns a plan's partition judges it by what it knows. It succeeds, or comes to what else it may.
func (s *system) runUntilNeeded(plan, need string, or ...outcome.RunStatus) doctor.Finding {
	s.t.Helper()
	for i := 0; ; i++ {
		if f, is := s.needFinding(need); is && f.Health == doctor.Notable {
			return f
		}
		o := s.run(plan, "first"+strconv.Itoa(i))
		require.Contains(s.t, append(or, outcome.Succeeded), o.Status, "%s", o.JSON())
	}
}

// knowing starts an orchestrator that knows some needs, and returns what stops it.
func (s *system) knowing(name string, knows wire.Knowledge) (stop func()) {
	s.t.Helper()
	cfg := s.config
	cfg.Name, cfg.Store.Knows = name, knows
	o, err := orchestrator.New(s.nc, cfg)
	require.NoError(s.t, err)
	return s.background(o.Run, o.Ready())
}

// TestWhoDoesNotKnowWhatRunsNeedOwnsNothing: beside one that knows it, an orchestrator that doesn't takes no
// partition, so that no run stands still; alone, it goes on with all runs but those, and says so to who asks for
// them.
func TestWhoDoesNotKnowWhatRunsNeedOwnsNothing(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *orchestrator.Config) { c.Store.Knows = wire.Ours() })
	knowing := s.knowing("newer", later)
	require.Contains(t, s.runUntilNeeded(laterPlan, "later").Means, "owns no partition")
	s.settled()
	for i := range 8 { // in eight partitions or so
		id := "then" + strconv.Itoa(i)
		require.Equal(t, outcome.Succeeded, s.run(laterPlan, id).Status)
		e, err := s.store.Ledger.Read(ctx(t), subjects.StartRecord(subjects.NewRun("default", id), s.history("default", id).Generation, 1))
		require.NoError(t, err)
		require.Equal(t, subjects.NeedsVersion, e.Header.Get(subjects.HeaderVersion))
		require.Contains(t, string(e.Data), `"needs":["later"]`)
	}

	held := s.submit(laterGate, "held")
	<-s.tools.begun
	knowing()
	close(s.tools.gate)
	require.Equal(t, outcome.Succeeded, s.run(plainPlan, "plain").Status, "it goes on with all else")
	_, err := s.client.Get(ctx(t), "held")
	require.Equal(t, fault.NewerVersion, fault.CodeOf(err), "%v", err)
	_, err = s.client.Cancel(ctx(t), "held", "ann")
	require.Equal(t, fault.NewerVersion, fault.CodeOf(err), "%v", err)
	require.Contains(t, s.needed("later", doctor.Broken).Fix, "start orchestrators of a newer version")

	s.knowing("again", later)
	require.Equal(t, outcome.Succeeded, s.wait(held).Status)
	s.settled()
	require.Equal(t, outcome.Succeeded, s.run(laterPlan, "last").Status)
	s.needed("later", doctor.Notable)
}

// TestARunWhoseNeedIsNotRecordedFindsItsWay: whoever meets it records what it needs, and it goes to one that knows it.
func TestARunWhoseNeedIsNotRecordedFindsItsWay(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *orchestrator.Config) { c.Store.Knows = wire.Ours() })
	newer := s.knowing("newer", later)
	s.runUntilNeeded(laterPlan, "later")
	s.settled()
	held := s.submit(laterGate, "held")
	<-s.tools.begun
	js, err := s.nc.JetStream()
	require.NoError(t, err)
	bucket, err := js.KeyValue(subjects.ToolsBucket)
	require.NoError(t, err)
	require.NoError(t, bucket.Delete(subjects.NeedKey("later")))
	newer()
	require.Eventually(t, func() bool {
		needs, err := s.store.Registry.Needs(ctx(t))
		return err == nil && len(needs) == 1
	}, patience, 20*time.Millisecond, "the other has taken the run over, and left it alone")
	close(s.tools.gate)
	s.knowing("again", later)
	require.Equal(t, outcome.Succeeded, s.wait(held).Status)
	s.settled()
}

// A tool that relies on notes makes what can reach it need them: a plan with it, one with an agent that may call it, and
// an amendment that adds the first such, which so asks for no approval.
func TestWhatReliesOnNotesNeedsThem(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.host("job", &tool.Orchestration{Note: true}, func(c context.Context, args json.RawMessage) (worker.Output, error) {
		noted, err := worker.Note(c, args)
		return worker.Output{Body: noted}, err
	})
	s.agent("boss", "", `{"planner":{"tool":"echo"},"tools":["job"]}`)
	startOf := func(id, plan string) *wire.Start {
		run := s.submit(plan, id)
		o, err := run.Wait(ctx(t))
		require.NoError(t, err)
		e, err := s.store.Ledger.Read(ctx(t), subjects.StartRecord(subjects.NewRun("default", id), o.Generation, 1))
		require.NoError(t, err)
		start, _, err := wire.ParseStart(e.Header, e.Data)
		require.NoError(t, err)
		return start
	}
	for id, plan := range map[string]string{
		"noting": `{"steps":[{"id":"a","tool":"job","arguments":{"x":1}}]}`,
		"boss":   `{"steps":[{"id":"a","tool":"boss"}]}`, // its planner's answers are none; it may call the tool all the same
	} {
		require.Contains(t, startOf(id, plan).Needs, wire.Notes, id)
	}
	require.NotContains(t, startOf("plain", plainPlan).Needs, wire.Notes)

	run, err := s.client.Submit(ctx(t), []byte(`{"open":true,"steps":[{"id":"g","tool":"echo"}]}`), client.SubmitOptions{Run: "grows"})
	require.NoError(t, err)
	for i, step := range []string{`{"id":"h","tool":"echo"}`, `{"id":"j","tool":"job","arguments":{"x":2}}`} {
		_, err = s.client.Amend(ctx(t), "grows", client.Amendment{Revision: i, Add: raws(step), Close: i == 1})
		require.NoError(t, err)
	}
	o, err := run.Wait(ctx(t))
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	for revision, want := range [][]string{nil, {wire.Notes}} {
		at := subjects.AmendRecord(subjects.NewRun("default", "grows"), o.Generation, "=", revision+1, 1)
		e, err := s.store.Ledger.Read(ctx(t), at)
		require.NoError(t, err)
		require.Equal(t, want, wire.RecordNeeds(e.Header, e.Data))
		require.False(t, wire.ParseAmend(e.Data).Approved)
	}
}
