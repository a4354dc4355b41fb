package chaos

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/internal/lab/living"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// livingCall returns a copy of the first call of a living run that fits, to be put beside the others.
func (f *forged) livingCall(fits func(journal.Event) bool) journal.Event {
	f.t.Helper()
	i := slices.IndexFunc(f.Sent, fits)
	require.GreaterOrEqual(f.t, i, 0)
	return f.Sent[i]
}

// ofStep fits calls of steps that some expression says, in runs whose plan was approved of or not.
func ofStep(expression string, approved bool) func(journal.Event) bool {
	is := regexp.MustCompile("^(" + expression + ")$")
	return func(e journal.Event) bool { return is.MatchString(e.Step) && WorkOf(e.Run).living.Approved == approved }
}

// amendOf returns the place of the first record of an amendment of a living run whose label fits.
func (f *forged) amendOf(label string) *kv.Entry {
	f.t.Helper()
	i := slices.IndexFunc(f.Ledger, func(e kv.Entry) bool {
		rec, ok := subjects.ParseRecord(e.Subject)
		return ok && rec.Kind == subjects.AmendKind && strings.Contains(string(e.Data), `"by":"`+label) && !WorkOf(rec.Run.Plain()).living.Approved
	})
	require.GreaterOrEqual(f.t, i, 0)
	return &f.Ledger[i]
}

// became is the code that the client of an amendment was told at last.
func (f *forged) became(run, label string) (code string) {
	for _, e := range f.Events {
		if e.Kind == journal.Amended && e.Run == run && e.Key == label {
			code = e.Code
		}
	}
	return code
}

// discarding returns a call of a step that a client discarded while it waited, made up from one of another step.
func (f *forged) discarding() journal.Event {
	f.t.Helper()
	gone := ""
	e := f.livingCall(func(e journal.Event) bool {
		if work := WorkOf(e.Run).living; !work.Approved && e.Step == "a" {
			for k := range living.Clients {
				id := fmt.Sprint("w", living.Clients+k)
				called := slices.ContainsFunc(f.Sent, func(x journal.Event) bool { return x.Run == e.Run && x.Step == id })
				for _, c := range work.Changes[k] {
					if slices.Equal(c.Discard, []string{id}) && !called && f.became(e.Run, c.Label) == "" {
						gone = id
						return true
					}
				}
			}
		}
		return false
	})
	e.Step = gone
	return e
}

// TestLivingRunsAreChecked plants a violation of each promise about living runs into the evidence of such in which all was
// well.
func TestLivingRunsAreChecked(t *testing.T) {
	t.Parallel()
	ev := healthy(t, 3*time.Minute,
		Shape{Runs: 4, Agents: 1, Living: 3, Orchestrators: 2, Workers: 2, Kinds: []string{kindSingle}, Heal: 2 * time.Minute})
	report := Check(ev)
	require.Empty(t, report.Violations)
	for _, what := range []string{living.I11, living.I12, living.I13, living.I14, living.I15, living.Refused, living.Repeat, living.Approved} {
		require.Positive(t, report.Counts[what], what)
	}
	early := func(e journal.Event) journal.Event { e.At = 1; return e }
	for _, tt := range []struct {
		invariant, says string
		breaks          func(f *forged)
	}{
		{"I11", "by the records it is", func(f *forged) {
			f.event(func(e journal.Event) bool { return e.Kind == journal.Amended && e.Code == "" }).Code = "overtaken"
		}},
		{"I11", "by the records it is", func(f *forged) { // asked again, and not known any more
			f.event(func(e journal.Event) bool { return e.Kind == journal.Amended && e.Attempt == 2 }).Code = "conflict"
		}},
		{"I11", "of which there is no record", func(f *forged) {
			f.event(func(e journal.Event) bool { return e.Kind == journal.Amended && e.Code == "" }).Revision += 100
		}},
		{"I11", "which is that of", func(f *forged) {
			f.event(func(e journal.Event) bool { return e.Kind == journal.Amended && e.Code == "" }).Key = "c9/9"
		}},
		{"I11", "stands after revision", func(f *forged) { // a number that nobody has
			e := f.amendOf("c1/done")
			e.Subject = e.Subject[:strings.LastIndexByte(e.Subject, '.')] + ".200"
		}},
		{"I11", "is in force twice", func(f *forged) {
			e := f.amendOf("c1/done")
			e.Data = bytes.Replace(e.Data, []byte(`"by":"c1/done"`), []byte(`"by":"c0/done"`), 1)
		}},
		{"I11", "which no amendment in force adds", func(f *forged) { // an owner sends what is in no amendment
			e := f.livingCall(ofStep("s1", false))
			e.Step = "s9"
			f.Sent = append(f.Sent, e)
		}},
		{"I11", "before the amendment that adds it was in force", func(f *forged) { f.Sent = append(f.Sent, early(f.livingCall(ofStep("s1", false)))) }},
		{"I11", "the document lacks the step", func(f *forged) {
			d := f.doc(ofKind(living.Kind))
			d.Steps = d.Steps[:len(d.Steps)-1]
		}},
		{"I11", "the document has the step", func(f *forged) {
			d := f.doc(ofKind(living.Kind))
			d.Steps = append(d.Steps, outcome.Step{ID: "untold"})
		}},
		{"I11", "is discarded in the document", func(f *forged) {
			d := f.doc(func(d *outcome.Run) bool { return ofKind(living.Kind)(d) && d.Status != outcome.Cancelled })
			d.Steps[0].Discarded = true
		}},
		{"I11", "and the ledger has", func(f *forged) { f.doc(ofKind(living.Kind)).Revision++ }},
		{"I12", "while it waited, and was sent", func(f *forged) { f.Sent = append(f.Sent, f.discarding()) }},
		{"I12", "while it waited, and was called by", func(f *forged) {
			e := f.discarding()
			e.Kind, e.Who = journal.Begin, "w1.1"
			e.Key = fmt.Sprintf("%s/%s/%d/%s", e.Tenant, subjects.Encode(e.Run), e.Generation, e.Step)
			f.Events = append(f.Events, e)
		}},
		{"I12", "as it was before", func(f *forged) { // written again by its client, and sent as it was submitted
			e := f.livingCall(func(e journal.Event) bool { return e.Step == "w1" && f.rewrote(e.Run) })
			e.Args = f.asSubmitted(e)
			f.Sent = append(f.Sent, e)
		}},
		{"I13", "before it was approved of", func(f *forged) { f.Sent = append(f.Sent, early(f.livingCall(ofStep("pay|p[0-9]", false)))) }},
		{"I13", "before its plan was approved of", func(f *forged) { f.Sent = append(f.Sent, early(f.livingCall(ofStep("a", true)))) }},
		{"I13", "before the amendment", func(f *forged) { f.Sent = append(f.Sent, early(f.livingCall(ofStep("s1", true)))) }},
		{"I13", "than those that were approved of", func(f *forged) {
			e := f.livingCall(ofStep("pay|p[0-9]", false))
			e.Args = "other"
			f.Sent = append(f.Sent, e)
		}},
		{"I13", "an answer to nothing", func(f *forged) { f.event(func(e journal.Event) bool { return e.Kind == journal.Forged }).Code = "" }},
		{"I14", "had succeeded", func(f *forged) { f.Sent = append(f.Sent, early(f.livingCall(ofStep("loop/=1/s", false)))) }},
		{"I14", "had succeeded", func(f *forged) { f.Sent = append(f.Sent, early(f.livingCall(ofStep("poll/=1", true)))) }},
		{"I14", "after the last iteration", func(f *forged) {
			e := f.livingCall(ofStep("poll/=1", false))
			e.Step = "poll/=9"
			f.Sent = append(f.Sent, e)
		}},
		{"I15", "with other arguments", func(f *forged) {
			e := f.livingCall(ofStep("u", false))
			e.Args = "that of another client"
			f.Sent = append(f.Sent, e)
		}},
		{"I3", "before what it refers to had succeeded", func(f *forged) { f.Sent = append(f.Sent, early(f.livingCall(ofStep("sub/y", false)))) }},
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
}

// rewrote reports whether a client wrote its step of a run again.
func (f *forged) rewrote(run string) bool {
	for _, c := range WorkOf(run).living.Changes[1] {
		if len(c.Add) > 0 && len(c.Discard) == 1 && c.Discard[0] == "w1" {
			return f.became(run, c.Label) == ""
		}
	}
	return false
}

// asSubmitted is the digest of what a call of w1 would be made with if nobody had written the step again.
func (f *forged) asSubmitted(e journal.Event) string {
	c := &checker{ev: f.Evidence, report: &Report{Counts: map[string]int{}}, runs: map[runKey]*runView{}}
	c.readEvents()
	c.readLedger()
	r := c.run(e.Tenant, e.Run)
	known := &living.Run{Plan: r.work.living, Story: r.story, Clients: r.livers}
	digests, err := known.Written("w1")
	require.NoError(f.t, err)
	require.NotEmpty(f.t, digests[0])
	return digests[0]
}
