package ui

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/internal/ui/index"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

const (
	// waitsTooLong is for how long a step may wait for a worker until its run needs attention: as long as until the alert on
	// stepjet_tool_oldest_ready_seconds.
	waitsTooLong = 5 * time.Minute
	// waitsEvery is how often it is asked which runs do.
	waitsEvery = 15 * time.Second
)

// waits tells the index which runs wait too long for a worker. Their owners know: of what they hold back, by themselves,
// and of what they have out, by how far the server says that the tool's steps were given to workers. Nothing is kept of it.
type waits struct {
	store *kv.Store
	lines *index.Index
	link  *link
	log   *slog.Logger
	over  time.Duration
}

// run asks now and then until ctx ends. What can't be asked leaves what was told before.
func (w *waits) run(ctx context.Context) {
	told := false
	for w.link.wait(ctx) {
		err := w.look(ctx)
		if err != nil && ctx.Err() == nil && !told {
			told = true // once: it is asked for as long as the page lives
			w.log.Warn("it is not known which runs wait too long", "error", err, "hint", hintOf(err))
		}
		if !backoff.Pause(ctx, min(waitsEvery, w.over)) {
			return
		}
	}
}

func hintOf(err error) string {
	if fault.CodeOf(err) == fault.Permission {
		return "print the permissions of the page's user anew with stepjet acl"
	}
	return "it is asked again"
}

// look asks once.
func (w *waits) look(ctx context.Context) error {
	tools, err := w.store.Registry.Tools(ctx)
	if err != nil {
		return err
	}
	asked := time.Now()
	found, err := w.store.Requests.Waiting(ctx, tools, w.over)
	if err != nil {
		return err
	}
	runs := map[string]index.Wait{}
	for _, r := range found.Runs {
		runs[r.Run] = index.Wait{Step: r.Step, Tool: r.Tool, Since: asked.Add(-time.Duration(r.MS) * time.Millisecond).UTC()}
	}
	w.lines.Waiting(runs, func(r subjects.Run) bool { return slices.Contains(found.Unsure, r.Partition()) })
	return nil
}
