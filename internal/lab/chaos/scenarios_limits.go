package chaos

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

const (
	bomberTenant = "bomber"
	bombPatience = 3 * time.Minute
	// mostMemory is what an orchestrator may take at most while bombs go off.
	mostMemory = 1 << 30
)

// planBombs sets off one bomb after the other beside the agents' runs.
var planBombs = bombScenario(false)

func bombScenario(brief bool) Scenario {
	return Scenario{
		Name:    "bombs",
		Fault:   "plans and results that are meant to cost too much, and records that strangers write",
		Correct: "bounded memory, typed errors with hints, the others' runs go on, nothing is restarted",
		Shape:   Shape{Parallel: 4, Heal: 90 * time.Second},
		// All of them have to go off, however long it takes.
		Inject: func(ctx context.Context, h *Harm) error { return h.bombard(context.WithoutCancel(ctx), brief) },
		Relax:  func(e *Evidence) { e.dropTenant(bomberTenant) },
		Figures: func(e *Evidence, r *Report) []string {
			return []string{e.Memory, silence("bomb", "longest silence of the others after a bomb")(e, r)}
		},
	}
}

// bombard sets off all bombs, and looks at what comes of each, and of the orchestrators.
func (h *Harm) bombard(ctx context.Context, brief bool) error {
	if err := h.start(ctx, "b1", Role{Kind: roleBomber}); err != nil {
		return err
	}
	if _, err := h.store.Requests.RequestRegister(ctx, []byte(`{"name":"`+toolNone+`"}`)); err != nil {
		return err
	}
	c, err := client.New(ctx, h.nc, client.Config{Tenant: bomberTenant})
	if err != nil {
		return err
	}
	defer c.Close()
	for _, b := range bombs(brief) {
		h.hit("bomb")
		began := time.Now()
		if err := h.explode(ctx, c, b); err != nil {
			return fault.New(fault.Internal, "the bomb %s: %v", b.name, err)
		}
		h.say("   %s: %v, orchestrators at most %d MiB", b.name, time.Since(began).Round(time.Millisecond),
			h.orchestrators()>>20)
	}
	for _, n := range []string{"n1", "o1", "o2", "w1", "w2", "w3", "b1"} {
		if !h.part(n).alive() || h.lives[n] != 1 {
			return fault.New(fault.Internal, "%s did not outlive the bombs", n)
		}
	}
	if peak := h.orchestrators(); peak > mostMemory {
		return fault.New(fault.Internal, "an orchestrator took %d MiB, at most %d are allowed", peak>>20, mostMemory>>20)
	}
	h.memory = fmt.Sprintf("%d bombs; peak RSS of an orchestrator %d MiB, of the NATS server %d MiB", len(bombs(brief)),
		h.orchestrators()>>20, peakRSS(h.part("n1"))>>20)
	return nil
}

// orchestrators returns the most memory that one of them ever had.
func (w *World) orchestrators() (most int64) {
	for i := range w.opts.Orchestrators {
		most = max(most, peakRSS(w.part(node("o", i))))
	}
	return most
}

// peakRSS returns the most memory, in bytes, that a process ever had resident; 0 where that is not known.
func peakRSS(p *process) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	value, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kb, _ := strconv.ParseInt(value, 10, 64) // nothing there: not known
	return kb << 10
}

// explode runs one bomb and says what is wrong with its end.
func (h *Harm) explode(ctx context.Context, c *client.Client, b bomb) error {
	ctx, cancel := context.WithTimeout(ctx, bombPatience)
	defer cancel()
	r, err := c.Submit(ctx, []byte(b.plan), client.SubmitOptions{Run: b.name})
	if err != nil {
		return err
	}
	if b.forge != nil {
		if err := h.forge(ctx, b); err != nil {
			return err
		}
	}
	o, err := r.Wait(ctx)
	if err != nil { // not as it is: a deadline of its own would pass for the end of the scenario
		return fault.New(fault.Timeout, "no outcome within %v: %v", bombPatience, err)
	}
	if b.want == "" {
		if o.Status != outcome.Succeeded {
			return fault.New(fault.Internal, "it came to %.400s", o.JSON())
		}
		return nil
	}
	for _, p := range o.Problems {
		if p.Code == b.want && p.Hint != "" {
			return nil
		}
	}
	for _, e := range o.Errors {
		if e.Code == b.want && (e.Hint != "" || b.forge != nil || strings.Contains(e.Message, "mmm")) {
			return nil
		}
	}
	return fault.New(fault.Internal, "no %s with a hint: it came to %.400s", b.want, o.JSON())
}

// forge writes a record for the step of a run as soon as the step lies in its stream.
func (h *Harm) forge(ctx context.Context, b bomb) error {
	s, js, err := h.stream(ctx, subjects.StepsStream(0))
	if err != nil {
		return err
	}
	run := subjects.NewRun(bomberTenant, b.name)
	for {
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(subjects.ToolPendingFilter(toolNone, 0)))
		if err != nil {
			return err
		}
		for subject := range info.State.Subjects {
			a, _, ok := subjects.ParseStep(subject)
			if !ok || a.ID != run.ID {
				continue
			}
			m := *b.forge
			m.Subject = subjects.StepRecord(a, h.store.Ledger.Shards())
			_, err := js.PublishMsg(ctx, &m, jetstream.WithExpectLastSequencePerSubject(0))
			if err == nil {
				err = s.Purge(ctx, jetstream.WithPurgeSubject(subject)) // its worker would have acknowledged it
			}
			return err
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// dropTenant leaves out all that streams and buckets hold of a tenant, and what was said of its runs.
func (e *Evidence) dropTenant(tenant string) {
	runs := map[runKey]bool{}
	note := func(subject string) {
		if rec, ok := subjects.ParseRecord(subject); ok && rec.Run.Tenant == tenant {
			runs[runKey{tenant, rec.Run.Plain()}] = true
		}
	}
	for _, r := range e.Ledger {
		note(r.Subject)
	}
	for _, s := range e.Seen { // and with them what was purged
		note(s.Subject)
	}
	for _, d := range e.History { // a plan that was rejected may be gone before it was seen
		if d.Tenant == tenant {
			runs[runKey{tenant, d.Run}] = true
		}
	}
	e.dropRecords(runs)
}

// herdSize is how many clients come back at once.
const herdSize = 1000

var reconnectHerd = Scenario{
	Name:    "herd",
	Fault:   "1,000 clients reconnect at once after NATS was killed, and each submits a run",
	Correct: "bounded memory, every client gets its outcome, recovery without a restart",
	Shape:   Shape{Parallel: 4, Heal: 2 * time.Minute},
	Inject: func(ctx context.Context, h *Harm) error {
		if err := h.start(ctx, herdNode, Role{Kind: roleHerd, Parallel: herdSize, Tenant: h.tenants()[0]}); err != nil {
			return err
		}
		server := int64(0)
		err := loop(4*time.Second, 6*time.Second, func(ctx context.Context, h *Harm, _ int) error {
			server = max(server, peakRSS(h.part("n1")))
			return h.killed(ctx, natsKilled, "n1", time.Second, "*")
		})(ctx, h)
		for _, n := range []string{"o1", "o2", "w1", "w2", "w3", herdNode} {
			if !h.part(n).alive() || h.lives[n] != 1 {
				return fault.New(fault.Internal, "%s did not outlive the herd", n)
			}
		}
		h.memory = fmt.Sprintf("peak RSS of an orchestrator %d MiB, of the NATS server %d MiB", h.orchestrators()>>20,
			max(server, peakRSS(h.part("n1")))>>20)
		return err
	},
	Figures: func(e *Evidence, r *Report) []string {
		back, got := 0, 0
		for _, x := range e.Events {
			if strings.HasPrefix(x.Run, kindSingle) {
				switch {
				case x.Kind == journal.Accept:
					back++
				case x.Kind == journal.Outcome && x.Code == "":
					got++
				}
			}
		}
		return []string{
			fmt.Sprintf("%d of %d runs of clients that came back got their outcome", got, back), e.Memory, lost(e, r),
			silence(natsKilled+isBack, "silence after the server is back")(e, r),
		}
	},
}

// herdNode is where all clients of the herd are.
const herdNode = "h1"
