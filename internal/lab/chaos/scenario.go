package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"time"

	"github.com/stepjet/stepjet/fault"
)

// Scenario is one kind of bad day.
type Scenario struct {
	Name    string
	Fault   string // as in the table of docs/reliability.md
	Correct string // what has to happen
	Shape   Shape
	// Seconds is the least time that its figures need, Shipped that with the programs' own settings; 0: any.
	Seconds, Shipped int
	// Own says that it is about settings of its own, so that it is not run with the shipped ones.
	Own bool
	// Versions are other versions that it needs, to be built.
	Versions []string
	// Partitions says that it needs network namespaces.
	Partitions bool
	// Inject harms the world, again and again, until ctx ends.
	Inject func(ctx context.Context, h *Harm) error
	// Twin is in the place of Inject where there are two cells.
	Twin func(ctx context.Context, t *twin) error
	// Attend goes on with Inject until the agents have finished.
	Attend bool
	// Unbroken says that orchestrators, workers and agents have to live through it: none may be started again.
	Unbroken bool
	// Sometimes are counts that must not be zero, or the scenario has shown nothing.
	Sometimes []string
	// Figures gives the figures asked for; nil: none.
	Figures func(e *Evidence, r *Report) []string
	// Relax changes the evidence where the fault takes back what was promised; nil: nothing is relaxed.
	Relax func(e *Evidence)
}

// Harm is what Inject works with.
type Harm struct {
	*World
	*rand.Rand
	injections int
	say        func(format string, args ...any)
}

// hit counts an injection.
func (h *Harm) hit(kind string, workers ...string) {
	h.injections++
	h.fault(kind, workers...)
}

// between returns a random span.
func (h *Harm) between(from, to time.Duration) time.Duration {
	return from + time.Duration(h.Int63n(int64(to-from)+1))
}

// Settings say how scenarios are run.
type Settings struct {
	// Command runs this program again, to play roles.
	Command []string
	// Seconds is how long faults are injected; 0: 20.
	Seconds int
	// Namespaces makes a network of its own for each scenario; otherwise everything is on the loopback interface.
	Namespaces bool
	Seed       int64
	// Shipped runs the programs with their own settings, instead of those with which a short run meets many repairs.
	Shipped bool
	// Brief is for runs too short to show all that a scenario sometimes shows.
	Brief bool
	// Keep leaves logs and stores of a scenario with violations where they are.
	Keep bool
	Out  io.Writer
}

// Row is what came of a scenario.
type Row struct {
	Scenario   string         `json:"scenario"`
	Shipped    bool           `json:"shipped"` // the programs had their own settings
	Settings   Tuning         `json:"settings"`
	Fault      string         `json:"fault"`
	Correct    string         `json:"correct"`
	Seconds    int            `json:"seconds"`
	Injections int            `json:"injections"`
	Runs       int            `json:"runs"`
	Executions int            `json:"executions"`
	Violations []Violation    `json:"violations"`
	Figures    []string       `json:"figures"`
	Counts     map[string]int `json:"counts"`
	Namespaces bool           `json:"namespaces"`
	Machine    string         `json:"machine"`
	Load       float64        `json:"load"` // of the machine, over the minute before the faults began
	Commit     string         `json:"commit"`
	When       time.Time      `json:"when"`
}

// Run runs one scenario. The error says that it could not be run; broken promises are in the row.
func Run(ctx context.Context, s Scenario, o Settings) (row Row, err error) {
	if o.Seconds == 0 {
		o.Seconds = 20
	}
	if o.Shipped {
		s.Shape, s.Seconds = s.Shape.asShipped(), max(s.Seconds, s.Shipped)
	}
	if !o.Brief {
		o.Seconds = max(o.Seconds, s.Seconds)
	}
	say := func(format string, args ...any) { fmt.Fprintf(o.Out, format+"\n", args...) }
	dir, err := os.MkdirTemp("", "stepjet-chaos-"+s.Name+"-")
	if err != nil {
		return row, err
	}
	defer func() {
		if err == nil && len(row.Violations) == 0 || !o.Keep {
			err = errors.Join(err, os.RemoveAll(dir))
			return
		}
		say("%s: logs and stores are in %s", s.Name, dir)
	}()
	var net network = loopback{}
	if o.Namespaces {
		if net, err = newNetwork(); err != nil {
			return row, err
		}
	} else if s.Partitions {
		return row, fault.New(fault.InvalidConfig, "the scenario %s needs network namespaces", s.Name)
	}
	if s.Twin != nil {
		return runTwin(ctx, s, o, net, dir, say)
	}
	var others map[string][]string
	if len(s.Versions) > 0 {
		if others, err = buildVersions(ctx, dir, s.Versions); err != nil {
			return row, err
		}
	}
	w, err := newWorld(ctx, net, dir, o.Command, others, s.Shape)
	defer func() { err = errors.Join(err, w.close()) }()
	if err != nil {
		return row, err
	}
	row = Row{Scenario: s.Name, Shipped: o.Shipped, Settings: w.opts.Tuning, Load: load(), Fault: s.Fault,
		Correct: s.Correct, Seconds: o.Seconds, Namespaces: o.Namespaces, When: time.Now().UTC().Truncate(time.Second)}
	h := &Harm{World: w, Rand: rand.New(rand.NewSource(o.Seed)), say: say}
	ev, err := h.suffer(ctx, s, o)
	if err != nil {
		return row, err
	}
	row.judge(s, ev, h.injections, o.Brief)
	return row, h.leave(row.Violations)
}

// suffer runs the world through its faults, heals it and collects the evidence.
func (h *Harm) suffer(ctx context.Context, s Scenario, o Settings) (*Evidence, error) {
	if err := h.startAgents(ctx); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, time.Duration(o.Seconds)*time.Second)
	err := s.Inject(limited, h)
	cancel()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	if err := h.heal(ctx); err != nil {
		return nil, err
	}
	attending, stop := context.WithCancel(ctx)
	attended := make(chan error, 1)
	if s.Attend {
		go func() { attended <- s.Inject(attending, h) }()
	} else {
		attended <- nil
	}
	stuck, err := h.finish(ctx)
	stop()
	<-attended
	if err != nil {
		return nil, err
	}
	if err := sleep(ctx, h.opts.Settle); err != nil {
		return nil, err
	}
	reading, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	ev, err := h.collect(reading)
	if err != nil {
		return nil, err
	}
	ev.Stuck = stuck
	if s.Unbroken {
		ev.Broken = h.broken()
	}
	if s.Relax != nil {
		s.Relax(ev)
	}
	return ev, nil
}

// heal ends all faults: cables are plugged in, what sleeps wakes up, and what is dead lives again.
func (h *Harm) heal(ctx context.Context) error {
	if err := h.net.heal(); err != nil {
		return err
	}
	for _, kind := range []string{"n", "o", "w", "l"} {
		for i := 0; ; i++ {
			p := h.part(node(kind, i))
			if p == nil {
				break
			}
			p.cont()
			if p.alive() && p.role.Die == nil {
				continue
			}
			p.kill()
			if err := h.again(ctx, node(kind, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (row *Row) judge(s Scenario, ev *Evidence, injections int, brief bool) {
	r := Check(ev)
	r.Violations = append(r.Violations, ev.Found...)
	maps.Copy(r.Counts, ev.Counts)
	row.Injections, row.Runs, row.Executions, row.Violations, row.Counts = injections, r.Runs, r.Executions, r.Violations,
		r.Counts
	for _, what := range append([]string{sometimesStrict}, s.Sometimes...) {
		if r.Counts[what] == 0 && !brief {
			row.Violations = append(row.Violations, Violation{Invariant: "vacuous", Text: "it never happened: " + what})
		}
	}
	if injections == 0 {
		row.Violations = append(row.Violations, Violation{Invariant: "vacuous", Text: "nothing was injected"})
	}
	if s.Figures != nil {
		row.Figures = s.Figures(ev, r)
	}
}

// leave writes down what was injected, beside the logs, for whoever looks for the cause of a violation.
func (w *World) leave(violations []Violation) error {
	text, err := json.MarshalIndent(map[string]any{"faults": w.faults, "violations": violations}, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(w.dir, "faults.json"), text, 0o600)
}

// Scenarios returns all scenarios, in the order of the table in docs/reliability.md.
func Scenarios() []Scenario {
	return []Scenario{
		orchestratorKill, failover, handover, workerKill, workerStop, natsKill, leaderKill, reconnectHerd,
		partitionMinority, partitionMajority, serverGone, orchestratorCutOff, purgeSteps, deleteConsumer, storeFull, diskFull,
		largeResults,
		zombie, registryChange, rollback,
		powerCutDefault, powerCutAlways, powerCutAlwaysOne, poisonStep, cancelRace, deadlineRace, rollingUpgrade, upgradeByTheBook,
		sealedBeside, livingRuns, loadedRuns, planBombs, twoCells,
	}
}
