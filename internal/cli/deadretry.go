package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
)

type deadRetryFlags struct {
	againFlags
	all bool
	of  client.DeadOptions
}

func (a *app) deadRetryCommand() *cobra.Command {
	var f deadRetryFlags
	c := &cobra.Command{
		Use:   "retry RUN STEP… | --all",
		Short: "Make the calls of dead letters again",
		Long: `Submits, for each letter, a plan of one step: the same tool with exactly the same arguments. A
letter is removed once its retry has succeeded; one whose retry fails stays and can be retried again.

The retry's run id follows from the letter, so that typing the command twice, or again after it was
interrupted, makes the call once. With --detach the letter stays: the command, typed once more,
only looks what became of it. Of out-of-band context only the keys are kept with a letter: the
command names those that have to be given again.

For one letter prints the outcome and ends as "run" does. For more, prints a line for each; the exit
code is 0 if all succeeded, else 1.`,
		Example: `  stepjet dead retry order-42 charge
  stepjet dead retry order-42 tokyo london --secret token=@env:TOKEN
  stepjet dead retry --all --tool get_weather`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case !f.all && (f.of.Tool != "" || f.of.Run != ""):
				return usage(errors.New("--tool and --run go with --all"))
			case !f.all:
				return runAndSteps(cmd, args)
			case len(args) > 0:
				return usage(errors.New("--all takes no RUN; to name one: --all --run " + quote(args[0])))
			}
			return nil
		},
		RunE: a.work(func(cmd *cobra.Command, args []string) error { return a.retryDead(cmd.Context(), args, &f) }),
	}
	c.Flags().BoolVar(&f.all, "all", false, "retry all letters, or those of --tool or --run")
	deadFilter(c, &f.of)
	f.add(c)
	return c
}

func (a *app) retryDead(ctx context.Context, args []string, f *deadRetryFlags) error {
	bag, err := a.runContext(&f.with, nil)
	if err != nil {
		return err
	}
	s, letters, err := a.deadToRetry(ctx, args, f)
	if err != nil {
		return err
	}
	defer s.close()
	a.tellIfOpen(ctx, s, bag)
	ctx, cancel := waitFor(ctx, f.wait)
	defer cancel()
	o := client.RetryDeadOptions{Context: bag, LessContext: f.less}
	if len(letters) == 1 && !f.all {
		return a.retryDeadOne(ctx, s, letters[0], o, f.detach)
	}
	return a.retryDeadMany(ctx, s, letters, o, f.detach)
}

// deadToRetry opens a session and finds the letters that are meant.
func (a *app) deadToRetry(ctx context.Context, args []string, f *deadRetryFlags) (*session, []*outcome.DeadLetter, error) {
	where := place{start: ifKept, tools: f.tools}
	if f.all {
		return a.deadLetters(ctx, where, f.of)
	}
	s, err := a.open(ctx, where)
	if err != nil {
		return nil, nil, err
	}
	var letters []*outcome.DeadLetter
	for _, step := range args[1:] { // all are looked for before any is retried
		d, err := a.deadLetter(ctx, s, args[0], step)
		if err != nil {
			s.close()
			return nil, nil, err
		}
		letters = append(letters, d)
	}
	return s, letters, nil
}

// submitDead submits the retry of one letter.
func (a *app) submitDead(ctx context.Context, s *session, d *outcome.DeadLetter, o client.RetryDeadOptions) (*client.Run, error) {
	ctx, cancel := a.patience(ctx)
	defer cancel()
	r, err := s.client.RetryDead(ctx, d, o)
	return r, again(why(ctx, err))
}

func (a *app) retryDeadOne(ctx context.Context, s *session, d *outcome.DeadLetter, o client.RetryDeadOptions, detach bool) error {
	r, err := a.submitDead(ctx, s, d, o)
	if err != nil {
		return err
	}
	if detach {
		return a.handedOver(ctx, s, r)
	}
	a.tellIfAttached(r)
	if _, err := a.followRun(ctx, s, r); err != nil {
		a.tellLater(s, r.ID(), err)
		return why(ctx, err)
	}
	out, err := s.client.SettleDead(ctx, d, r)
	if err != nil {
		return why(ctx, err)
	}
	return a.outcome(out)
}

// deadWide is how many letters are retried at a time; the tools' own limits hold all the same.
const deadWide = 32

// retryDeadMany retries letters side by side and prints a line for each as it ends.
func (a *app) retryDeadMany(ctx context.Context, s *session, letters []*outcome.DeadLetter, o client.RetryDeadOptions, detach bool) error {
	if len(letters) == 0 {
		a.say("no dead letters")
		return nil
	}
	var mu sync.Mutex
	succeeded := 0
	var g errgroup.Group
	g.SetLimit(deadWide)
	for _, d := range letters {
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			res := a.retryDeadQuietly(ctx, s, d, o, detach)
			mu.Lock()
			defer mu.Unlock()
			if res.Outcome == nil && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if res.Error == nil && (res.Status == outcome.Succeeded || res.Status == outcome.Running) {
				succeeded++
			}
			return a.printDeadRetry(res)
		})
	}
	if err := g.Wait(); err != nil {
		if errors.Is(err, errWait) || errors.Is(err, errInterrupt) {
			a.say("what was begun goes on%s; the same command, typed again, makes no call twice", s.whenLocal())
		}
		return err
	}
	a.say("%d of %s %s", succeeded, text.Count(len(letters), "dead letter"), map[bool]string{true: "handed over", false: "succeeded"}[detach])
	if succeeded < len(letters) {
		return quietly(exitFailed)
	}
	return nil
}

// deadRetry is what the retry of one letter came to.
type deadRetry struct {
	Run    string            `json:"run"`
	Step   string            `json:"step"`
	Retry  string            `json:"retry,omitempty"` // the run that makes the call again
	Status outcome.RunStatus `json:"status,omitempty"`
	// Outcome is that of the retry; Error says why there is none.
	Outcome *outcome.Outcome `json:"outcome,omitempty"`
	Error   *fault.Error     `json:"error,omitempty"`
}

func (a *app) retryDeadQuietly(ctx context.Context, s *session, d *outcome.DeadLetter, o client.RetryDeadOptions, detach bool) deadRetry {
	res := deadRetry{Run: d.Run, Step: d.Step}
	r, err := a.submitDead(ctx, s, d, o)
	if err != nil {
		res.Error = fault.As(err)
		return res
	}
	res.Retry, res.Status = r.ID(), outcome.Running
	if detach {
		return res
	}
	if res.Outcome, err = s.client.SettleDead(ctx, d, r); err != nil {
		res.Error = fault.As(why(ctx, err))
	}
	if res.Outcome != nil {
		res.Status = res.Outcome.Status
	}
	return res
}

func (a *app) printDeadRetry(r deadRetry) error {
	if a.json() {
		return a.printJSON(r)
	}
	st, said := a.style, oneLine(r.Retry)
	switch {
	case r.Error != nil:
		said = st.red(oneLine(string(r.Error.Code) + ": " + r.Error.Message))
	case r.Outcome != nil && len(r.Outcome.Errors) > 0:
		said = st.red(oneLine(string(r.Outcome.Errors[0].Code) + ": " + r.Outcome.Errors[0].Message))
	case r.Outcome != nil && len(r.Outcome.Problems) > 0:
		said = st.red(oneLine(string(r.Outcome.Problems[0].Code) + ": " + r.Outcome.Problems[0].Message))
	}
	status := r.Status
	if status == "" {
		status = "not sent"
	}
	_, err := fmt.Fprintf(a.stdout, "%s  %s  %s  %s\n", st.run(r.Status, string(status)), oneLine(r.Run), oneLine(r.Step), said)
	return err
}
