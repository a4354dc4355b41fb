package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/wire"
)

func (a *app) listCommand() *cobra.Command {
	var status []string
	var limit int
	c := &cobra.Command{
		Use:   "list",
		Short: "List the runs of a tenant, newest first",
		Example: `  stepjet list
  stepjet list --status failed,partial --limit 20
  stepjet list -o json | jq -r '.[].run'`,
		Args: exactly(),
		RunE: a.work(func(cmd *cobra.Command, _ []string) error { return a.list(cmd.Context(), status, limit) }),
	}
	c.Flags().StringSliceVar(&status, "status", nil, "only runs of these `statuses`: running, succeeded, partial, failed, cancelled, expired, rejected")
	c.Flags().IntVarP(&limit, "limit", "n", 100, "list this `number` of runs at most; 0: all")
	return c
}

// statuses are those a run may have, in the order of the help.
var statuses = []outcome.RunStatus{
	outcome.Running, outcome.Succeeded, outcome.Partial, outcome.Failed, outcome.Cancelled, outcome.Expired, outcome.Rejected,
}

func (a *app) list(ctx context.Context, status []string, limit int) error {
	o := client.ListOptions{Limit: limit}
	if limit <= 0 {
		o.Limit = -1
	}
	for _, s := range status {
		if !slices.Contains(statuses, outcome.RunStatus(s)) {
			return usage(errors.New("--status " + s + " is not known"))
		}
		o.Status = append(o.Status, outcome.RunStatus(s))
	}
	s, err := a.open(ctx, existing)
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := a.patience(ctx)
	defer cancel()
	runs, err := s.client.List(ctx, o)
	if err != nil {
		return why(ctx, err)
	}
	if a.json() {
		if runs == nil {
			runs = []client.Summary{}
		}
		return a.printJSON(runs)
	}
	return a.showRuns(runs, a.now())
}

func (a *app) showRuns(runs []client.Summary, now time.Time) error {
	if len(runs) == 0 {
		a.say("no runs")
		return nil
	}
	st := a.style
	t := table{}
	head := func(s string) cell { return cell{text: s, paint: st.dim} }
	right := func(s string) cell { return cell{text: s, paint: st.dim, right: true} }
	t.add(head("RUN"), head("STATUS"), right("STEPS"), right("TOOK"), head("SUBMITTED"))
	for _, r := range runs {
		steps, spent := "", ""
		if r.Stats.Steps > 0 {
			steps, spent = fmt.Sprintf("%d/%d", r.Stats.Succeeded+r.Stats.NotTaken, r.Stats.Steps), tookMS(r.Stats.ElapsedMS)
		}
		t.add(plain(oneLine(r.Run)), cell{text: string(r.Status), paint: func(text string) string { return st.run(r.Status, text) }},
			cell{text: steps, right: true}, cell{text: spent, right: true}, plain(clock(r.Submitted, now)))
	}
	var b bytes.Buffer
	t.write(&b, "", a.width())
	_, err := a.stdout.Write(b.Bytes())
	return err
}

func (a *app) watchCommand() *cobra.Command {
	var wait time.Duration
	c := &cobra.Command{
		Use:   "watch RUN",
		Short: "Watch a run until it is over",
		Long: `Prints what happens to a run as it happens, after what has happened already. With -o json
prints one event a line; the last one holds the outcome. The exit code is that of the run's status.`,
		Example: `  stepjet watch order-42
  stepjet watch order-42 -o json | jq -c 'select(.kind == "step")'`,
		Args: exactly("RUN"),
		RunE: a.work(func(cmd *cobra.Command, args []string) error { return a.watch(cmd.Context(), args[0], wait) }),
	}
	c.Flags().DurationVar(&wait, "wait", 0, "watch for this `duration` at most")
	return c
}

func (a *app) watch(ctx context.Context, run string, wait time.Duration) error {
	s, err := a.open(ctx, existing)
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := waitFor(ctx, wait)
	defer cancel()
	tell := &lines{w: a.stdout, st: a.style, where: s.arguments(a), plan: sync.OnceValue(func() *plan.Plan { return planNow(ctx, s, run) })}
	var out *outcome.Outcome
	var failed error
	err = s.client.Watch(ctx, run, func(e client.Event) {
		if e.Outcome != nil {
			out = e.Outcome
		}
		if !a.json() {
			tell.event(e)
		} else if err := a.printJSON(e); err != nil {
			failed = err
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return why(ctx, err)
	}
	a.say("%s", a.summary(out))
	return quietly(codeOfRun(out.Status))
}

func (a *app) cancelCommand() *cobra.Command {
	var by string
	c := &cobra.Command{
		Use:   "cancel RUN…",
		Short: "Cancel runs: nothing new starts, what runs is told to stop",
		Long: `Cancels active runs. What had succeeded stays in the outcome. Of one that somebody had cancelled
already it says so, and who that was. A run that had ended before is left as it is, with exit code 1.`,
		Example: `  stepjet cancel order-42
  stepjet cancel order-42 --by "night shift"`,
		Args: atLeast("RUN"),
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			return a.cancel(cmd.Context(), args, cmp.Or(by, userName(a.env.Getenv)))
		}),
	}
	c.Flags().StringVar(&by, "by", "", "`name` of who cancels, for the record (default: the user's name)")
	return c
}

func (a *app) cancel(ctx context.Context, runs []string, by string) error {
	s, err := a.open(ctx, existing)
	if err != nil {
		return err
	}
	defer s.close()
	var last error // the others have been shown
	for _, run := range runs {
		one, cancel := a.patience(ctx)
		x, err := s.client.Cancel(one, run, by)
		err = why(one, err)
		cancel()
		if err != nil {
			if last != nil {
				a.show(last, "")
			}
			last = err
			continue
		}
		if a.json() {
			err = a.printJSON(wire.Cancelled{Run: run, Status: x.Status, By: x.By, Already: x.Already})
		} else {
			_, err = fmt.Fprintln(a.stdout, strings.TrimSpace(oneLine(run)+"  "+a.style.yellow(stoppedLine(x))))
		}
		if err != nil {
			return err
		}
	}
	return last
}
