package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/internal/lab/living"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// healthy runs a world without faults and gives its evidence.
func healthy(t *testing.T, patience time.Duration, shape Shape) *Evidence {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	self, err := os.Executable()
	require.NoError(t, err)
	w, err := newWorld(ctx, loopback{}, t.TempDir(), []string{self}, nil, shape)
	t.Cleanup(func() { require.NoError(t, w.close()) })
	require.NoError(t, err)
	require.NoError(t, w.startAgents(ctx))
	stuck, err := w.finish(ctx)
	require.NoError(t, err)
	require.Empty(t, stuck)
	ev, err := w.collect(ctx)
	require.NoError(t, err)
	return ev
}

// forged is evidence to be doctored: what is put into its lists does not change the original.
type forged struct {
	*Evidence
	t *testing.T
}

func forge(t *testing.T, e *Evidence) *forged {
	f := *e
	f.Events, f.Ledger, f.Seen, f.History = slices.Clone(e.Events), slices.Clone(e.Ledger), slices.Clone(e.Seen), slices.Clone(e.History)
	f.Texts, f.Sent = maps.Clone(e.Texts), slices.Clone(e.Sent)
	return &forged{&f, t}
}

// event returns the place of the first event that fits.
func (f *forged) event(fits func(journal.Event) bool) *journal.Event {
	f.t.Helper()
	i := slices.IndexFunc(f.Events, fits)
	require.GreaterOrEqual(f.t, i, 0)
	return &f.Events[i]
}

func (f *forged) execution(kind, run, step string) *journal.Event {
	f.t.Helper()
	return f.event(func(e journal.Event) bool {
		return e.Kind == kind && strings.HasPrefix(e.Run, run) && (step == "" || e.Step == step)
	})
}

// doc returns a copy of the first document of a run of some kind, in its place.
func (f *forged) doc(fits func(*outcome.Run) bool) *outcome.Run {
	f.t.Helper()
	i := slices.IndexFunc(f.History, fits)
	require.GreaterOrEqual(f.t, i, 0)
	d, o := *f.History[i], *f.History[i].Outcome
	d.Outcome, d.Steps, o.Results = &o, slices.Clone(d.Steps), slices.Clone(o.Results)
	f.History[i] = &d
	return &d
}

// reject makes the evidence what it is where a run was rejected: its plan and its start were seen, and are gone.
func (f *forged) reject(d *outcome.Run) *outcome.Run {
	d.Status, d.Outcome.Status = outcome.Rejected, outcome.Rejected
	run := runKey{d.Tenant, d.Run}
	f.Ledger = slices.DeleteFunc(f.Ledger, func(e kv.Entry) bool { return recordRun(e.Subject) == run })
	f.Seen = slices.DeleteFunc(f.Seen, func(s Sighting) bool {
		rec, _ := subjects.ParseRecord(s.Subject)
		return recordRun(s.Subject) == run && rec.Kind != subjects.PlanKind && rec.Kind != subjects.StartKind
	})
	f.Events = slices.DeleteFunc(f.Events, func(e journal.Event) bool { return e.Run == d.Run && e.Step != "" })
	for i := range f.Events {
		if e := &f.Events[i]; e.Kind == journal.Outcome && e.Run == d.Run && e.Tenant == d.Tenant {
			e.Status, e.Digest = string(d.Status), digest(d.Outcome.JSON())
		}
	}
	return d
}

func ofKind(kind string) func(*outcome.Run) bool {
	return func(d *outcome.Run) bool { return strings.HasPrefix(d.Run, kind+"-") }
}

// step returns the place of the first record of a step of a chain.
func (f *forged) step(id string) int {
	f.t.Helper()
	i := slices.IndexFunc(f.Ledger, func(e kv.Entry) bool {
		rec, ok := subjects.ParseRecord(e.Subject)
		return ok && rec.Kind == subjects.StepKind && strings.HasPrefix(rec.Run.Plain(), kindChain) && rec.Attempt.Step == id
	})
	require.GreaterOrEqual(f.t, i, 0)
	return i
}

// TestEveryInvariantIsChecked breaks each promise in the evidence of a run in which all was well.
func TestEveryInvariantIsChecked(t *testing.T) {
	t.Parallel()
	ev := healthy(t, 2*time.Minute, Shape{Runs: 16, Orchestrators: 1, Workers: 2})
	report := Check(ev)
	require.Empty(t, report.Violations)
	require.Equal(t, 32, report.Runs)
	for _, what := range []string{sometimesStrict, sometimesReplayed, sometimesConflict, sometimesAsked, sometimesSkipped, sometimesItems, sometimesNotTaken, sometimesTold, sometimesNested, living.Fits} {
		require.Positive(t, report.Counts[what], what)
	}
	// What was purged with its run says as much as what stands.
	gone := forge(t, ev)
	gone.Ledger, gone.Purged, gone.Kept = nil, ev.Ledger, false
	after := Check(gone.Evidence)
	require.Empty(t, after.Violations)
	for what, n := range report.Counts {
		require.Equal(t, n, after.Counts[what], what)
	}

	chain := ofKind(kindChain)
	for _, tt := range []struct {
		invariant, says string
		breaks          func(f *forged)
	}{
		{"I1", "no outcome", func(f *forged) { f.History = f.History[1:] }},
		{"I1", "two documents", func(f *forged) { f.History = append(f.History, f.History[0]) }},
		{"I1", "told another outcome", func(f *forged) {
			f.event(func(e journal.Event) bool { return e.Kind == journal.Outcome }).Digest = "other"
		}},
		{"I1", "another plan was accepted", func(f *forged) {
			e := *f.event(func(e journal.Event) bool { return e.Kind == journal.Accept })
			e.Digest = plan.Digest(nil)
			f.Events = append(f.Events, e)
		}},
		{"I1", "not in the ledger", func(f *forged) {
			f.Ledger = slices.DeleteFunc(f.Ledger, func(e kv.Entry) bool { return strings.HasSuffix(e.Subject, ".plan") })
		}},
		{"I2", "two records", func(f *forged) { f.Ledger = append(f.Ledger, f.Ledger[f.step("s3")]) }},
		{"I2", "after its success", func(f *forged) {
			e := f.Ledger[f.step("s3")]
			e.Subject = strings.TrimSuffix(e.Subject, "1") + "2"
			f.Ledger = append(f.Ledger, e)
		}},
		{"I2", "written twice", func(f *forged) {
			e := f.Ledger[f.step("s3")]
			f.Seen = append(f.Seen, Sighting{e.Subject, e.Seq - 1, "x"})
		}},
		{"I2", "not the one that was seen", func(f *forged) { f.Ledger[f.step("s3")].Data = []byte(`{"v":1} `) }},
		{"I3", "before its dependency", func(f *forged) {
			last := f.execution(journal.Begin, kindChain, "s9")
			last.At = f.execution(journal.Begin, last.Run, "s1").At
		}},
		{"I3", "can't be those of a run", func(f *forged) {
			a, b := f.step("s3"), f.step("s4")
			f.Ledger[a], f.Ledger[b] = f.Ledger[b], f.Ledger[a]
		}},
		{"I4", "leases of try1_all", func(f *forged) {
			e := *f.execution(journal.Begin, kindChain, "s0")
			e.Tool = "try1_all"
			for i := range 65 {
				e.Key = fmt.Sprint("key", i)
				end := e
				end.Kind, end.At = journal.End, e.At+1000
				f.Events = append(f.Events, e, end)
			}
		}},
		{"I5", "is skipped", func(f *forged) { f.doc(chain).Steps[5].Status = outcome.StepSkipped }},
		{"I5", "is succeeded", func(f *forged) {
			d := f.doc(func(d *outcome.Run) bool {
				return d.Stats.Skipped > 0 && !ofKind(kindNest)(d) && !ofKind(living.StateKind)(d)
			})
			i := slices.IndexFunc(d.Steps, func(s outcome.Step) bool { return s.Status == outcome.StepSkipped })
			d.Steps[i].Status = outcome.StepSucceeded
		}},
		{"I5", "whether a dependency failed is false", func(f *forged) {
			d := f.doc(func(d *outcome.Run) bool { return ofKind(kindBranch)(d) && d.Stats.NotTaken > 0 })
			i := slices.IndexFunc(d.Steps, func(s outcome.Step) bool { return s.Status == outcome.StepNotTaken })
			d.Steps[i].Status = outcome.StepSkipped
		}},
		{"I2", "what the if of step", func(f *forged) {
			i := slices.IndexFunc(f.Ledger, func(e kv.Entry) bool {
				return strings.Contains(e.Subject, ".told.") && strings.HasSuffix(e.Subject, ".if")
			})
			require.GreaterOrEqual(f.t, i, 0)
			f.Ledger = append(f.Ledger, f.Ledger[i])
		}},
		{"I6", "were not taken", func(f *forged) {
			f.doc(func(d *outcome.Run) bool {
				return d.Stats.NotTaken > 0 && !ofKind(kindNest)(d) && !ofKind(living.StateKind)(d)
			}).Outcome.NotTaken = []string{"other"}
		}},
		{"I6", "was handled by", func(f *forged) {
			o := f.doc(func(d *outcome.Run) bool { return len(d.Outcome.Errors) > 0 && ofKind(kindBranch)(d) }).Outcome
			o.Errors = slices.Clone(o.Errors)
			o.Errors[0].HandledBy = "other"
		}},
		{"I6", "step s", func(f *forged) { // or e0: how a step of a plan with plans within it ended
			d := f.doc(func(d *outcome.Run) bool { return ofKind(kindNest)(d) && d.Steps[0].ID[0] == 's' })
			d.Steps[0].Status = outcome.StepSkipped
		}},
		{"I6", "and in the reference", func(f *forged) { // of a plan with plans within it
			o := f.doc(func(d *outcome.Run) bool {
				return ofKind(kindNest)(d) && d.Status == outcome.Succeeded && (len(d.Outcome.Results) > 0 || d.Outcome.Output != nil)
			}).Outcome
			if o.Output != nil {
				o.Output = json.RawMessage(`"other"`)
				return
			}
			o.Results = slices.Clone(o.Results)
			o.Results[0].JSON = []byte(`"other"`)
		}},
		{"I2", "whether what c", func(f *forged) { // of a large result
			i := slices.IndexFunc(f.Ledger, func(e kv.Entry) bool { return strings.HasSuffix(e.Subject, ".state") })
			require.GreaterOrEqual(f.t, i, 0)
			f.Ledger = slices.Delete(f.Ledger, i, i+1)
		}},
		{"I6", "a record says of what c", func(f *forged) {
			i := slices.IndexFunc(f.Ledger, func(e kv.Entry) bool { return strings.HasSuffix(e.Subject, ".state") })
			require.GreaterOrEqual(f.t, i, 0)
			says := `{"holds":true}`
			if !strings.Contains(string(f.Ledger[i].Data), "error") {
				says = `{"error":{"code":"state_invalid","message":"no"}}`
			}
			f.Ledger[i].Data = []byte(says)
		}},
		{"I3", "whether what it is called with fits", func(f *forged) {
			run := f.event(func(e journal.Event) bool {
				return e.Kind == journal.Begin && strings.HasPrefix(e.Run, living.StateKind) && WorkOf(e.Run).state.Large[0]
			}).Run
			f.event(func(e journal.Event) bool {
				return e.Kind == journal.Begin && e.Run == run && (e.Step == "u0" || e.Step == "r0")
			}).At = 1
		}},
		{"I6", "did not come to", func(f *forged) { f.doc(ofKind(living.StateKind)).Steps[0].Status = outcome.StepSkipped }},
		{"I6", "with something else than", func(f *forged) {
			f.event(func(e journal.Event) bool {
				return e.Kind == journal.Begin && strings.HasPrefix(e.Run, living.StateKind) && e.Step[0] != 'c'
			}).Args = "other"
		}},
		{"I6", "a valid plan was rejected", func(f *forged) { f.doc(chain).Status = outcome.Rejected }},
		{"I6", "told that a valid plan was rejected", func(f *forged) {
			e := f.event(func(e journal.Event) bool { return e.Kind == journal.Outcome })
			e.Status, e.Digest, e.Generation = string(outcome.Rejected), "other", e.Generation-1
		}},
		{"I8", "was rejected, and it is left", func(f *forged) { f.doc(chain).Status = outcome.Rejected }},
		{"I1", "its plan was accepted, and is gone", func(f *forged) {
			f.reject(f.doc(chain)).Generation-- // the rejection of an earlier plan explains nothing
		}},
		{"I2", ".plan was seen, and is gone", func(f *forged) { f.reject(f.doc(chain)).Generation-- }},
		{"I6", "the result of step", func(f *forged) { f.doc(chain).Outcome.Results[0].JSON = []byte(`{"v":2}`) }},
		{"I6", "the output is", func(f *forged) {
			f.doc(ofKind(kindBranch)).Outcome.Output = json.RawMessage(`"other"`)
		}},
		{"I6", "and the reference to", func(f *forged) { f.doc(chain).Outcome.Status = outcome.Partial }},
		{"I6", "other arguments", func(f *forged) { f.execution(journal.Begin, kindChain, "s4").Args = "other" }},
		{"I7", "no record decides it", func(f *forged) { f.execution(journal.Effect, kindChain, "s4").Attempt = 7 }},
		{"I7", "which is not there", func(f *forged) { f.execution(journal.Effect, kindChain, "s4").Generation = 1 << 40 }},
		{"I7", "was executed 2 times", func(f *forged) { f.Events = append(f.Events, *f.execution(journal.Begin, kindOnce, "")) }},
		{"I8", "nobody submitted", func(f *forged) { f.doc(chain).Run = "random-nobody" }},
		{"I8", "that nobody sent", func(f *forged) { f.doc(chain).Digest = "other" }},
		{"I8", "hasn't got", func(f *forged) {
			e := &f.Ledger[f.step("s3")]
			e.Subject = strings.Replace(e.Subject, ".s3.", ".sX.", 1)
		}},
		{"I1", "was accepted, and is gone", func(f *forged) {
			i := slices.IndexFunc(f.Ledger, func(e kv.Entry) bool { return strings.HasSuffix(e.Subject, ".plan") })
			f.Ledger[i].Time = f.Ledger[i].Time.Add(time.Hour) // another one, sent again
		}},
		{"I2", "was seen, and is gone", func(f *forged) { i := f.step("s3"); f.Ledger = slices.Delete(f.Ledger, i, i+1) }},
		{"I9", "started again", func(f *forged) { f.Broken = []string{"w1"} }},
		{"I9", "left over", func(f *forged) { f.Pending = []string{"some step"} }},
		{"I9", "leases", func(f *forged) { f.AckPending = 1 }},
		{"I9", "in time", func(f *forged) { f.Stuck = []string{"a1.1"} }},
		{"I9", "gave up", func(f *forged) {
			f.event(func(e journal.Event) bool { return e.Kind == journal.Outcome }).Code = "timeout"
		}},
		{"I10", "w1.log", func(f *forged) { f.Texts["w1.log"] = "calling with " + secretOf("tenant1", "random-1") }},
		{"I10", "the record", func(f *forged) {
			e := &f.Ledger[f.step("s3")]
			e.Header = nats.Header{"X": {secretOf("tenant1", "random-1")}}
		}},
		{"I10", "was given the context", func(f *forged) { f.execution(journal.Begin, kindChain, "s4").Secret = "tenant2/other" }},
	} {
		t.Run(tt.invariant+" "+tt.says, func(t *testing.T) {
			t.Parallel()
			f := forge(t, ev)
			tt.breaks(f)
			require.True(t, slices.ContainsFunc(Check(f.Evidence).Violations, func(v Violation) bool {
				return v.Invariant == tt.invariant && strings.Contains(v.Text, tt.says)
			}), "found %.2000v", Check(f.Evidence).Violations)
		})
	}
	for kind, allowed := range map[string]bool{natsKilled + isBack: true, natsRestarted + isBack: true, "worker killed" + isBack: false, natsKilled: false} {
		t.Run("a step message that came back, "+kind, func(t *testing.T) {
			t.Parallel()
			f := forge(t, ev)
			rec, ok := subjects.ParseRecord(f.Ledger[f.step("s3")].Subject)
			require.True(t, ok)
			f.Pending = []string{subjects.Step(rec.Attempt, 0)}
			f.Faults = append(slices.Clone(f.Faults), Fault{Kind: kind, At: time.Now()})
			report := Check(f.Evidence)
			require.Equal(t, allowed, len(report.Violations) == 0, "%v", report.Violations)
			require.Equal(t, allowed, report.Counts[sometimesBack] == 1)
			f.AckPending = 1 // it is leased, so somebody was given it
			require.NotEmpty(t, Check(f.Evidence).Violations)
		})
	}
	t.Run("a rejected plan is gone", func(t *testing.T) {
		t.Parallel()
		f := forge(t, ev)
		f.reject(f.doc(chain))
		report := Check(f.Evidence)
		require.Len(t, report.Violations, 1, "%v", report.Violations)
		require.Contains(t, report.Violations[0].Text, "a valid plan was rejected")
		require.Zero(t, report.Lost.total())
	})
	t.Run("a loss that is allowed for", func(t *testing.T) {
		t.Parallel()
		f := forge(t, ev)
		i := f.step("s3")
		gone := recordRun(f.Ledger[i].Subject)
		f.Ledger = slices.Delete(f.Ledger, i, i+1)
		forgive(f.Evidence)
		report := Check(f.Evidence)
		require.Empty(t, report.Violations)
		require.Equal(t, 31, report.Runs, "%v is left out", gone)
		require.Equal(t, 1, report.Counts[sometimesPowerLoss])
	})
}

// A lease that a fault may have cost counts no longer than up to the fault.
func TestLeasesEndWithTheirFaults(t *testing.T) {
	t.Parallel()
	at := time.Unix(100, 0)
	ev := &Evidence{Limits: map[string]int{"t": 1}}
	for i, who := range []string{"w1.1", "w2.1"} {
		e := journal.Event{Kind: journal.Begin, Who: who, Tool: "t", Key: fmt.Sprint(i), At: at.Add(time.Duration(i) * time.Second).UnixNano()}
		end := e
		end.Kind, end.At = journal.End, at.Add(5*time.Second).UnixNano()
		ev.Events = append(ev.Events, e, end)
	}
	most := func() int {
		c := &checker{ev: ev, report: &Report{Counts: map[string]int{}}, runs: map[runKey]*runView{}}
		c.checkLimits()
		return len(c.report.Violations)
	}
	require.Equal(t, 1, most())
	ev.Faults = []Fault{{Kind: "stopped", At: at.Add(500 * time.Millisecond), Workers: []string{"w1.1"}}}
	require.Zero(t, most())
	ev.Faults[0].Workers = []string{"w9.1"}
	require.Equal(t, 1, most())
}
