package chaos

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/doctor"
	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/subjects"
)

// rollingUpgrade begins with a system of the old version under load. Processes are stopped or killed and come back as
// the old or today's version, in any order, until all are today's; then the same with today's and a newer one.
var rollingUpgrade = Scenario{
	Name: "rolling-upgrade",
	Fault: "rolling upgrade and downgrade under load: " + oldCommit.commit +
		" with today's version, then today's with one whose messages have more fields; SIGTERM and kill -9",
	Correct:  "no unknown field is lost, no error",
	Shape:    Shape{Orchestrators: 3, Version: versionOld},
	Versions: []string{versionOld, versionNewer},
	Seconds:  60,
	Inject: func(ctx context.Context, h *Harm) error {
		half := time.Now()
		if end, ok := ctx.Deadline(); ok {
			half = half.Add(time.Until(end) / 2)
		}
		if err := h.mix(ctx, half, versionOld, ""); err != nil {
			return err
		}
		return h.mix(ctx, time.Now().Add(time.Hour), "", versionNewer)
	},
	Sometimes: []string{sometimesRetried, sometimesCancelled, sometimesReplayed, sometimesConflict, sometimesAsked,
		sometimesLater, sometimesKept},
	Relax: upgraded,
	Figures: func(e *Evidence, r *Report) []string {
		return []string{
			fmt.Sprintf("%d errors", len(errorsOf(e))), fmt.Sprintf("%d unknown fields lost", len(e.Found)),
			fmt.Sprintf("%d outcomes and %d registry entries with a newer version's field, %d of them written by today's",
				r.Counts[sometimesLater], e.Later.entries, e.Later.kept),
			duplicates(e, r),
		}
	},
}

const (
	sometimesLater  = "outcome with a field of a newer version"
	sometimesSealed = "plan with sealed secrets"
	sometimesKept   = "such a field kept in the registry by a version that doesn't know it"
)

// newerBeside is the second half of rollingUpgrade alone: it needs no history.
var newerBeside = Scenario{
	Name: "newer-beside", Fault: rollingUpgrade.Fault, Correct: rollingUpgrade.Correct,
	Shape: Shape{Orchestrators: 2, Workers: 2}, Versions: []string{versionNewer},
	Inject: func(ctx context.Context, h *Harm) error {
		return h.mix(ctx, time.Now().Add(time.Hour), "", versionNewer)
	},
	Relax: upgraded,
}

// sealedBeside has agents seal their secrets while orchestrators and workers are replaced by such as know nothing of
// that. These leave the runs and the steps to others; no tool is handed what was sealed, and nothing waits any more
// once they are gone.
var sealedBeside = Scenario{
	Name: "sealed-beside-old",
	Fault: "sealed secrets, while orchestrators and workers become " + unsealedCommit.commit +
		", which knows nothing of them, and today's again; SIGTERM and kill -9",
	Correct:  "left to others, no tool is handed a ciphertext, no secret in clear text",
	Shape:    Shape{Orchestrators: 3, Sealed: true, Kinds: []string{kindRandom, kindChain, kindOnce}},
	Versions: []string{versionUnsealed},
	Seconds:  40,
	Inject: func(ctx context.Context, h *Harm) error {
		until := time.Now()
		if end, ok := ctx.Deadline(); ok {
			until = until.Add(time.Until(end) / 2)
		}
		return h.mix(ctx, until, versionUnsealed, "")
	},
	Sometimes: []string{sometimesSealed, sometimesRedelivered},
	Figures: func(e *Evidence, r *Report) []string {
		return []string{fmt.Sprintf("%d plans with sealed secrets", r.Counts[sometimesSealed]), duplicates(e, r)}
	},
}

// mix replaces processes by those of either version until a moment comes; then all become those of the second.
func (h *Harm) mix(ctx context.Context, until time.Time, one, other string) error {
	var nodes []string
	for i := range h.opts.Orchestrators {
		nodes = append(nodes, node("o", i))
	}
	for i := range h.opts.Workers {
		nodes = append(nodes, node("w", i))
	}
	for i := 0; time.Now().Before(until); i++ {
		version := []string{one, other}[h.Intn(2)]
		if err := h.replace(ctx, nodes[h.Intn(len(nodes))], version, h.Intn(2) == 0); err != nil {
			return err
		}
		if i%2 == 1 {
			name := fmt.Sprintf("try%d_all", 1+h.Intn(3)) // whoever answers writes the registry's entry anew
			if _, err := h.store.Requests.RequestOverride(ctx, name, fmt.Appendf(nil, `{"by":"upgrade %d"}`, i)); err != nil {
				return err
			}
		}
		if err := sleep(ctx, h.between(100*time.Millisecond, 600*time.Millisecond)); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		if h.role(n).Version != other {
			if err := h.replace(ctx, n, other, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// replace ends a node's process, gently or not, and starts it in a version.
func (h *Harm) replace(ctx context.Context, n, version string, gently bool) error {
	var workers []string
	if strings.HasPrefix(n, "w") {
		workers = []string{n}
	}
	h.hit("replaced", workers...)
	if !gently {
		h.part(n).kill()
	} else if err := h.part(n).term(30 * time.Second); err != nil {
		return err
	}
	h.setVersion(n, version)
	return h.again(ctx, n)
}

// isError reports an answer to an agent that is neither an outcome nor the conflict that it asked for.
func isError(x journal.Event) bool {
	switch x.Kind {
	case journal.Refuse:
		return x.Code != string(fault.Conflict)
	case journal.Outcome:
		return x.Code != ""
	}
	return false
}

// errorsOf returns the errors that agents got.
func errorsOf(e *Evidence) (all []journal.Event) {
	for _, x := range e.Events {
		if isError(x) {
			all = append(all, x)
		}
	}
	return all
}

// upgraded looks for what an upgrade may cost: errors that agents got, and fields that were there and are not any more.
func upgraded(e *Evidence) {
	for _, x := range errorsOf(e) {
		e.Found = append(e.Found, Violation{Invariant: "upgrade", Run: x.Tenant + "/" + x.Run, Text: x.Kind + " with the error " + x.Code})
	}
	e.Found = append(e.Found, e.Later.lost...)
	e.Counts = map[string]int{sometimesKept: e.Later.kept}
	for _, doc := range e.History {
		if doc.Outcome != nil && strings.Contains(string(doc.Outcome.JSON()), laterField) {
			e.Counts[sometimesLater]++
		}
	}
}

// laterWatch sees every entry of the registry as it is stored.
type laterWatch struct {
	mu      sync.Mutex
	has     map[string]bool // the tool's entry has the newer version's field
	entries int             // with it
	kept    int             // of which were written by a version that doesn't know it
	lost    []Violation
}

// follow reads the registry's entries in their order, also those that another took the place of since.
func (l *laterWatch) follow(ctx context.Context, w *World) error {
	js, err := jetstream.New(w.nc)
	if err != nil {
		return err
	}
	c, err := js.OrderedConsumer(ctx, subjects.BucketStream(subjects.ToolsBucket), jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{subjects.BucketSubject(subjects.ToolsBucket, "*")},
		DeliverPolicy:  jetstream.DeliverNewPolicy,
	})
	if err != nil {
		return err
	}
	consuming, err := c.Consume(func(m jetstream.Msg) { l.entry(m) })
	if err == nil {
		context.AfterFunc(ctx, consuming.Stop)
	}
	return err
}

func (l *laterWatch) entry(m jetstream.Msg) {
	l.mu.Lock()
	defer l.mu.Unlock()
	has := strings.Contains(string(m.Data()), laterField)
	if has {
		l.entries++
		if m.Headers().Get(subjects.HeaderVersion) == subjects.Version {
			l.kept++
		}
	} else if l.has[m.Subject()] {
		l.lost = append(l.lost, Violation{Invariant: "upgrade",
			Text: "a field of a newer version was lost from " + m.Subject()})
	}
	l.has[m.Subject()] = l.has[m.Subject()] || has
}

// upgradeByTheBook does what docs/operations.md says of an upgrade to what lies in the account, orchestrators and workers,
// under load, then what it says of taking one back, and the upgrade again.
var upgradeByTheBook = Scenario{
	Name: "upgrade",
	Fault: "an upgrade from " + beforeCommit.commit + " to today's version by steps 2, 3 and 5 of the documented procedure, back, and again, " +
		"under load: each process is stopped by SIGTERM and started anew, one after the other. Left out: permissions (1), page and mcp (4), " +
		"programs that submit (6), doctor --fix (7)",
	Correct: "nothing lost, no error, no pause",
	Shape: Shape{Orchestrators: 3, Version: versionBefore,
		Kinds: []string{kindRandom, kindBranch, kindStop, kindChain, kindNest, kindCancel, kindOnce, kindRandom}},
	Versions: []string{versionBefore},
	Seconds:  120, Shipped: 120,
	Inject: func(ctx context.Context, h *Harm) error {
		for _, to := range []string{"", versionBefore, ""} {
			if err := h.move(ctx, to); err != nil {
				return err
			}
			if err := sleep(ctx, 5*time.Second); err != nil {
				return err
			}
		}
		return nil
	},
	Sometimes: []string{sometimesRetried, sometimesCancelled, sometimesReplayed, sometimesConflict},
	Relax:     upgraded,
	Figures: func(e *Evidence, r *Report) []string {
		return []string{
			fmt.Sprintf("%d errors", len(errorsOf(e))), fmt.Sprintf("%d processes replaced", len(e.Faults)), duplicates(e, r),
		}
	},
}

// move brings all processes to a version, as the procedure says: what lies in the account first, then orchestrators, then
// workers; back, the other way round, and what lies in the account stays.
func (h *Harm) move(ctx context.Context, to string) error {
	order := []struct {
		kind string
		n    int
	}{{"o", h.opts.Orchestrators}, {"w", h.opts.Workers}}
	if to == "" {
		if err := h.provision(ctx); err != nil {
			return err
		}
	} else {
		order[0], order[1] = order[1], order[0]
	}
	for _, of := range order {
		for i := range of.n {
			if err := h.replace(ctx, node(of.kind, i), to, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// provision does what "stepjet provision" does.
func (h *Harm) provision(ctx context.Context) error {
	report, err := doctor.Examine(ctx, h.nc, doctor.Options{Want: h.opts.store(), Mend: true, SetUp: true})
	if err != nil {
		return err
	}
	if left := report.Problems(); len(left) > 0 {
		return fault.New(fault.Internal, "provisioning left %s %s: %s", left[0].Check, left[0].About, left[0].Found)
	}
	return nil
}
