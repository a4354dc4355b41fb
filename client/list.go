package client

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// ListOptions say which runs to list. The zero value lists the newest 100 of every status.
type ListOptions struct {
	// Status keeps runs of these statuses; empty: all.
	Status []outcome.RunStatus
	// Limit is the most runs to give; 0: 100, negative: no limit.
	Limit int
}

const defaultLimit = 100

// Summary is one line of a list.
type Summary struct {
	Run       string            `json:"run"`
	Tenant    string            `json:"tenant"`
	Status    outcome.RunStatus `json:"status"`
	Submitted time.Time         `json:"submitted"`
	Finished  time.Time         `json:"finished,omitzero"`
	// Stats counts steps; zero for an active run.
	Stats outcome.Stats `json:"stats,omitzero"`
	// Tools are those that a finished run called, the first 16 in the order of its steps; nil where that is not known.
	Tools []string `json:"tools,omitempty"`
}

// List returns the tenant's runs, active and finished, newest first by the time they were submitted. It looks at
// every run of the tenant that is kept, some tens of microseconds each, and reads a header of each. Errors: those of reading.
func (c *Client) List(ctx context.Context, o ListOptions) ([]Summary, error) {
	if o.Limit == 0 {
		o.Limit = defaultLimit
	}
	runs, err := c.listed(ctx, o)
	if err != nil {
		return nil, err
	}
	found, err := c.summaries(ctx, runs, o.Status)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b Summary) int {
		if n := b.Submitted.Compare(a.Submitted); n != 0 {
			return n
		}
		return strings.Compare(a.Run, b.Run)
	})
	if o.Limit > 0 && len(found) > o.Limit {
		found = found[:o.Limit]
	}
	return found, nil
}

// listed names the runs to look at: a finished run keeps its plan record for a while, and counts once, as finished.
func (c *Client) listed(ctx context.Context, o ListOptions) ([]subjects.Run, error) {
	active, err := c.store.Ledger.ActiveRuns(ctx, c.tenant)
	if err != nil {
		return nil, err
	}
	if len(o.Status) == 1 && o.Status[0] == outcome.Running {
		return active, nil
	}
	finished, err := c.store.Archive.HistoryRuns(ctx, c.tenant)
	if err != nil {
		return nil, err
	}
	known := make(map[subjects.Run]bool, len(finished))
	for _, r := range finished {
		known[r] = true
	}
	for _, r := range active {
		if !known[r] {
			finished = append(finished, r)
		}
	}
	return finished, nil
}

// summaries reads the heads of runs, some at a time; a run that vanishes meanwhile is left out.
func (c *Client) summaries(ctx context.Context, runs []subjects.Run, status []outcome.RunStatus) ([]Summary, error) {
	var mu sync.Mutex
	var found []Summary
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readsWide)
	for _, r := range runs {
		g.Go(func() error {
			s, err := c.summary(ctx, r)
			if fault.CodeOf(err) == fault.NotFound {
				return nil
			}
			if err != nil {
				return err
			}
			if len(status) == 0 || slices.Contains(status, s.Status) {
				mu.Lock()
				found = append(found, s)
				mu.Unlock()
			}
			return nil
		})
	}
	return found, g.Wait()
}

func (c *Client) summary(ctx context.Context, r subjects.Run) (Summary, error) {
	head, err := c.store.Archive.HistorySummary(ctx, r)
	if err == nil && head.Status == outcome.Rejected {
		// A later plan may go on under its id.
		if record, err := c.store.Ledger.Read(ctx, subjects.PlanRecord(r, c.store.Ledger.Shards())); err == nil && record.Seq > head.Generation {
			return active(r, record.Time), nil
		}
	}
	if err == nil {
		return Summary{
			Run: r.Plain(), Tenant: r.Tenant, Status: head.Status, Submitted: head.Submitted, Finished: head.Finished,
			Stats: head.Stats, Tools: head.Tools,
		}, nil
	}
	if fault.CodeOf(err) != fault.NotFound {
		return Summary{}, err
	}
	record, err := c.store.Ledger.Read(ctx, subjects.PlanRecord(r, c.store.Ledger.Shards()))
	if err != nil {
		return Summary{}, err
	}
	return active(r, record.Time), nil
}

func active(r subjects.Run, submitted time.Time) Summary {
	return Summary{Run: r.Plain(), Tenant: r.Tenant, Status: outcome.Running, Submitted: submitted}
}
