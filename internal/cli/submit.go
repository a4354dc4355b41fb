package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nuid"
	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
)

func (a *app) submitCommand() *cobra.Command {
	var run string
	var with contextFlags
	var may permitFlag
	c := &cobra.Command{
		Use:   "submit PLAN",
		Short: "Hand over a plan and return once it is accepted",
		Long: `Makes a plan durable on the server, waits until an orchestrator has judged it, and prints its
run id. It runs whether or not anybody waits. A plan whose form is wrong is not sent. Of one that
is rejected the problems are printed, and the exit code is 2: its run id is free for a better one.`,
		Example: `  stepjet submit --run order-42 plan.json
  stepjet submit --with user=ada --secret token=@env:TOKEN plan.json
  stepjet watch $(stepjet submit plan.json)`,
		Args: exactly("PLAN"),
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			return a.submitOnly(cmd.Context(), args[0], client.SubmitOptions{Run: run, Permissions: may.permissions()}, &with)
		}),
	}
	c.Flags().StringVar(&run, "run", "", "run `id`, the idempotency key; default: a new one")
	with.add(c.Flags())
	may.add(c.Flags())
	return c
}

func (a *app) submitOnly(ctx context.Context, file string, o client.SubmitOptions, with *contextFlags) error {
	body, err := a.readFile(file, maxPlanFile)
	if err != nil {
		return err
	}
	p, report := plan.Parse(body, nil)
	if p == nil {
		a.tellProblems(judged{file: file, body: body, report: report})
		return quietly(exitInvalid)
	}
	bag, err := a.runContext(with, p)
	if err != nil {
		return err
	}
	s, err := a.open(ctx, remoteOnly)
	if err != nil {
		return err
	}
	defer s.close()
	if o.Context = bag; o.Run == "" {
		o.Run = nuid.Next()
	}
	r, err := a.submitWith(ctx, s, body, o)
	if err != nil {
		if fault.CodeOf(err) == fault.Timeout {
			a.say("the plan may or may not have been accepted; sending it again is safe:\n  stepjet submit --run %s %s", quote(o.Run), quote(file))
		}
		return err
	}
	return a.handedOver(ctx, s, r)
}

// judgeWithin is how long a plan that was handed over is watched for a rejection, where an orchestrator is alive. It is
// judged in milliseconds, unless its partition is just being taken over by another owner.
const judgeWithin = 15 * time.Second

// judged waits until a plan was rejected or its run has begun, and gives the outcome if it is there already. Nil, too,
// where nobody is there to judge it.
func (a *app) judged(ctx context.Context, s *session, r *client.Run) *outcome.Outcome {
	ctx, cancel := context.WithTimeout(ctx, judgeWithin)
	defer cancel()
	w, err := s.client.NewWatcher(ctx, r.ID())
	if err != nil {
		return nil // who may submit may perhaps not watch
	}
	defer w.Close()
	w.Of(r)
	soon, enough := context.WithTimeout(ctx, time.Second)
	defer enough()
	out, err := w.Judged(soon)
	if err != nil && soon.Err() != nil && ctx.Err() == nil && !a.tellIfAlone(ctx, s) {
		out, err = w.Judged(ctx)
	}
	if err != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		a.say("%s the plan is stored and was not judged within %v; see: stepjet get %s%s", a.errStyle.yellow("warning:"), judgeWithin, quote(r.ID()), s.arguments(a))
	}
	return out
}

// handedOver prints the id of a run that goes on without this command; of a plan that was rejected, its problems.
func (a *app) handedOver(ctx context.Context, s *session, r *client.Run) error {
	if out := a.judged(ctx, s, r); out != nil && out.Status == outcome.Rejected {
		return a.outcome(out)
	}
	if a.json() {
		return a.printJSON(struct {
			Run      string `json:"run"`
			Tenant   string `json:"tenant"`
			Attached bool   `json:"attached"` // it was there before
		}{r.ID(), s.client.Tenant(), r.Attached()})
	}
	_, err := fmt.Fprintln(a.stdout, oneLine(r.ID()))
	return err
}
