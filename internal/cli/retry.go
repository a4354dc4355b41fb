package cli

import (
	"context"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
)

// againFlags are those of the commands that run something again.
type againFlags struct {
	tools  string
	wait   time.Duration
	detach bool
	with   contextFlags
	less   bool // less context than there was
}

func (f *againFlags) add(c *cobra.Command) {
	c.Flags().BoolVarP(&f.detach, "detach", "d", false, "print the new run's id and return at once")
	c.Flags().DurationVar(&f.wait, "wait", 0, "wait for this `duration` at most; default: until the outcome is there")
	c.Flags().StringVar(&f.tools, "tools", "", "tools `file` for the toolworker in this process; default: the built-in tools")
	f.with.add(c.Flags())
	c.Flags().BoolVar(&f.less, "less-context", false, "do without context that it had and that is not given again")
}

func (a *app) retryCommand() *cobra.Command {
	var f againFlags
	var id, from string
	c := &cobra.Command{
		Use:   "retry RUN",
		Short: "Run a finished run again, reusing what succeeded",
		Long: `Runs a finished run again as a new run of the same plan. Results that are there are taken over;
what failed, was skipped or was cancelled is executed again. With --from also a step that
succeeded is, and all that depends on it.

In a plan with conditions all that depends on what is executed again is decided anew: a step
may have been taken because another failed. So is what was not taken.

Of a for_each step, items that succeeded are taken over one by one, as long as its list has the
same bytes. A step that succeeded though some of its items failed is tried again too, and what
depends on it.

The new run's id is RUN.2, and that of the retry of RUN.2 is RUN.3; with --from STEP it is
RUN.2.from-STEP. It follows from RUN and STEP, so that typing the command twice makes one new
run. To try again what a retry did not bring about, retry the retry. Of out-of-band context
(--with, --secret) only the keys are kept with a run: the command names those that have to be
given again.

Prints the outcome and ends with the exit codes of "run".`,
		Example: `  stepjet retry order-42
  stepjet retry order-42 --from charge --secret token=@env:TOKEN
  stepjet retry order-42 --id order-42-by-hand --detach`,
		Args: exactly("RUN"),
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			return a.retry(cmd.Context(), args[0], client.RetryOptions{Run: id, From: from}, &f)
		}),
	}
	c.Flags().StringVar(&from, "from", "", "execute this `step` again, and all that depends on it, though it succeeded")
	c.Flags().StringVar(&id, "id", "", "run `id` of the new run; default: the old one with a number")
	f.add(c)
	return c
}

func (a *app) retry(ctx context.Context, run string, o client.RetryOptions, f *againFlags) (err error) {
	if o.Context, err = a.runContext(&f.with, nil); err != nil {
		return err
	}
	o.LessContext = f.less
	s, err := a.open(ctx, place{start: ifKept, tools: f.tools})
	if err != nil {
		return err
	}
	defer s.close()
	r, err := a.retryOnce(ctx, s, run, o)
	if err != nil {
		return err
	}
	if f.detach {
		return a.handedOver(ctx, s, r)
	}
	a.tellIfAttached(r)
	ctx, cancel := waitFor(ctx, f.wait)
	defer cancel()
	out, err := a.followRun(ctx, s, r)
	if err != nil {
		a.tellLater(s, r.ID(), err)
		return why(ctx, err)
	}
	if r.Attached() && out.Status != outcome.Succeeded {
		a.say("to try again what it left: stepjet retry %s%s", quote(r.ID()), s.arguments(a))
	}
	return a.outcome(out)
}

func (a *app) retryOnce(ctx context.Context, s *session, run string, o client.RetryOptions) (*client.Run, error) {
	ctx, cancel := a.patience(ctx)
	defer cancel()
	a.tellIfOpen(ctx, s, o.Context)
	r, err := s.client.Retry(ctx, run, o)
	return r, again(why(ctx, err))
}

// followRun tells of a run that was submitted until it is over.
func (a *app) followRun(ctx context.Context, s *session, r *client.Run) (*outcome.Outcome, error) {
	w, err := s.client.NewWatcher(ctx, r.ID())
	if err != nil {
		return nil, err
	}
	defer w.Close()
	w.Of(r)
	a.tellIfAlone(ctx, s)
	now := func() *plan.Plan { return planNow(ctx, s, r.ID()) }
	tell := a.report(r.ID(), a.planOf(ctx, s, r), now)
	if l, ok := tell.(*lines); ok {
		l.plan = sync.OnceValue(now)
	}
	return a.follow(ctx, w, asked(ctx, a, s, r.ID(), tell))
}

// planOf returns the plan of a run for a terminal to draw; nil where there is none, or the plan isn't to be had just
// now.
func (a *app) planOf(ctx context.Context, s *session, r *client.Run) *plan.Plan {
	if !a.terminal || a.flags.quiet {
		return nil
	}
	return planNow(ctx, s, r.ID())
}

// planNow returns the plan of a run; nil where it isn't to be had just now.
func planNow(ctx context.Context, s *session, run string) *plan.Plan {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	doc, err := s.client.Get(ctx, run)
	if err != nil {
		return nil
	}
	return plan.Accepted(doc.Plan, doc.Templates)
}
