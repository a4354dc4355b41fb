package ui

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/ui/index"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// looking answers what changes nothing.
type looking struct {
	cfg   *Config
	lines *follower
	docs  *reader
	asked *asked
	link  *link
	staff *staff
}

// me says who calls, which tenants it has something of, and what is served here.
func (l looking) me(_ http.ResponseWriter, r *http.Request) (any, error) {
	who := principal(r)
	tenants := who.Tenants
	if tenants == nil {
		tenants = l.lines.index().Tenants()
	}
	if len(tenants) == 0 {
		tenants = []string{subjects.DefaultTenant}
	}
	return struct {
		*Principal
		Tenants []string  `json:"tenants"`
		All     bool      `json:"all"` // it sees all tenants, also those to come
		Version string    `json:"version"`
		Login   bool      `json:"login"` // who calls may log out
		Now     time.Time `json:"now"`
	}{who, tenants, who.Tenants == nil, l.cfg.Version, l.cfg.Auth != nil && l.cfg.Auth.proxy == nil, time.Now().UTC()}, nil
}

// line is a run in a list.
type line struct {
	Key       string            `json:"key"`
	Run       string            `json:"run"`
	Tenant    string            `json:"tenant"`
	Status    outcome.RunStatus `json:"status"`
	Submitted time.Time         `json:"submitted"`
	Finished  time.Time         `json:"finished,omitzero"`
	Attention bool              `json:"attention,omitempty"`
	// Steps and the counts are those of a run that is over.
	Steps     int      `json:"steps,omitempty"`
	Succeeded int      `json:"succeeded,omitempty"`
	Failed    int      `json:"failed,omitempty"`
	Skipped   int      `json:"skipped,omitempty"`
	Tools     []string `json:"tools,omitempty"`
	FailedAt  string   `json:"failed_at,omitempty"` // the first step that failed
	RetryOf   string   `json:"retry_of,omitempty"`
	Waits     *wait    `json:"waits,omitempty"`
}

// wait is the step of a run that has waited too long for a worker of its tool.
type wait struct {
	Step  string    `json:"step"`
	Tool  string    `json:"tool"`
	Since time.Time `json:"since"`
}

func lineOf(l *index.Line) line {
	run := l.Run()
	out := line{
		Key: l.Key, Run: run.Plain(), Tenant: run.Tenant, Status: l.Status, Submitted: l.Submitted.UTC(),
		Finished: l.Finished.UTC(), Attention: l.Attention(), Steps: l.Stats.Steps, Succeeded: l.Stats.Succeeded,
		Failed: l.Stats.Failed, Skipped: l.Stats.Skipped + l.Stats.Cancelled, Tools: l.Tools, FailedAt: l.Failed,
		RetryOf: l.RetryOf,
	}
	if w := l.Waits; w != nil {
		out.Waits = &wait{w.Step, w.Tool, w.Since}
	}
	return out
}

// list is one page of runs.
type list struct {
	Runs      []line                    `json:"runs"`
	Next      string                    `json:"next,omitempty"`
	Matched   int                       `json:"matched"`
	Counts    map[outcome.RunStatus]int `json:"counts"`
	Attention int                       `json:"attention"`
	// Reading says that not all runs were read yet; Trouble why what is shown may be old.
	Reading bool         `json:"reading,omitempty"`
	Trouble *fault.Error `json:"trouble,omitempty"`
	Version uint64       `json:"version"`
	Now     time.Time    `json:"now"`
}

// runs lists runs: status (several, with commas), tenant, tool, from, to (RFC 3339), q (in ids), order=newest, after,
// limit.
func (l looking) runs(_ http.ResponseWriter, r *http.Request) (any, error) {
	q, err := queryOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	q.Tenants = principal(r).Tenants
	page, err := l.lines.index().List(q)
	if err != nil {
		return nil, err
	}
	out := list{
		Runs: make([]line, 0, len(page.Lines)), Next: page.Next, Matched: page.Matched, Counts: page.Counts,
		Attention: page.Attention, Reading: l.lines.reading.Load(), Trouble: l.lines.trouble.Load(),
		Version: page.Version, Now: time.Now().UTC(),
	}
	if away := l.link.away(); away != nil {
		out.Trouble = away
	}
	for i := range page.Lines {
		out.Runs = append(out.Runs, lineOf(&page.Lines[i]))
	}
	return out, nil
}

var statusesOfRuns = []outcome.RunStatus{
	outcome.Running, outcome.Succeeded, outcome.Partial, outcome.Failed, outcome.Cancelled, outcome.Expired,
	outcome.Rejected,
}

func queryOf(v url.Values) (q index.Query, err error) {
	q = index.Query{
		Tenant: v.Get("tenant"), Tool: v.Get("tool"), Text: v.Get("q"), After: v.Get("after"),
		Newest: v.Get("order") == "newest",
	}
	for _, s := range strings.FieldsFunc(v.Get("status"), func(c rune) bool { return c == ',' }) {
		if !slices.Contains(statusesOfRuns, outcome.RunStatus(s)) {
			return q, fault.New(fault.InvalidValue, "%q is no status of a run", s)
		}
		q.Status = append(q.Status, outcome.RunStatus(s))
	}
	for name, into := range map[string]*time.Time{"from": &q.From, "to": &q.To} {
		if text := v.Get(name); text != "" {
			if *into, err = time.Parse(time.RFC3339, text); err != nil {
				return q, fault.Wrap(fault.InvalidValue, err, name).WithHint("2026-11-23T08:00:00Z")
			}
		}
	}
	if text := v.Get("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 || q.Limit > index.MaxLimit {
			return q, fault.New(fault.InvalidValue, "limit is a number up to %d", index.MaxLimit)
		}
	}
	return q, nil
}

// tenths rounds milliseconds to a tenth, which is finer than anybody sees and shorter to write.
func tenths(ms float64) float64 { return math.Round(ms*10) / 10 }
