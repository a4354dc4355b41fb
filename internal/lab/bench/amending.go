package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/bench"
	"github.com/stepjet/stepjet/subjects"
)

// Amending is what one amendment costs, against one more step of a plan that nobody changes: a file of bench/.
type Amending struct {
	Stamp
	Rounds int `json:"rounds"`
	// Each is how many amendments, or steps, each round has of each.
	Each int `json:"each"`
	// Step is one step of a chain.
	Step Amount `json:"step"`
	// Sizes are amendments that add one step to a scope of so many steps that wait.
	Sizes []AmendingSize `json:"sizes"`
}

// Amount is what one of many costs, from beginning to end: medians of the rounds.
type Amount struct {
	MS  float64 `json:"ms"`
	CPU float64 `json:"cpu_ms"` // of all processes, client included
}

// AmendingSize is what amendments of a scope of some size cost.
type AmendingSize struct {
	Steps int `json:"steps"`
	// Alone adds a value, of which nothing runs: what the amendment itself costs. Called adds a call, and ends when the last
	// of these has its result.
	Alone  Amount `json:"alone"`
	Called Amount `json:"called"`
	// Of is what Alone costs over a step.
	Of Amount `json:"alone_over_a_step"`
}

func (a Amount) String() string { return fmt.Sprintf("%.2f ms, %.2f CPU ms", a.MS, a.CPU) }

const (
	amendingRounds = 5
	amendingEach   = 300
	amendingMost   = 1.5
)

var amendingSizes = []int{10, 1_000, 9_000}

func measureAmending(ctx context.Context, env Env, cfg Config, s Stamp) (any, error) {
	w, err := newWorld(ctx, env, scaleLayout("amendments"), true)
	if err != nil {
		return nil, err
	}
	defer w.close()
	x := &Amending{Stamp: s, Rounds: max(int(amendingRounds*cfg.Scale), 1), Each: max(int(amendingEach*cfg.Scale), 20)}
	return x, x.measure(ctx, w)
}

// measure takes a step and each size in turns, so that what else the machine does meets all alike.
func (x *Amending) measure(ctx context.Context, w *world) error {
	var step taken
	alone, called := make([]taken, len(amendingSizes)), make([]taken, len(amendingSizes))
	for round := range x.Rounds + 1 { // the first is for the caches
		a, err := x.steps(ctx, w)
		if err != nil {
			return err
		}
		step.add(round, a)
		for i, size := range amendingSizes {
			for _, of := range []struct {
				*taken
				form string
			}{{&alone[i], `{"id":"v%d","value":%d}`}, {&called[i], `{"id":"c%d","tool":"` + bench.Tool + `","arguments":{"x":%d}}`}} {
				a, err := x.amendments(ctx, w, size, of.form)
				if err != nil {
					return err
				}
				of.add(round, a)
			}
		}
	}
	x.Step = step.median()
	w.Progress("a step: " + x.Step.String())
	for i, size := range amendingSizes {
		z := AmendingSize{Steps: size, Alone: alone[i].median(), Called: called[i].median()}
		z.Of = Amount{over(z.Alone.MS, x.Step.MS), over(z.Alone.CPU, x.Step.CPU)}
		x.Sizes = append(x.Sizes, z)
		w.Progress(fmt.Sprintf("an amendment of %d steps: alone %s (%.2f, %.2f of a step); with its call %s", size, z.Alone, z.Of.MS, z.Of.CPU, z.Called))
		if z.Of.MS > amendingMost || z.Of.CPU > amendingMost {
			w.Progress(fmt.Sprintf("that is more than %.1f of a step", amendingMost))
		}
	}
	return nil
}

// taken is what each round came to.
type taken struct{ ms, cpu []float64 }

func (t *taken) add(round int, a Amount) {
	if round > 0 {
		t.ms, t.cpu = append(t.ms, a.MS), append(t.cpu, a.CPU)
	}
}

func (t *taken) median() Amount {
	return Amount{bench.Quantile(t.ms, 0.5), bench.Quantile(t.cpu, 0.5)}
}

// timed returns what one of many costs.
func (w *world) timed(many int, do func() error) (Amount, error) {
	cpu, begin := w.Usage(), time.Now()
	err := do()
	took, used := time.Since(begin), w.Usage()-cpu
	per := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(many) }
	return Amount{per(took), per(used)}, err
}

// steps runs a chain, submission and outcome included.
func (x *Amending) steps(ctx context.Context, w *world) (Amount, error) {
	steps := []string{`{"id":"s0","tool":"` + bench.Tool + `","arguments":{"x":1}}`}
	for i := 1; i < x.Each; i++ {
		steps = append(steps, fmt.Sprintf(`{"id":"s%d","tool":%q,"arguments":{"x":"$ref:s%d.x"}}`, i, bench.Tool, i-1))
	}
	return w.timed(x.Each, func() error {
		r, err := w.Client.Submit(ctx, []byte(`{"steps":[`+strings.Join(steps, ",")+`]}`), client.SubmitOptions{})
		if err != nil {
			return err
		}
		return succeeded(ctx, []*client.Run{r})
	})
}

// amendments adds one step after the other, each once the one before is in force, to a run whose others wait for a
// question that nobody answers.
func (x *Amending) amendments(ctx context.Context, w *world, size int, form string) (a Amount, err error) {
	steps := []string{`{"id":"g","tool":"ask","arguments":{"question":"Well?"}}`}
	for i := 1; i < size; i++ {
		steps = append(steps, fmt.Sprintf(`{"id":"s%d","tool":%q,"depends_on":["g"]}`, i, bench.Tool))
	}
	r, err := w.Client.Submit(ctx, []byte(`{"open":true,"steps":[`+strings.Join(steps, ",")+`]}`), client.SubmitOptions{})
	if err != nil {
		return a, err
	}
	amend := func(n int) error {
		_, err := w.Client.Amend(ctx, r.ID(), client.Amendment{Revision: n, Add: []json.RawMessage{fmt.Appendf(nil, form, n, n)}})
		return err
	}
	const before = 5 // the first copies what the run has, once
	for n := range before {
		if err := eventually(ctx, func() error { return amend(n) }); err != nil {
			return a, err
		}
	}
	recorded, err := w.Conn().SubscribeSync(subjects.StepRecord(subjects.Attempt{
		Run: subjects.NewRun(w.Client.Tenant(), r.ID()), Generation: r.Generation(), Tool: bench.Tool, Step: fmt.Sprint("c", before+x.Each-1), Number: 1,
	}, 1))
	if err != nil {
		return a, err
	}
	defer func() { _ = recorded.Unsubscribe() }()
	a, err = w.timed(x.Each, func() error {
		for n := before; n < before+x.Each; n++ {
			if err := amend(n); err != nil {
				return err
			}
		}
		if !strings.Contains(form, bench.Tool) {
			return nil
		}
		_, err := recorded.NextMsgWithContext(ctx)
		return err
	})
	if err != nil {
		return a, err
	}
	if _, err := w.Client.Cancel(ctx, r.ID(), "bench"); err != nil {
		return a, err
	}
	_, err = r.Wait(ctx)
	return a, err
}

// eventually does what can't be done before a run has begun.
func eventually(ctx context.Context, do func() error) error {
	for until := time.Now().Add(time.Minute); ; {
		err := do()
		if code := fault.CodeOf(err); err == nil || code != fault.NotFound && code != fault.NotReady {
			return err
		}
		if err := wait(ctx, 5*time.Millisecond, until); err != nil {
			return err
		}
	}
}
