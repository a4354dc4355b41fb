package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// amendFlags are those of "amend".
type amendFlags struct {
	change            client.Amendment
	add, plan, output string
	revision          int
	named             bool // a revision was; else the plan is amended as it is now, whatever it was when somebody looked
}

func amendCommand(a *app) *cobra.Command {
	var f amendFlags
	c := &cobra.Command{
		Use:   "amend RUN",
		Short: "Change the plan of a run while it goes on: add steps, discard steps",
		Long: `Adds steps to the plan of a run that goes on, and takes steps out of it. What waits and is discarded
is gone; what is out is cancelled; what is over keeps its account. A step that waits may be discarded
and added at once, which writes it again. An id is used once.

A plan with "open": true waits for amendments once its steps are over, until --close.

--plan says what the whole plan should be: what differs is added and discarded, and nothing that is
there already runs twice. --revision refuses the change where the plan was amended since; without it
the plan is amended as it is now.

Where the plan was submitted for an approval, so is each change: it waits until somebody approves of it
(stepjet questions show RUN =), and meanwhile the run goes on as it was. --approved is for those who may
approve themselves. A change that was refused may be asked for again.`,
		Example: `  stepjet amend dog-day --add steps.json
  stepjet amend dog-day --discard walk,feed --add indoors.json --reason "it rains"
  stepjet amend dog-day --rest --close
  stepjet amend dog-day --plan plan.json --revision 2`,
		Args: exactly("RUN"),
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			if f.named = cmd.Flags().Changed("revision"); f.revision < 0 {
				return usage(fmt.Errorf("--revision %d is none: 0 is the plan as it was submitted", f.revision))
			}
			if err := f.read(a); err != nil {
				return err
			}
			f.change.By = cmp.Or(f.change.By, userName(a.env.Getenv))
			s, err := a.open(cmd.Context(), existing)
			if err != nil {
				return err
			}
			defer s.close()
			ctx, cancel := a.patience(cmd.Context())
			defer cancel()
			x, err := f.amend(ctx, func(ctx context.Context, c client.Amendment) (*client.Amended, error) {
				return s.client.Amend(ctx, args[0], c)
			})
			if err != nil {
				return why(ctx, allProblems(err))
			}
			return showAmended(a, args[0], &f.change, x)
		}),
	}
	f.flags(c)
	// --output is what the plan returns here, so what is printed goes by another name, and by the letter that it has everywhere.
	c.Flags().StringVarP(&a.flags.output, "format", "o", "text", "print `text|json` on standard output")
	return c
}

// flags adds them to the command.
func (f *amendFlags) flags(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVar(&f.add, "add", "", "`file` with the steps to add: one, a list of them, or a plan; - is standard input")
	fs.StringSliceVar(&f.change.Discard, "discard", nil, "`ids` of steps to discard")
	fs.BoolVar(&f.change.Rest, "rest", false, "discard all steps that are not over")
	fs.StringVar(&f.output, "output", "", "`JSON` value, with references, that the plan returns from now on")
	fs.StringSliceVar(&f.change.OutputSteps, "output-steps", nil, "`ids` of the steps whose results the plan returns from now on")
	fs.BoolVar(&f.change.Close, "close", false, "an open plan is over with its steps")
	fs.BoolVar(&f.change.KeepOpen, "keep-open", false, "an open plan waits for the next amendment anew, and nothing is changed")
	fs.StringVar(&f.plan, "plan", "", "`file` with the whole plan as it should be")
	fs.StringVar(&f.change.Scope, "scope", "", "`step` whose plan is meant (default: the plan of the run)")
	fs.BoolVar(&f.change.Approved, "approved", false, "ask nobody, where the plan was submitted for an approval: for those who may approve")
	fs.IntVar(&f.revision, "revision", 0, "`number` of the last amendment that was seen; 0 for the plan as it was submitted (default: the last one now)")
	fs.StringVar(&f.change.Reason, "reason", "", "`text` for who reads what became of the run")
	fs.StringVar(&f.change.By, "by", "", "`name` of who amends, for the record (default: the user's name); the server's word takes its place where there is one")
}

// read reads the files that the flags name.
func (f *amendFlags) read(a *app) error {
	if f.output != "" {
		f.change.Output = json.RawMessage(f.output)
	}
	if f.plan != "" {
		body, err := a.readFile(f.plan, wire.MaxAmendment)
		if err != nil {
			return err
		}
		f.change.Plan = body
	}
	if f.add != "" {
		body, err := a.readFile(f.add, wire.MaxAmendment)
		if err != nil {
			return err
		}
		if f.change.Add, err = stepsIn(body, f.add); err != nil {
			return err
		}
	}
	return nil
}

// stepsIn reads one step, a list of them, or those of a plan.
func stepsIn(body []byte, name string) (steps []json.RawMessage, err error) {
	if json.Unmarshal(body, &steps) == nil {
		return steps, nil
	}
	var p struct {
		Steps []json.RawMessage `json:"steps"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fault.New(fault.MalformedJSON, "%s: %v", text.Clip(name, 256), err).WithHint(`write a step, or a list of them: [{"id": "a", "tool": "…"}]`)
	}
	if p.Steps != nil {
		return p.Steps, nil
	}
	return []json.RawMessage{body}, nil
}

// noRevision is one that no plan comes to: who amends it is told which is the last.
const noRevision = 1 << 30

// amends asks for an amendment of a run, as client.Amend.
type amends func(context.Context, client.Amendment) (*client.Amended, error)

// amend makes the amendment; where no revision was named, to the plan as it is now. The same change is asked for once as
// long as it is the last, and in force or waiting; one that does nothing, because a person refused it, say, may be asked
// for again.
//
// Who amends meanwhile may ask for the same. So no revision is passed over from the last that is known on: each that was
// taken was taken by another change, else it is the answer. That ends, since a plan has not many revisions.
func (f *amendFlags) amend(ctx context.Context, ask amends) (*client.Amended, error) {
	if f.named {
		f.change.Revision = f.revision
		return ask(ctx, f.change)
	}
	x, err := ask(ctx, client.Amendment{Scope: f.change.Scope, Revision: noRevision, Close: true, Approved: f.change.Approved})
	last, tells := revisionNow(err)
	if !tells {
		return x, err
	}
	for revision := max(last-1, 0); ; revision++ { // the one before, since the last may be the same
		f.change.Revision = revision
		x, err = ask(ctx, f.change)
		now, tells := revisionNow(err)
		if !tells || now <= revision || revision >= last && fault.CodeOf(err) != fault.Conflict {
			return x, err
		}
	}
}

// revisionNow returns the number of the last amendment that an error tells of.
func revisionNow(err error) (int, bool) {
	var now wire.AmendConflict
	code := fault.CodeOf(err)
	tells := code == fault.Conflict || code == fault.Rejected || code == fault.Overtaken
	if !tells || json.Unmarshal(fault.As(err).Details, &now) != nil {
		return 0, false
	}
	return now.Revision, true
}

// allProblems is the error of an amendment with all of its problems, not the first alone.
func allProblems(err error) error {
	f := fault.As(err)
	var list wire.AmendProblems
	if json.Unmarshal(f.Details, &list) != nil || len(list.Problems) < 2 {
		return err
	}
	all := *f
	for _, p := range list.Problems[1:] {
		all.Message += fmt.Sprintf("\n%s %s: %s", p.Code, p.Path, p.Message)
		if p.Hint != "" {
			all.Message += " (" + p.Hint + ")"
		}
	}
	return &all
}

// amendWarning is a warning of an amendment in one line.
func amendWarning(w fault.Problem) string {
	shown := w.Path + ": " + w.Message
	if w.Step != "" {
		shown = w.Step + ", " + shown
	}
	if w.Hint != "" {
		shown += "; " + w.Hint
	}
	return shown
}

func showAmended(a *app, run string, c *client.Amendment, x *client.Amended) error {
	scope := cmp.Or(c.Scope, subjects.RootScope)
	if a.json() {
		return a.printJSON(wire.AmendReply{
			Run: run, Scope: scope, Revision: x.Revision, Steps: x.Steps, Already: x.Already, Waits: x.Waits, Warnings: x.Warnings,
		})
	}
	for _, w := range x.Warnings {
		a.say("%s %s", a.errStyle.yellow("warning"), oneLine(amendWarning(w)))
	}
	if x.Waits {
		_, err := fmt.Fprintf(a.stdout, "%s  %s  %s waits for an approval: stepjet questions show %s %s%s\n", oneLine(run), oneLine(scope),
			a.style.bold(fmt.Sprintf("revision %d", x.Revision)), oneLine(run), oneLine(scope), asTyped(argumentsOf(a)))
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "%s  %s  %s, %s\n", oneLine(run), oneLine(scope), a.style.bold(fmt.Sprintf("revision %d", x.Revision)), text.Count(x.Steps, "step"))
	return err
}
