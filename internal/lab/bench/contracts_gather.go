package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/bench"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// Gathering is what batches come to with several workers of one tool.
type Gathering struct {
	Workers int `json:"workers"`
	// Runs of seven items, one after the other.
	Few GatherFigure `json:"few"`
	// A run of a thousand items.
	Many GatherFigure `json:"many"`
	// Runs of one item, a new one every few milliseconds.
	Trickle GatherFigure `json:"trickle"`
	// FailFast is how many of seven separate steps fail at a fail-fast tool, in the mean, where one item does.
	FailFast float64 `json:"fail_fast_of_seven"`
}

// GatherFigure is one load: how many items came in a call, and the milliseconds from submit to outcome.
type GatherFigure struct {
	Items float64 `json:"items_a_call"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
}

// gatherings are the numbers of workers measured.
var gatherings = []int{1, 4, 16}

const (
	gatherMax  = 50
	gatherWait = 20 * time.Millisecond
	gatherCall = 2 * time.Millisecond
	gatherRuns = 40
	fewItems   = 7
	manyItems  = 1000
	trickle    = 4 * time.Millisecond
	trickling  = 500
)

type gatherRow struct {
	N    int  `json:"n"`
	Fail bool `json:"fail,omitempty"`
}

func (s *stage) gathering(c *Contracts) error {
	for _, workers := range gatherings {
		g := Gathering{Workers: workers}
		together, failing := fmt.Sprintf("gather-%d", workers), fmt.Sprintf("fail-fast-%d", workers)
		var calls, items atomic.Int64
		agent, err := s.staff(workers, together+"-", 8, func(w *worker.Worker) error {
			hostGather(w, together, tool.PartialSuccess, &calls, &items)
			hostGather(w, failing, tool.FailFast, &calls, &items)
			return nil
		})
		if err != nil {
			return err
		}
		defer agent.Close()
		measure := func(into *GatherFigure, load func(took func(time.Duration)) error) error {
			var all []float64
			results := make(chan float64, 2*trickling)
			calls.Store(0)
			items.Store(0)
			if err := load(func(d time.Duration) { results <- bench.MS(d) }); err != nil {
				return err
			}
			close(results)
			for x := range results {
				all = append(all, x)
			}
			slices.Sort(all)
			into.Items, into.P50, into.P99 = float64(items.Load())/float64(max(calls.Load(), 1)), all[len(all)/2],
				all[len(all)*99/100]
			return nil
		}
		err = errors.Join(
			measure(&g.Few, func(took func(time.Duration)) error {
				return s.oneByOne(agent, together, fewItems, gatherRuns, took)
			}),
			measure(&g.Many, func(took func(time.Duration)) error { return s.oneByOne(agent, together, manyItems, 5, took) }),
			measure(&g.Trickle, func(took func(time.Duration)) error { return s.trickles(agent, together, took) }),
		)
		if err != nil {
			return err
		}
		if g.FailFast, err = s.failing(agent, failing); err != nil {
			return err
		}
		c.Gathering = append(c.Gathering, g)
	}
	return nil
}

func hostGather(w *worker.Worker, name string, how tool.Propagation, calls, items *atomic.Int64) {
	worker.HandleBatch(w, name, func(_ context.Context, rows []gatherRow) ([]worker.ItemResult[gatherRow], error) {
		calls.Add(1)
		items.Add(int64(len(rows)))
		time.Sleep(gatherCall)
		out := make([]worker.ItemResult[gatherRow], len(rows))
		for i, row := range rows {
			if out[i].Value = row; row.Fail {
				out[i].Err = worker.Terminal(errors.New("refused"))
			}
		}
		return out, nil
	}, worker.Contract(tool.Orchestration{
		Mode: tool.FanOutBounded, MaxConcurrency: 512, ErrorPropagation: how,
		Batch: &tool.Batch{Argument: "rows", MaxItems: gatherMax, MaxWaitMS: gatherWait.Milliseconds()},
	}))
}

func (s *stage) oneByOne(agent *client.Client, name string, width, runs int, took func(time.Duration)) error {
	for range runs {
		began := time.Now()
		if err := succeed(s.ctx, agent, rowsPlan(name, width)); err != nil {
			return err
		}
		took(time.Since(began))
	}
	return nil
}

func (s *stage) trickles(agent *client.Client, name string, took func(time.Duration)) error {
	g, ctx := errgroup.WithContext(s.ctx)
	tick := time.NewTicker(trickle)
	defer tick.Stop()
	for range trickling {
		g.Go(func() error {
			began := time.Now()
			err := succeed(ctx, agent, rowsPlan(name, 1))
			took(time.Since(began))
			return err
		})
		<-tick.C
	}
	return g.Wait()
}

// failing counts how many of seven separate steps of a run fail where one of their items does.
func (s *stage) failing(agent *client.Client, name string) (float64, error) {
	var steps []string
	for i := range fewItems {
		steps = append(steps, fmt.Sprintf(`{"id":"s%d","tool":"%s","arguments":{"n":%d,"fail":%v}}`, i, name, i,
			i == fewItems/2))
	}
	plan := []byte(`{"steps":[` + strings.Join(steps, ",") + `]}`)
	failed := 0
	for range gatherRuns {
		o, err := agent.Run(s.ctx, plan, client.SubmitOptions{})
		if err != nil {
			return 0, err
		}
		if o.Status == outcome.Succeeded {
			return 0, errors.New("a step that fails succeeded")
		}
		failed += o.Stats.Failed
	}
	return float64(failed) / gatherRuns, nil
}

// gatheringText gives the figures for people.
func (c *Contracts) gatheringText(b *strings.Builder) {
	fmt.Fprintf(b, "\n**Batches and the number of workers.** A tool with batches of at most %d that wait for %d ms, a call takes %d ms, workers of 8 slots each. Runs of %d items one after the other, "+
		"runs of %d, and a run of one item every %d ms; milliseconds from submit to outcome. Last, a run of %d separate steps at a `fail-fast` tool, of which one fails: how many fail, in the mean of %d runs.\n\n",
		gatherMax, gatherWait.Milliseconds(), gatherCall.Milliseconds(), fewItems, manyItems, trickle.Milliseconds(),
		fewItems, gatherRuns)
	fmt.Fprintf(b, "| workers | %d items: items a call | p50 | p99 | %d items: items a call | p50 | trickle: items a call | p50 | p99 | fail-fast, of %d |\n|---|---|---|---|---|---|---|---|---|---|\n", fewItems, manyItems, fewItems)
	for _, g := range c.Gathering {
		fmt.Fprintf(b, "| %d | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", g.Workers, g.Few.Items,
			g.Few.P50, g.Few.P99,
			g.Many.Items, g.Many.P50, g.Trickle.Items, g.Trickle.P50, g.Trickle.P99, g.FailFast)
	}
}
