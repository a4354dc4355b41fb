package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/bench"
	"github.com/stepjet/stepjet/subjects"
)

// Waiting is what runs that wait for a day do to others: a file of bench/.
type Waiting struct {
	Stamp
	Runs int `json:"runs_waiting"`
	// Alone are runs that come at an even rate, and Beside the same beside those that wait.
	Alone  Stream `json:"alone"`
	Beside Stream `json:"beside"`
	// Failed is why it did not come to its end.
	Failed string `json:"failed,omitempty"`
}

// Stream is what runs came to that were begun at an even rate, and what lay there meanwhile, in each third of the time.
type Stream struct {
	Seconds float64 `json:"seconds"`
	Wanted  float64 `json:"runs_per_second_wanted"`
	Rate    float64 `json:"runs_per_second"`
	RunMS   float64 `json:"run_ms"`
	CPU     float64 `json:"cpu_seconds_per_1000_runs"`
	// Records are those of the ledger, MemoryMB the resident memory of the orchestrator in MiB: means.
	Records  [3]float64 `json:"ledger_records"`
	MemoryMB [3]float64 `json:"orchestrator_mib"`
}

func (s Stream) String() string {
	return fmt.Sprintf("%.0f of %.0f runs/s, %.1f ms a run, %.3f CPU s/1,000; ledger %.0f %.0f %.0f records; orchestrator %.0f %.0f %.0f MiB",
		s.Rate, s.Wanted, s.RunMS, s.CPU, s.Records[0], s.Records[1], s.Records[2], s.MemoryMB[0], s.MemoryMB[1], s.MemoryMB[2])
}

const (
	dayRuns       = 1000
	dayRate       = 1000
	daySeconds    = 180 // longer than a run that is over lies in the ledger: its grace of a minute, and 15 s
	dayInFlight   = 64
	recordsOfADay = 3 // of each run that waits: its plan, its start and its first iteration
)

// dayPlan waits for a person, and for the second iteration of a loop that is due in a day.
var dayPlan = []byte(`{"steps":[{"id":"w","tool":"` + bench.Tool + `","arguments":{"x":1},"repeat":{"until":"$index == 1","max":2,"every":"24h"}},` +
	`{"id":"p","tool":"ask","arguments":{"question":"Well?"}}]}`)

func measureWaiting(ctx context.Context, env Env, cfg Config, s Stamp) (any, error) {
	w, err := newWorld(ctx, env, scaleLayout("waiting"), true)
	if err != nil {
		return nil, err
	}
	defer w.close()
	x := &Waiting{Stamp: s, Runs: max(int(dayRuns*cfg.Scale), 10)}
	x.Failed, err = w.attempt(ctx, x.measure(ctx, w, dayRate*cfg.Scale, time.Duration(daySeconds*cfg.Scale*float64(time.Second))))
	return x, err
}

func (x *Waiting) measure(ctx context.Context, w *world, rate float64, lasting time.Duration) (err error) {
	load := chainShape(1, 0).Shape
	if x.Alone, err = w.even(ctx, load, rate, lasting); err != nil {
		return err
	}
	w.Progress("alone:  " + x.Alone.String())
	if err := w.Purged(3 * time.Minute); err != nil {
		return err
	}
	if _, err := w.submitted(ctx, dayPlan, x.Runs); err != nil {
		return err
	}
	if err := w.records(ctx, uint64(recordsOfADay*x.Runs), 5*time.Minute); err != nil {
		return err
	}
	if x.Beside, err = w.even(ctx, load, rate, lasting); err != nil {
		return err
	}
	w.Progress("beside: " + x.Beside.String())
	return nil
}

// even begins runs at an even rate, as far as those before are over: no more than dayInFlight are under way.
func (w *world) even(ctx context.Context, load bench.Shape, rate float64, lasting time.Duration) (s Stream, err error) {
	load.InFlight, load.Runs = 1, 1
	var mu sync.Mutex
	var took []float64
	next, begin := 0, time.Now()
	cpu := w.Usage()
	g, gctx := errgroup.WithContext(ctx)
	for range dayInFlight {
		g.Go(func() error {
			for {
				mu.Lock()
				due := begin.Add(time.Duration(float64(next) / rate * float64(time.Second)))
				next++
				mu.Unlock()
				if due.Sub(begin) >= lasting || time.Since(begin) >= lasting {
					return nil
				}
				select {
				case <-time.After(time.Until(due)):
				case <-gctx.Done():
					return context.Cause(gctx)
				}
				one, _, err := w.Drive(gctx, load, 0)
				if err != nil {
					return err
				}
				mu.Lock()
				took = append(took, one...)
				mu.Unlock()
			}
		})
	}
	var records, memory [3][]float64
	g.Go(func() error {
		for pause := max(lasting/90, 20*time.Millisecond); time.Since(begin) < lasting; {
			n, err := w.Records()
			if err != nil {
				return err
			}
			third := min(int(3*time.Since(begin)/lasting), 2)
			records[third] = append(records[third], float64(n))
			memory[third] = append(memory[third], w.Resident()[bench.RoleOrchestrator])
			if err := wait(gctx, pause, begin.Add(2*lasting)); err != nil {
				return err
			}
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return s, err
	}
	s = Stream{Seconds: time.Since(begin).Seconds(), Wanted: rate, RunMS: bench.Quantile(took, 0.5)}
	s.Rate = float64(len(took)) / s.Seconds
	s.CPU = (w.Usage() - cpu).Seconds() / float64(max(len(took), 1)) * 1000
	for i := range records {
		s.Records[i], s.MemoryMB[i] = average(records[i]), average(memory[i])
	}
	return s, nil
}

func average(values []float64) (m float64) {
	for _, v := range values {
		m += v / float64(len(values))
	}
	return m
}

// People is what runs cost that wait for an answer, and an orchestrator that is killed and comes back to them: a file of
// bench/.
type People struct {
	Stamp
	Runs int `json:"runs_waiting"`
	// MemoryBytes is the resident memory of the orchestrator that came to them for each, beyond that of one without runs.
	MemoryBytes float64 `json:"resident_bytes_a_run"`
	// Answered is how long after its start the new one answered for runs of every partition, Listed until all questions were
	// there anew, of which the bucket had been emptied, in seconds. Both hold the process's own start.
	Answered float64 `json:"restart_all_partitions_seconds"`
	Listed   float64 `json:"restart_all_questions_seconds"`
	// Failed is why it did not come to its end.
	Failed string `json:"failed,omitempty"`
}

const peopleRuns = 10_000

var peoplePlan = []byte(`{"steps":[{"id":"p","tool":"ask","arguments":{"question":"Well?"}},{"id":"then","tool":"` + bench.Tool + `","arguments":{"x":"$ref:p"}}]}`)

func measurePeople(ctx context.Context, env Env, cfg Config, s Stamp) (any, error) {
	w, err := newWorld(ctx, env, scaleLayout("people"), true)
	if err != nil {
		return nil, err
	}
	defer w.close()
	x := &People{Stamp: s, Runs: max(int(peopleRuns*cfg.Scale), 10)}
	x.Failed, err = w.attempt(ctx, x.measure(ctx, w))
	return x, err
}

func (x *People) measure(ctx context.Context, w *world) error {
	bare := w.Resident()[bench.RoleOrchestrator]
	runs, err := w.submitted(ctx, peoplePlan, x.Runs)
	if err != nil {
		return err
	}
	if err := w.asked(ctx, x.Runs, time.Now().Add(5*time.Minute)); err != nil {
		return err
	}
	w.Kill(bench.RoleOrchestrator)
	questions, err := w.JS.Stream(ctx, subjects.BucketStream(subjects.QuestionsBucket))
	if err != nil {
		return err
	}
	if err := questions.Purge(ctx); err != nil {
		return err
	}
	start := time.Now()
	if err := w.StartOrchestrator(successor); err != nil {
		return err
	}
	if err := w.answersForAll(ctx, runs, start.Add(5*time.Minute)); err != nil {
		return err
	}
	x.Answered = time.Since(start).Seconds()
	if err := w.asked(ctx, x.Runs, start.Add(5*time.Minute)); err != nil {
		return err
	}
	x.Listed = time.Since(start).Seconds()
	x.MemoryBytes = (w.Resident()[successor] - bare) * (1 << 20) / float64(x.Runs)
	w.Progress(fmt.Sprintf("%d runs wait for an answer: all partitions answered for %.2f s after the restart, all asked anew after %.2f s, %.0f bytes a run",
		x.Runs, x.Answered, x.Listed, x.MemoryBytes))
	return nil
}

// asked waits until so many questions stand in the bucket.
func (w *world) asked(ctx context.Context, n int, until time.Time) error {
	for {
		s, err := w.JS.Stream(ctx, subjects.BucketStream(subjects.QuestionsBucket))
		if err != nil {
			return err
		}
		if there := s.CachedInfo().State.Msgs; there >= uint64(n) {
			return nil
		} else if err := wait(ctx, 20*time.Millisecond, until); err != nil {
			return fault.Wrap(fault.CodeOf(err), err, fmt.Sprintf("%d of %d questions are there", there, n))
		}
	}
}

// answersForAll waits until a run of each partition is answered for.
func (w *world) answersForAll(ctx context.Context, runs []*client.Run, until time.Time) error {
	for _, r := range oneOfEach(runs) {
		for {
			if _, err := w.Client.Get(ctx, r.ID()); err == nil {
				break
			}
			if err := wait(ctx, 20*time.Millisecond, until); err != nil {
				return err
			}
		}
	}
	return nil
}
