package cli

import (
	"context"
	"fmt"

	"github.com/nats-io/nuid"
	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

func (a *app) submitCommand() *cobra.Command {
	var run string
	var with contextFlags
	c := &cobra.Command{
		Use:   "submit PLAN",
		Short: "Hand over a plan and return at once",
		Long: `Makes a plan durable on the server and prints its run id. It runs whether or not anybody
waits. A plan whose form is wrong is not sent: its problems are printed and the exit code is 2.`,
		Example: `  stepjet submit --run order-42 plan.json
  stepjet submit --with user=ada --secret token=@env:TOKEN plan.json
  stepjet watch $(stepjet submit plan.json)`,
		Args: exactly("PLAN"),
		RunE: a.work(func(cmd *cobra.Command, args []string) error { return a.submitOnly(cmd.Context(), args[0], run, &with) }),
	}
	c.Flags().StringVar(&run, "run", "", "run `id`, the idempotency key; default: a new one")
	with.add(c.Flags())
	return c
}

func (a *app) submitOnly(ctx context.Context, file, run string, with *contextFlags) error {
	body, err := a.readFile(file, maxPlanFile)
	if err != nil {
		return err
	}
	p, report := plan.Parse(body, nil)
	if p == nil {
		a.tellProblems(file, report)
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
	if run == "" {
		run = nuid.Next()
	}
	r, err := a.submitWith(ctx, s, body, client.SubmitOptions{Run: run, Context: bag})
	if err != nil {
		if fault.CodeOf(err) == fault.Timeout {
			a.say("the plan may or may not have been accepted; sending it again is safe:\n  stepjet submit --run %s %s", quote(run), quote(file))
		}
		return err
	}
	return a.handedOver(s, r)
}

// handedOver prints the id of a run that goes on without this command.
func (a *app) handedOver(s *session, r *client.Run) error {
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
