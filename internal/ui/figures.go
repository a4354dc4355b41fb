package ui

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/ui/index"
	"github.com/stepjet/stepjet/outcome"
)

// What a tool took, and came to, is told by the documents of the runs that ended last: nobody has to have counted.
const (
	countedRuns  = 200  // at most so many, the newest
	countedSteps = 2000 // of a run with more steps nothing is counted: its document is large
	countingAt   = 4    // documents that are read at the same time
	countedFor   = 10 * time.Second
)

// call is one attempt of a step.
type call struct {
	tool        string
	ran, waited time.Duration // negative: it never began, or it is not known how long it waited
	code        fault.Code    // empty for a success
	asked       bool          // it ended with a question to a person
	ended       time.Time
}

// figure is what is known of the calls of one tool.
type figure struct {
	Tool   string `json:"tool"`
	Calls  int    `json:"calls"`
	Failed int    `json:"failed"`
	// Asked is how often a call stopped to ask a person: an attempt that did so is no call, and neither its time is among
	// the times nor that until the answer.
	Asked int `json:"asked,omitempty"`
	// PerMinute is how often it was called since the first of the calls.
	PerMinute float64 `json:"per_minute"`
	// The times are those of executions and of waits for a worker, in milliseconds; -1 where there were none.
	P50     float64            `json:"p50_ms"`
	P99     float64            `json:"p99_ms"`
	WaitP50 float64            `json:"wait_p50_ms"`
	WaitP99 float64            `json:"wait_p99_ms"`
	Codes   map[fault.Code]int `json:"codes,omitempty"`
}

// figures are those of a tenant's tools.
type figures struct {
	Tools []figure `json:"tools"`
	// Runs is how many runs they are made of, LeftOut how many of the newest were too large, or are gone.
	Runs    int       `json:"runs"`
	LeftOut int       `json:"left_out,omitempty"`
	Since   time.Time `json:"since,omitzero"` // when the first of the runs was submitted
	Now     time.Time `json:"now"`
}

// counting keeps what was counted: a run that is over is read once.
type counting struct {
	lines *follower
	docs  *reader

	mu   sync.Mutex
	kept map[string]*counted // by tenant
}

// counted is what is known of a tenant's runs.
type counted struct {
	mu    sync.Mutex // who holds it counts
	calls map[counter][]call
	said  *figures
}

// counter names a run that is over.
type counter struct {
	key        string
	generation uint64
}

func newCounting(lines *follower, docs *reader) *counting {
	return &counting{lines: lines, docs: docs, kept: map[string]*counted{}}
}

// figures tells how long the tools of the query's tenant took, how often they were called, and how they failed.
func (c *counting) figures(_ http.ResponseWriter, r *http.Request) (any, error) {
	of, err := tenant(r)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	k := c.kept[of]
	if k == nil {
		k = &counted{calls: map[counter][]call{}}
		c.kept[of] = k
	}
	c.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.said != nil && time.Since(k.said.Now) < countedFor {
		return k.said, nil
	}
	said, err := c.count(r.Context(), of, k)
	if err == nil {
		k.said = said
	}
	return said, err
}

// over are the statuses of runs that had calls, and have no more.
var over = []outcome.RunStatus{outcome.Succeeded, outcome.Partial, outcome.Failed, outcome.Cancelled, outcome.Expired}

func (c *counting) count(ctx context.Context, of string, k *counted) (*figures, error) {
	page, err := c.lines.index().List(index.Query{Tenants: []string{of}, Status: over, Newest: true, Limit: countedRuns})
	if err != nil {
		return nil, err
	}
	out := &figures{Now: time.Now().UTC()}
	client, err := c.docs.client(ctx, of)
	if err != nil {
		return nil, err
	}
	fresh := map[counter][]call{}
	var unread []*index.Line
	for i := range page.Lines {
		l := &page.Lines[i]
		if l.Stats.Steps > countedSteps {
			out.LeftOut++
			continue
		}
		out.Since = l.Submitted.UTC() // they are the newest first
		name := counter{l.Key, l.Generation}
		if calls, ok := k.calls[name]; ok {
			fresh[name] = calls
		} else {
			unread = append(unread, l)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(countingAt)
	var mu sync.Mutex
	for _, l := range unread {
		group.Go(func() error {
			run := l.Run()
			doc, err := client.Get(ctx, run.Plain())
			mu.Lock()
			defer mu.Unlock()
			switch {
			case fault.CodeOf(err) == fault.NotFound:
				out.LeftOut++ // its time is over
			case err != nil:
				return err
			default:
				fresh[counter{l.Key, l.Generation}] = callsOf(doc.Steps, nil)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	k.calls, out.Runs = fresh, len(fresh)
	out.Tools = summed(fresh, out.Now)
	return out, nil
}

// callsOf adds the calls of steps, and of what stands below them, to a list.
func callsOf(steps []outcome.Step, all []call) []call {
	for i := range steps {
		s := &steps[i]
		all = callsOf(s.Steps, callsOf(s.Items, all))
		if s.Tool == "" || s.Reused || len(s.Items)+len(s.Steps) > 0 || s.Attempts == 0 {
			continue
		}
		tries := s.Tries
		if len(tries) == 0 {
			tries = []outcome.Try{{Attempt: s.Attempts, Started: s.Started, Ended: s.Ended}}
			if s.Error != nil {
				tries[0].Code = s.Error.Code
			}
		}
		for n, t := range tries {
			x := call{tool: s.Tool, ran: -1, waited: -1, code: t.Code, ended: t.Ended, asked: t.Asked}
			if !t.Started.IsZero() && !t.Ended.Before(t.Started) {
				x.ran = t.Ended.Sub(t.Started)
			}
			if n == 0 && t.Attempt == 1 && !s.Ready.IsZero() && !t.Started.Before(s.Ready) {
				x.waited = t.Started.Sub(s.Ready)
			}
			if x.ended.IsZero() {
				x.ended = s.Decided
			}
			all = append(all, x)
		}
	}
	return all
}

// summed returns the figures of all tools, those first that are called most.
func summed(runs map[counter][]call, now time.Time) []figure {
	type sums struct {
		figure
		ran, waited []time.Duration
		first       time.Time
	}
	tools := map[string]*sums{}
	for _, calls := range runs {
		for _, x := range calls {
			s := tools[x.tool]
			if s == nil {
				s = &sums{figure: figure{Tool: x.tool}, first: x.ended}
				tools[x.tool] = s
			}
			if x.waited >= 0 {
				s.waited = append(s.waited, x.waited)
			}
			if x.asked {
				s.Asked++
				continue
			}
			s.Calls++
			if x.code != "" {
				if s.Failed++; s.Codes == nil {
					s.Codes = map[fault.Code]int{}
				}
				s.Codes[x.code]++
			}
			if x.ran >= 0 {
				s.ran = append(s.ran, x.ran)
			}
			if x.ended.Before(s.first) {
				s.first = x.ended
			}
		}
	}
	out := []figure{}
	for _, s := range tools {
		s.P50, s.P99 = quantile(s.ran, 0.5), quantile(s.ran, 0.99)
		s.WaitP50, s.WaitP99 = quantile(s.waited, 0.5), quantile(s.waited, 0.99)
		s.PerMinute = tenths(float64(s.Calls) / max(1, now.Sub(s.first).Minutes()))
		out = append(out, s.figure)
	}
	slices.SortFunc(out, func(a, b figure) int { return cmp.Or(b.Calls-a.Calls, cmp.Compare(a.Tool, b.Tool)) })
	return out
}

// quantile returns the time that a part of all does not exceed, in milliseconds; -1 of none.
func quantile(all []time.Duration, part float64) float64 {
	if len(all) == 0 {
		return -1
	}
	slices.Sort(all)
	at := int(math.Ceil(part*float64(len(all)))) - 1
	return tenths(float64(all[max(0, at)].Microseconds()) / 1000)
}
