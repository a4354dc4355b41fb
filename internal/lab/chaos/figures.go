package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/internal/lab/journal"
)

type figure func(e *Evidence, r *Report) string

func figures(all ...figure) func(*Evidence, *Report) []string {
	return func(e *Evidence, r *Report) (texts []string) {
		for _, f := range all {
			texts = append(texts, f(e, r))
		}
		return texts
	}
}

// duplicates counts executions of an attempt beyond the first.
func duplicates(_ *Evidence, r *Report) string {
	return fmt.Sprintf("%d attempts executed more than once (%.2f %% of %d executions)", r.Counts[sometimesRepeated],
		100*float64(r.Counts[sometimesRepeated])/float64(max(r.Executions, 1)), r.Executions)
}

// attempts counts executions and attempts.
func attempts(e *Evidence, r *Report) string {
	steps, most := map[string]int{}, 0
	for _, x := range e.Events {
		if x.Kind == journal.Begin {
			steps[x.Key]++
			most = max(most, steps[x.Key])
		}
	}
	return fmt.Sprintf("%.3f executions a step, at most %d; %d redelivered, %d retried",
		float64(r.Executions)/float64(max(len(steps), 1)), most,
		r.Counts[sometimesRedelivered], r.Counts[sometimesRetried])
}

func late(_ *Evidence, r *Report) string {
	return fmt.Sprintf("%d late results came to nothing", r.Counts[sometimesLate])
}

func lost(_ *Evidence, r *Report) string {
	n := 0
	for _, v := range r.Violations {
		if v.Invariant == "I1" {
			n++
		}
	}
	return fmt.Sprintf("%d of %d acknowledged plans lost", n, r.Runs)
}

// begins are the times at which executions began, sorted.
func begins(e *Evidence) []int64 {
	var all []int64
	for _, x := range e.Events {
		if x.Kind == journal.Begin {
			all = append(all, x.At)
		}
	}
	slices.Sort(all)
	return all
}

// silence is how long after a fault nothing began.
func silence(kind, name string) figure {
	return func(e *Evidence, _ *Report) string {
		begins := begins(e)
		var spans []time.Duration
		for _, f := range e.Faults {
			if f.Kind != kind {
				continue
			}
			// What was on its way when the fault came may still begin; the first gap that follows is the outage.
			from := f.At.UnixNano()
			i, _ := slices.BinarySearch(begins, from)
			longest := int64(0)
			for last := from; i < len(begins) && last < from+int64(10*time.Second); i++ {
				longest, last = max(longest, begins[i]-last), begins[i]
			}
			if longest > 0 {
				spans = append(spans, time.Duration(longest))
			}
		}
		return name + " " + quantiles(spans)
	}
}

// resumed is how long after a fault the first step began, where no other fault came before.
func resumed(kind, name string) figure {
	return func(e *Evidence, _ *Report) string {
		begins := begins(e)
		var spans []time.Duration
		for n, f := range e.Faults {
			i, _ := slices.BinarySearch(begins, f.At.UnixNano())
			if f.Kind != kind || i == len(begins) || n+1 < len(e.Faults) && begins[i] > e.Faults[n+1].At.UnixNano() {
				continue
			}
			spans = append(spans, time.Duration(begins[i]-f.At.UnixNano()))
		}
		return name + " " + quantiles(spans)
	}
}

// quantiles says what matters of some spans.
func quantiles(spans []time.Duration) string {
	if len(spans) == 0 {
		return "not measured"
	}
	slices.Sort(spans)
	at := func(q float64) time.Duration {
		return spans[min(len(spans)-1, int(q*float64(len(spans))))].Round(time.Millisecond)
	}
	return fmt.Sprintf("p50 %v, p99 %v, max %v (n=%d)", at(0.5), at(0.99), spans[len(spans)-1].Round(time.Millisecond),
		len(spans))
}

// stalls gives, for each fault of a kind, the longest silence of any one run that was under way: from its last sign of
// life (or the fault, if that came later) to the next.
func stalls(e *Evidence, kind string) []time.Duration { return stallsOf(e, kind, journal.Begin, "") }

// stallsOf is stalls of the runs of one kind. Of those whose steps are all quick and succeed, every silence is an
// outage; others are silent as well while a retry waits for its time.
func stallsOf(e *Evidence, kind, event, run string) []time.Duration {
	byRun := map[string][]int64{}
	for _, x := range e.Events {
		if x.Kind == event && strings.HasPrefix(x.Run, run) {
			byRun[x.Tenant+"/"+x.Run] = append(byRun[x.Tenant+"/"+x.Run], x.At)
		}
	}
	for _, list := range byRun {
		slices.Sort(list)
	}
	faults := slices.SortedFunc(slices.Values(e.Faults), func(a, b Fault) int {
		return cmp.Compare(a.At.UnixNano(), b.At.UnixNano())
	})
	var spans []time.Duration
	for i, f := range faults {
		if f.Kind != kind {
			continue
		}
		until := f.At.Add(20 * time.Second)
		if i+1 < len(faults) {
			until = faults[i+1].At
		}
		if worst := worstOf(byRun, f.At.UnixNano(), until.UnixNano()); worst > 0 {
			spans = append(spans, time.Duration(worst))
		}
	}
	return spans
}

// worstOf returns the longest silence, of any run that was under way at from, that began before until.
func worstOf(byRun map[string][]int64, from, until int64) (worst int64) {
	for _, list := range byRun {
		if list[0] > from || list[len(list)-1] <= from {
			continue // it was not under way
		}
		for j := 1; j < len(list) && list[j-1] < until; j++ {
			if list[j] > from {
				worst = max(worst, list[j]-max(list[j-1], from))
			}
		}
	}
	return worst
}

// compared says how long the slowest run stood still, and how long a bare use of JetStream did in the same faults.
func compared(kind, before string) figure {
	return func(e *Evidence, _ *Report) string {
		return before + fmt.Sprintf("the slowest run went on after %s, bare JetStream after %s", quantiles(stalls(e, kind)),
			quantiles(stallsOf(e, kind, journal.Bare, "")))
	}
}
