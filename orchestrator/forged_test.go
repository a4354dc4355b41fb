package orchestrator_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// forge publishes a record into the ledger as whoever may write records of a tool can: any bytes and headers, on any
// subject that ends in "step.<tool>.<what>".
func (s *system) forge(run subjects.Run, generation, what, version string) uint64 {
	s.t.Helper()
	js, err := s.nc.JetStream()
	require.NoError(s.t, err)
	p := strconv.Itoa(run.Partition())
	m := &nats.Msg{Subject: subjects.LedgerPrefix(0) + p + "." + run.Tenant + "." + run.ID + "." + generation + ".step." + what, Data: []byte(`"forged"`)}
	if version != "" {
		m.Header = nats.Header{subjects.HeaderVersion: {version}}
	}
	ack, err := js.PublishMsg(m)
	require.NoError(s.t, err)
	return ack.Sequence
}

// running returns the generation of a run that goes on.
func (s *system) running(id string) string {
	s.t.Helper()
	doc, err := s.client.Get(ctx(s.t), id)
	require.NoError(s.t, err)
	return strconv.FormatUint(doc.Generation, 10)
}

// TestNobodyFreezesARunByARecordOfATool: whoever may write records of one tool can't stop a run that has nothing to do
// with it, neither before nor after its owner has begun with it.
func TestNobodyFreezesARunByARecordOfATool(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := subjects.NewRun("default", "held")
	r := s.submit(`{"steps":[{"id":"g","tool":"gate"},{"id":"e","tool":"echo","depends_on":["g"]}]}`, "held")
	<-s.tools.begun
	g := s.running("held")
	for _, x := range []struct{ what, version string }{
		{"mine.zz.1", "9"}, {"mine.zz.1.claim", "9"}, {"mine.zz.2", "junk"}, {"mine.zz.0", ""}, {"mine.zz.abc", ""}, {"mine.zz.99999999999999999999", ""},
		{"mine.zz.1.other", ""}, {"mine.zz", ""}, {"mine", ""}, {"mine.g.1", "9"}, {"mine.g.1.claim", "9"}, {"mine.zz.+1", "9"}, {"mine.g.01", "9"},
		{"gate.g.01", ""}, {"gate.g.+1", ""}, {"gate.zz.1", "9"}, {"gate.g=0.1", "9"}, {"gate.g.7", "9"}, {"gate.g.1.claim", "9"}, {"gate.g.1.claim.x", ""},
		{"%.zz.1", "9"}, {"=41.zz.1", "9"},
		{"gate.g/x.1", ""}, {"gate.g=0/x.1", ""}, {"gate.g/=1/x.1", ""}, {"gate.g/=0.1", ""}, {"gate.g/=0/=plan.1", ""}, {"gate.=.1", ""}, {"gate.=0.1", ""}, {"gate.g/.1", ""},
		{"gate./g.1", ""}, {"gate.g//g.1", ""}, {"gate.g/x=1.1.claim", ""}, {"=.g.1", ""}, {"=.=.1", ""}, {"=3D.g.1", ""},
	} {
		s.forge(id, g, x.what, x.version)
	}
	s.orchestrator() // some partitions are read anew
	close(s.tools.gate)
	require.Equal(t, outcome.Succeeded, s.wait(r).Status)
}

// TestARecordThatNobodyCanReadFailsItsAttempt: one of a version above the run's start, or of none, has decided the
// attempt, for good, and for whoever reads it.
func TestARecordThatNobodyCanReadFailsItsAttempt(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2", "9.1", "junk", "-1", "+1"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			id := subjects.NewRun("default", "held")
			r := s.submit(`{"steps":[{"id":"g","tool":"gate"},{"id":"f","tool":"flaky","depends_on":["g"]}],"on_failure":"continue"}`, "held")
			<-s.tools.begun
			s.forge(id, s.running("held"), "gate.g.1", version)
			o := s.wait(r)
			require.Equal(t, outcome.Failed, o.Status)
			require.Equal(t, fault.InvalidRecord, o.Errors[0].Code)
			require.Contains(t, o.Errors[0].Message, strconv.Quote(version))
			require.NotEmpty(t, o.Errors[0].Hint)
			require.Equal(t, fault.Skipped, o.Errors[1].Code)
			doc := s.history("default", "held")
			require.Equal(t, fault.InvalidRecord, doc.Steps[0].Error.Code)
		})
	}
}

// TestARecordThatCameEarlyCountsWhenItsAttemptIsOut: its subject is taken, so nobody else can decide the attempt any
// more.
func TestARecordThatCameEarlyCountsWhenItsAttemptIsOut(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		version string
		code    fault.Code
	}{"readable": {"1", ""}, "of another version": {"9", fault.InvalidRecord}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			id := subjects.NewRun("default", "held")
			r := s.submit(`{"steps":[{"id":"g","tool":"gate"},{"id":"f","tool":"flaky","depends_on":["g"]}]}`, "held")
			<-s.tools.begun
			s.forge(id, s.running("held"), "flaky.f.1", x.version)
			close(s.tools.gate)
			o := s.wait(r)
			if x.code == "" {
				require.Equal(t, outcome.Succeeded, o.Status)
				return
			}
			require.Equal(t, x.code, o.Errors[0].Code)
		})
	}
}

// TestRecordsWithoutEffectDoNotKeepTheSweepAway: a run below which somebody writes all the time is looked after like
// any other.
func TestRecordsWithoutEffectDoNotKeepTheSweepAway(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, err := s.store.Registry.Register(ctx(t), []byte(`{"name":"absent","inputSchema":{"type":"object"}}`)) // and no worker
	require.NoError(t, err)
	id := subjects.NewRun("default", "held")
	s.submit(`{"steps":[{"id":"a","tool":"absent"}]}`, "held")
	g := s.running("held")
	n, err := strconv.ParseUint(g, 10, 64)
	require.NoError(t, err)
	step := subjects.Step(subjects.Attempt{Run: id, Generation: n, Tool: "absent", Step: "a", Number: 1}, 0)
	there := func() bool { _, err := s.store.Ledger.Read(ctx(t), step); return err == nil }
	require.Eventually(t, there, patience, 10*time.Millisecond)
	require.NoError(t, s.store.Ledger.PurgeSubject(ctx(t), step))
	for i := 1; !there(); i++ { // the sweep comes every 300 ms
		require.Less(t, i, 500, "the step that was lost is not sent again")
		s.forge(id, g, "mine.zz."+strconv.Itoa(i), "")
		s.forge(id, g, "absent.a."+strconv.Itoa(1000+i), "9")
		s.forge(id, g, "absent.a."+strconv.Itoa(i)+".claim", "9")
		time.Sleep(20 * time.Millisecond)
	}
}

// TestAPlanOfAVersionThatIsNoNumberIsRejected: nobody will ever know that version.
func TestAPlanOfAVersionThatIsNoNumberIsRejected(t *testing.T) {
	t.Parallel()
	s := start(t)
	m := &nats.Msg{Subject: subjects.Submit("default", "junk"), Header: nats.Header{subjects.HeaderVersion: {"junk"}}, Data: []byte(`{"steps":[{"id":"e","tool":"echo"}]}`)}
	_, err := s.nc.RequestMsg(m, patience)
	require.NoError(t, err)
	doc := s.history("default", "junk")
	require.Equal(t, outcome.Rejected, doc.Status)
	require.Equal(t, []fault.Code{fault.InvalidValue}, codes(doc.Outcome.Problems))
	require.Contains(t, doc.Outcome.Problems[0].Message, `"junk"`)
}

// TestARunThatIsLeftAloneCanNotBeCancelled, and says so.
func TestARunThatIsLeftAloneCanNotBeCancelled(t *testing.T) {
	t.Parallel()
	s := start(t)
	m := &nats.Msg{Subject: subjects.Submit("default", "later"), Header: nats.Header{subjects.HeaderVersion: {"9"}}, Data: []byte(`{"steps":[{"id":"e","tool":"echo"}]}`)}
	_, err := s.nc.RequestMsg(m, patience)
	require.NoError(t, err)
	require.Eventually(t, func() bool { // once the owner has read the plan
		_, err = s.client.Cancel(ctx(t), "later", "ann")
		return fault.CodeOf(err) != fault.NotFound
	}, patience, 10*time.Millisecond)
	require.Equal(t, fault.NewerVersion, fault.CodeOf(err), "%v", err)
	require.NotEmpty(t, fault.As(err).Hint)
	id := subjects.NewRun("default", "later")
	e, err := s.store.Ledger.Read(ctx(t), subjects.PlanRecord(id, 1))
	require.NoError(t, err)
	_, err = s.store.Ledger.Read(ctx(t), subjects.StopRecord(id, e.Seq, 1))
	require.Equal(t, fault.NotFound, fault.CodeOf(err), "nothing was written")
}
