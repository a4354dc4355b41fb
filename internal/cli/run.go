package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nuid"
	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/agents"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

type runFlags struct {
	run   string
	tools string
	wait  time.Duration
	dry   bool
	write bool // the plan is still being written
	open  time.Duration
	with  contextFlags
	may   permitFlag
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run PLAN",
		Short: "Run a plan and print its outcome",
		Long: `Submits a plan, shows how it goes on standard error and prints its outcome, a JSON
document, on standard output. "-" is standard input.

Where no server is given (--server, --context or their variables), and no "stepjet dev" is
running, everything a run needs starts in this process: a NATS server with its data in a
folder, an orchestrator, and a toolworker with the built-in tools or those of --tools. Commands
that use a folder at the same time work together: the first has the folder, the others join it,
and one of them goes on when it ends or is killed. So a --run runs once there too.

The same --run with the same plan never runs twice: it prints the outcome of the first.

At a terminal, what the run asks of people is asked there: y or n for an approval, with a reason
behind it or none; JSON or a text for an answer; Enter leaves a question to others.

With --dry-run nothing runs and nothing is stored: it prints the plan's problems, or its waves,
the calls that it would make, the limits that it would meet, and a run of it in which each tool
returns a made-up value, an example of its output schema or the least that this accepts. It asks
the registry of a server that is given or of a "stepjet dev" that is running, else knows --tools
or the built-in tools. Exit code 2 if the plan is invalid, else 0.

With --stream the plan runs while it is being written, on standard input or into a pipe: each step
begins once it is there with all that it refers to. Around the plan may be other text. A text that
breaks off cancels the run, as do an interrupt and --wait before its end; what had begun is said.
A run that somebody else began under the same --run is left alone. A step that calls an agent is
written before all others: none can be added to a run that has begun.

Exit codes: 0 succeeded, 3 partial, 1 failed, cancelled or expired, 2 invalid plan,
4 no connection, 124 --wait ran out, 130 interrupted. In the last two cases the run goes on, but
for one of --stream whose text was not over.`,
		Example: `  stepjet run plan.json
  stepjet run plan.json --dry-run
  write-a-plan | stepjet run --stream -
  stepjet run --run order-42 -o json plan.json | jq .results
  stepjet run --with user=ada --secret token=@env:TOKEN plan.json
  stepjet run --server nats://localhost:4222 --wait 30s plan.json`,
		Args: exactly("PLAN"),
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			switch {
			case f.dry && f.write:
				return usage(errors.New("--dry-run is of a whole plan, --stream of one that is being written: leave one of them out"))
			case !f.write && cmd.Flags().Changed("open-for"):
				return usage(errors.New(`--open-for is of a plan that is being written: add --stream, or write "open_for" into the plan`))
			case f.write:
				return runStream(cmd.Context(), a, args[0], f)
			case f.dry:
				return dryRun{a, args[0], f.tools, f.may.permissions()}.print(cmd.Context())
			}
			return a.run(cmd.Context(), args[0], f)
		}),
	}
	c.Flags().StringVar(&f.run, "run", "", "run `id`, the idempotency key; default: a new one")
	c.Flags().StringVar(&f.tools, "tools", "", "tools `file` for the toolworker here (env STEPJET_TOOLS; default: the built-in tools)")
	c.Flags().DurationVar(&f.wait, "wait", 0, "wait for this `duration` at most; default: until the outcome is there")
	c.Flags().BoolVar(&f.write, "stream", false, "run the plan while it is being written")
	c.Flags().DurationVar(&f.open, "open-for", client.DefaultOpenFor, "with --stream: the longest wait for the next step")
	c.Flags().BoolVar(&f.dry, "dry-run", false, "only say what the plan would come to, with made-up results")
	f.with.add(c.Flags())
	f.may.add(c.Flags())
	return c
}

func (a *app) run(ctx context.Context, file string, f runFlags) error {
	body, err := a.readFile(file, maxPlanFile)
	if err != nil {
		return err
	}
	if len(body) == maxPlanFile { // too large to be sent: say so here
		_, report := plan.Parse(body, nil)
		a.tellProblems(judged{file: file, body: body, report: report})
		return quietly(exitInvalid)
	}
	return a.runBody(ctx, body, f, nil)
}

// followed is what tells of a run; nil for what is told of every run.
type followed func(s *session, run string) following

// following is how one run is told of.
type following struct {
	tell reporter
	// ready makes sure of what the run needs here; until end is called that is there, as long as the context lasts. nil: it
	// needs nothing.
	ready func(context.Context) (within context.Context, end func(), err error)
	over  func(context.Context)              // is called once it is over
	left  func(context.Context, error) error // is called where it is left before, with the error that this has
	// hosts reports whether what the run needs is here alone, so that it waits once the command is over. nil: it is not.
	hosts func() bool
}

// runBody runs a plan and prints its outcome.
func (a *app) runBody(ctx context.Context, body []byte, f runFlags, by followed) error {
	p, _ := plan.Parse(body, nil) // a plan that is invalid is sent all the same, and its problems come back
	bag, err := a.runContext(&f.with, p)
	if err != nil {
		return err
	}
	s, err := a.open(ctx, place{start: always, tools: f.tools})
	if err != nil {
		return err
	}
	defer s.close()
	if f.run == "" {
		f.run = nuid.Next()
	}
	ctx, cancel := waitFor(ctx, f.wait)
	defer cancel()
	tell := following{over: func(context.Context) {}, left: func(_ context.Context, err error) error { return err }}
	if by != nil {
		tell = by(s, f.run)
	}
	if tell.ready != nil {
		var end func()
		if ctx, end, err = tell.ready(ctx); err != nil {
			return err
		}
		defer end()
	}
	out, err := a.runOn(ctx, s, body, p, client.SubmitOptions{Run: f.run, Context: bag, Permissions: f.may.permissions()}, tell.tell)
	if err != nil {
		if tell.hosts != nil && tell.hosts() {
			a.tellLeft(s, f.run, err, "what plans went with this command, so the run waits; the same command with --run "+quote(f.run)+" goes on with it")
		} else {
			a.tellLater(s, f.run, err)
		}
		return tell.left(ctx, why(ctx, err))
	}
	tell.over(ctx)
	return a.outcome(out)
}

// waitFor bounds a context by --wait; 0 leaves it unbounded.
func waitFor(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	if wait <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, wait, errWait)
}

// runOn submits a plan and follows it to its end. p is the plan as it was read; nil for one that is invalid. A nil tell
// is what tells of every run.
func (a *app) runOn(ctx context.Context, s *session, body []byte, p *plan.Plan, o client.SubmitOptions, tell reporter) (*outcome.Outcome, error) {
	w, err := s.client.NewWatcher(ctx, o.Run) // before the plan is sent, so that nothing is missed
	if err != nil {
		return nil, err
	}
	defer w.Close()
	r, err := a.submitWith(ctx, s, body, o)
	if err != nil {
		return nil, err
	}
	w.Of(r)
	a.tellIfAttached(r)
	a.tellIfAlone(ctx, s)
	if tell == nil {
		tell = a.report(o.Run, p, func() *plan.Plan { return planNow(ctx, s, o.Run) })
	}
	return a.follow(ctx, w, asked(ctx, a, s, o.Run, tell))
}

func (a *app) tellIfAttached(r *client.Run) {
	if r.Attached() {
		a.say("%s", a.errStyle.dim("the run was there before: "+oneLine(r.ID())))
	}
}

// submit sends a plan, for as long as --timeout lasts where the server doesn't answer.
func (a *app) submit(ctx context.Context, s *session, body []byte, id string) (*client.Run, error) {
	return a.submitWith(ctx, s, body, client.SubmitOptions{Run: id})
}

func (a *app) submitWith(ctx context.Context, s *session, body []byte, o client.SubmitOptions) (*client.Run, error) {
	ctx, cancel := a.patience(ctx)
	defer cancel()
	a.tellIfOpen(ctx, s, o.Context)
	r, err := s.client.Submit(ctx, body, o)
	return r, why(ctx, err)
}

// tellIfAlone says that a run will wait, where no orchestrator answers.
func (a *app) tellIfAlone(ctx context.Context, s *session) (alone bool) {
	if s.local != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := s.client.Ping(ctx); err != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		a.say("%s no orchestrator answers; the plan is stored and runs as soon as there is one", a.errStyle.yellow("warning:"))
		return true
	}
	return false
}

// follow tells of a run until it is over.
func (a *app) follow(ctx context.Context, w *client.Watcher, tell reporter) (*outcome.Outcome, error) {
	defer tell.close()
	var out *outcome.Outcome
	err := w.Follow(ctx, func(e client.Event) {
		if e.Kind == subjects.EventEnd {
			out = e.Outcome
		}
		tell.event(e)
	})
	return out, err
}

// tellLater says how to get at a run that goes on without this command.
func (a *app) tellLater(s *session, run string, err error) {
	a.tellLeft(s, run, err, "the run goes on"+s.whenLocal())
}

// tellLeft says what becomes of a run that is left, and how to get at it.
func (a *app) tellLeft(s *session, run string, err error, what string) {
	if !errors.Is(err, errInterrupt) && !errors.Is(err, errWait) {
		return
	}
	if s.temporary {
		return
	}
	where := s.arguments(a)
	a.say("%s; to see what became of it:\n  stepjet get %s%s", what, quote(run), where)
}

// outcome prints what a run came to and ends the command with the status's exit code.
func (a *app) outcome(out *outcome.Outcome) error {
	if out.Status == outcome.Rejected && !a.json() { // once: the document would say it again
		a.tellRejected(out)
		return quietly(exitInvalid)
	}
	if err := a.printDocument(out.JSON()); err != nil {
		return err
	}
	a.say("%s", a.summary(out))
	return quietly(codeOfRun(out.Status))
}

// tellRejected says what is wrong with a plan, to --quiet too: it is an error.
func (a *app) tellRejected(out *outcome.Outcome) {
	var b strings.Builder
	writeProblems(&b, out.Problems, a.errStyle.red, a.errStyle)
	_, _ = fmt.Fprintf(a.stderr, "%s\n%s\n", strings.TrimSuffix(b.String(), "\n"), a.summary(out))
}

// summary says in one line what a run came to.
func (a *app) summary(out *outcome.Outcome) string {
	st, s := a.errStyle, agents.Counted(out)
	if out.Status == outcome.Rejected {
		return st.red("rejected") + ": " + text.Count(len(out.Problems), "problem") + ", nothing ran"
	}
	parts := []string{fmt.Sprintf("%d of %s succeeded", s.Succeeded, text.Count(s.Steps, "step"))}
	for _, n := range []struct {
		n    int
		what string
	}{{s.Failed, "failed"}, {s.Skipped, "skipped"}, {s.Cancelled, "cancelled"}, {s.NotTaken, "not taken"}} {
		if n.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n.n, n.what)+handledOf(outcome.StepStatus(n.what), n.n, out.Errors))
		}
	}
	if s.ItemsFailed > 0 {
		parts = append(parts, st.yellow(fmt.Sprintf("%d of %s failed", s.ItemsFailed, text.Count(s.Items, "item"))))
	}
	parts = append(parts, tookMS(s.ElapsedMS))
	if s.BytesKeptOut > 0 {
		parts = append(parts, fmt.Sprintf("%s kept out of the context (~%d tokens)", size(s.BytesKeptOut), s.TokensKeptOut))
	}
	return st.run(out.Status, string(out.Status)) + ": " + strings.Join(parts, ", ")
}

// handledOf adds to the number of steps that came to a status how many of them were dealt with, and by which steps.
func handledOf(status outcome.StepStatus, all int, errors []outcome.StepError) string {
	switch by, n := handlers(errors, status); n {
	case 0:
		return ""
	case all:
		return " (handled by " + by + ")"
	default:
		return fmt.Sprintf(" (%d handled by %s)", n, by)
	}
}
