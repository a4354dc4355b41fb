package ui

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// mostLetters is how many dead letters a page is told of, the newest.
const mostLetters = 500

// tools lists what the tenant of the query may call, and how much of each is wanted now.
func (l looking) tools(_ http.ResponseWriter, r *http.Request) (any, error) {
	of, err := tenant(r)
	if err != nil {
		return nil, err
	}
	c, err := l.docs.client(r.Context(), of)
	if err != nil {
		return nil, err
	}
	all, err := c.Tools(r.Context())
	if err != nil {
		return nil, err
	}
	out := struct {
		Tools  []tool.Registered `json:"tools"`
		Demand *tool.Demands     `json:"demand,omitempty"`
		// Unknown says why it is not known how much is wanted.
		Unknown *fault.Error `json:"unknown,omitempty"`
		// Hosts says of each tool who serves it; absent where that is not known, or not yet. More: there may be others.
		Hosts map[string]*host `json:"hosts,omitempty"`
		More  bool             `json:"more_hosts,omitempty"`
	}{Tools: all}
	if hosts, more := l.staff.hosts(r.Context()); hosts != nil {
		out.Hosts, out.More = map[string]*host{}, more
		for i := range all {
			if out.Hosts[all[i].Name] = hosts[all[i].Name]; hosts[all[i].Name] == nil {
				out.Hosts[all[i].Name] = &host{}
			}
		}
	}
	if out.Demand, err = c.Demand(r.Context()); err != nil {
		out.Demand, out.Unknown = nil, fault.As(err)
	}
	return out, nil
}

// figures tells how long the tools of the query's tenant took, how often they were called, and how they failed, in the runs that
// ended within some hours.
func (l looking) figures(_ http.ResponseWriter, r *http.Request) (any, error) {
	of, err := tenant(r)
	if err != nil {
		return nil, err
	}
	hours := figuresOf
	if text := r.URL.Query().Get("hours"); text != "" {
		if hours, err = strconv.Atoi(text); err != nil || hours < 1 || hours > figuresMost {
			return nil, fault.New(fault.InvalidValue, "hours=%.20s", text).WithHint("1 to %d", figuresMost)
		}
	}
	now := time.Now().UTC()
	return figuresFrom(l.lines.index().Figures(of, now.Add(-time.Duration(hours)*time.Hour)), now), nil
}

// letter is a dead letter without its arguments, with the key of its run.
type letter struct {
	Key      string       `json:"key"`
	Run      string       `json:"run"`
	Tenant   string       `json:"tenant"`
	Step     string       `json:"step"`
	Tool     string       `json:"tool"`
	Attempts int          `json:"attempts"`
	Error    *fault.Error `json:"error"`
	Worker   string       `json:"worker,omitempty"`
	Failed   time.Time    `json:"failed"`
}

// dead lists the newest dead letters of the caller's tenants, or of the one that the query names, and of a tool.
func (l looking) dead(_ http.ResponseWriter, r *http.Request) (any, error) {
	tenants := principal(r).Tenants
	if tenants == nil {
		tenants = l.lines.index().Tenants()
	}
	if r.URL.Query().Get("tenant") != "" {
		of, err := tenant(r)
		if err != nil {
			return nil, err
		}
		tenants = []string{of}
	}
	all := []*outcome.DeadLetter{}
	for _, of := range tenants {
		c, err := l.docs.client(r.Context(), of)
		if err != nil {
			return nil, err
		}
		letters, err := c.DeadLetters(r.Context(), client.DeadOptions{Tool: r.URL.Query().Get("tool"), Limit: mostLetters + 1})
		if err != nil {
			return nil, err
		}
		all = append(all, letters...)
	}
	slices.SortStableFunc(all, func(a, b *outcome.DeadLetter) int { return b.Failed.Compare(a.Failed) })
	more := len(all) > mostLetters
	all = all[:min(len(all), mostLetters)]
	out := make([]letter, 0, len(all))
	for _, d := range all {
		out = append(out, letter{
			Key: subjects.NewRun(d.Tenant, d.Run).Key(), Run: d.Run, Tenant: d.Tenant, Step: d.Step, Tool: d.Tool,
			Attempts: d.Attempts, Error: d.Error, Worker: d.Worker, Failed: d.Failed.UTC(),
		})
	}
	return map[string]any{"letters": out, "more": more, "now": time.Now().UTC()}, nil
}
