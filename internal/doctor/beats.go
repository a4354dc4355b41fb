package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/tool"
)

// beats listens to workers while other checks look, and then says what follows from what they say.
type beats struct {
	d     *doctor
	heard *kv.Workers
	err   error // why it hears nothing
	began time.Time
}

func listen(ctx context.Context, d *doctor) *beats {
	b := &beats{d: d, began: time.Now()}
	b.heard, b.err = d.s.Beats().Hear(ctx)
	return b
}

func (b *beats) stop() {
	if b.heard != nil {
		b.heard.Stop()
	}
}

// look compares the versions of workers and orchestrators, and looks for tools that are wanted and that no live worker
// serves. A worker that says nothing, as one of before, is no reason to say anything.
func (b *beats) look(ctx context.Context) error {
	if b.err != nil {
		return b.err
	}
	rest := time.NewTimer(time.Until(b.began.Add(kv.AnswerWithin)))
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	d := b.d
	all, _ := b.heard.List()
	if found := skewed(d.versions, all); found != "" {
		d.add(Finding{
			Health: Notable, Expected: "one version of Stepjet", Found: found,
			Means: "a rollout is under way, or was left half done; versions next to each other work together",
			Fix:   "upgrade the others: orchestrators first, then workers",
		}, nil)
	}
	if d.wanted != nil {
		for i := range d.wanted.Tools {
			if err := b.serve(ctx, &d.wanted.Tools[i], all); err != nil {
				return err
			}
		}
	}
	d.fine(text.Count(len(all), "worker") + " that live say so")
	return nil
}

// serve looks at one tool that is wanted. What check "worker" says already is not said again.
func (b *beats) serve(ctx context.Context, wanted *tool.Demand, all []tool.Worker) error {
	i := slices.IndexFunc(b.d.tools, func(t tool.Registered) bool { return t.Name == wanted.Tool })
	if wanted.Steps == 0 || i < 0 {
		return nil
	}
	serve, held, unsure := 0, 0, false
	for i := range all {
		t := all[i].Of(wanted.Tool)
		switch {
		case t == nil:
			unsure = unsure || all[i].More > 0
		case t.Held:
			held++
		default:
			serve++
		}
	}
	if serve > 0 || unsure {
		return nil
	}
	info, there, err := b.d.queueOf(ctx, b.d.tools[i])
	if err != nil || !there || info.NumWaiting > 0 { // somebody takes its steps without saying so
		return err
	}
	switch {
	case held > 0:
		b.d.add(Finding{
			About: wanted.Tool, Health: Notable, Expected: "a worker that takes its steps",
			Found: fmt.Sprintf("%s wanted, and %s, all of which hold it", text.Count(wanted.Steps, "step"), text.Count(held, "live worker")),
			Means: "these steps wait until what the tool needs is there again", Fix: "look at the logs of its workers; stepjet workers names them",
		}, nil)
	case info.NumAckPending > 0 || info.NumPending == 0:
		b.d.add(Finding{
			About: wanted.Tool, Health: Notable, Expected: "a worker that lives",
			Found: fmt.Sprintf("%s wanted, and %d leased: no worker of it says that it lives", text.Count(wanted.Steps, "step"), info.NumAckPending),
			Means: "its workers died, and the leases of what they had run out; or they are of before, and say nothing",
			Fix:   "start a worker of " + wanted.Tool,
		}, nil)
	}
	return nil
}

// skewed says which versions there are, where there is more than one; nothing of those who say none.
func skewed(orchestrators []string, workers []tool.Worker) string {
	of := map[string][2]int{}
	count := func(version string, kind int) {
		if version != "" {
			n := of[version]
			n[kind]++
			of[version] = n
		}
	}
	for _, v := range orchestrators {
		count(v, 0)
	}
	for i := range workers {
		count(workers[i].Version, 1)
	}
	if len(of) < 2 {
		return ""
	}
	var parts []string
	for _, v := range slices.Sorted(maps.Keys(of)) {
		var who []string
		for kind, name := range []string{"orchestrator", "worker"} {
			if n := of[v][kind]; n > 0 {
				who = append(who, text.Count(n, name))
			}
		}
		parts = append(parts, v+": "+strings.Join(who, " and "))
	}
	if len(parts) > maxNamed {
		parts = append(parts[:maxNamed], fmt.Sprintf("and %d more", len(of)-maxNamed))
	}
	return strings.Join(parts, "; ")
}
