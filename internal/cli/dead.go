package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

func (a *app) deadCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "dead",
		Short: "List, show and retry steps that used up their attempts",
		Long: `A step that was executed, failed and used up its attempts leaves a dead letter: what was called,
with which arguments, and the last error. Letters are kept as long as finished runs are.`,
		Example: `  stepjet dead list --tool get_weather
  stepjet dead show order-42 charge
  stepjet dead retry order-42 charge`,
		Args: knownCommand, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.deadListCommand(), a.deadShowCommand(), a.deadRetryCommand(), a.deadRemoveCommand())
	return c
}

func (a *app) deadListCommand() *cobra.Command {
	var o client.DeadOptions
	c := &cobra.Command{
		Use:   "list",
		Short: "List the dead letters of a tenant, newest first",
		Example: `  stepjet dead list
  stepjet dead list --tool get_weather --limit 20
  stepjet dead list -o json | jq -r '.[] | [.run, .step, .error.code] | @tsv'`,
		Args: exactly(),
		RunE: a.work(func(cmd *cobra.Command, _ []string) error {
			s, letters, err := a.deadLetters(cmd.Context(), existing, o)
			if err != nil {
				return err
			}
			s.close()
			if a.json() {
				if letters == nil {
					letters = []*outcome.DeadLetter{}
				}
				return a.printJSON(letters)
			}
			return a.showDead(letters)
		}),
	}
	deadFilter(c, &o)
	c.Flags().IntVarP(&o.Limit, "limit", "n", 100, "list this `number` of letters at most; 0: all")
	return c
}

// deadFilter declares the flags that say which letters are meant.
func deadFilter(c *cobra.Command, o *client.DeadOptions) {
	c.Flags().StringVar(&o.Tool, "tool", "", "only letters of this `tool`")
	c.Flags().StringVar(&o.Run, "run", "", "only letters of the run of this `id`")
}

// deadLetters opens a session and lists letters.
func (a *app) deadLetters(ctx context.Context, where place, o client.DeadOptions) (*session, []*outcome.DeadLetter, error) {
	if o.Limit <= 0 {
		o.Limit = -1
	}
	s, err := a.open(ctx, where)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := a.patience(ctx)
	defer cancel()
	letters, err := s.client.DeadLetters(ctx, o)
	if err != nil {
		s.close()
		return nil, nil, why(ctx, err)
	}
	return s, letters, nil
}

func (a *app) showDead(letters []*outcome.DeadLetter) error {
	if len(letters) == 0 {
		a.say("no dead letters")
		return nil
	}
	st, t := a.style, table{}
	head := func(s string) cell { return cell{text: s, paint: st.dim} }
	t.add(head("RUN"), head("STEP"), head("TOOL"), cell{text: "TRIES", paint: st.dim, right: true}, head("FAILED"), head("ERROR"))
	for _, d := range letters {
		t.add(plain(oneLine(d.Run)), plain(oneLine(d.Step)), plain(oneLine(d.Tool)), cell{text: fmt.Sprint(d.Attempts), right: true},
			plain(clock(d.Failed, a.now())), cell{text: oneLine(string(d.Error.Code) + ": " + d.Error.Message), paint: st.red})
	}
	var b bytes.Buffer
	t.write(&b, "", a.width())
	_, err := a.stdout.Write(b.Bytes())
	return err
}

func (a *app) deadShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show RUN STEP",
		Short: "Show a dead letter: its error, and the arguments of the call",
		Long: `Shows what was called, why it failed, and the exact arguments. STEP is a step's id, or "id=3" for
an item of a for_each. -o json prints the letter as it is kept.`,
		Example: `  stepjet dead show order-42 charge
  stepjet dead show order-42 charge -o json | jq .arguments`,
		Args: exactly("RUN", "STEP"),
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			s, err := a.open(cmd.Context(), existing)
			if err != nil {
				return err
			}
			defer s.close()
			d, err := a.deadLetter(cmd.Context(), s, args[0], args[1])
			if err != nil {
				return err
			}
			if a.json() {
				return a.printDocument(d.JSON())
			}
			return a.writeDead(d)
		}),
	}
}

func (a *app) deadLetter(ctx context.Context, s *session, run, step string) (*outcome.DeadLetter, error) {
	ctx, cancel := a.patience(ctx)
	defer cancel()
	d, err := s.client.DeadLetter(ctx, run, step)
	var f *fault.Error
	if errors.As(err, &f) && f.Code == fault.NotFound && f.Hint == "" {
		shown := *f
		return nil, shown.WithHint("stepjet dead list shows those there are; a letter is removed once its retry succeeded")
	}
	return d, why(ctx, err)
}

func (a *app) writeDead(d *outcome.DeadLetter) error {
	var b bytes.Buffer
	st := a.style
	fmt.Fprintf(&b, "%s  %s  %s\n\n", st.bold(oneLine(d.Run)), st.bold(oneLine(d.Step)), st.dim(oneLine(d.Tool)))
	fmt.Fprintf(&b, "%s %s\n", st.red(string(d.Error.Code)+":"), oneLine(d.Error.Message))
	if d.Error.Hint != "" {
		fmt.Fprintf(&b, "  %s %s\n", st.dim("hint:"), oneLine(d.Error.Hint))
	}
	b.WriteByte('\n')
	var t table
	line := func(name, text string) {
		if text != "" {
			t.add(cell{text: name, paint: st.dim}, plain(oneLine(text)))
		}
	}
	line("tenant", d.Tenant)
	line("attempts", fmt.Sprint(d.Attempts))
	line("failed", clock(d.Failed, a.now()))
	line("worker", d.Worker)
	line("key", d.Key)
	if len(d.Arguments) == 0 {
		line("arguments", "no longer kept")
	}
	t.write(&b, "", 0)
	writePart(&b, st, "details", d.Error.Details)
	writePart(&b, st, "arguments", d.Arguments)
	_, err := a.stdout.Write(b.Bytes())
	return err
}

func (a *app) deadRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "remove RUN STEP…",
		Short:   "Remove dead letters for good",
		Example: "  stepjet dead remove order-42 charge",
		Args:    runAndSteps,
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			s, err := a.open(cmd.Context(), existing)
			if err != nil {
				return err
			}
			defer s.close()
			for _, step := range args[1:] {
				if err := a.removeDead(cmd.Context(), s, args[0], step); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}

func (a *app) removeDead(ctx context.Context, s *session, run, step string) error {
	d, err := a.deadLetter(ctx, s, run, step)
	if err != nil {
		return err
	}
	ctx, cancel := a.patience(ctx)
	defer cancel()
	if err := s.client.RemoveDead(ctx, d); err != nil {
		return why(ctx, err)
	}
	if a.json() {
		return a.printJSON(struct {
			Run     string `json:"run"`
			Step    string `json:"step"`
			Removed bool   `json:"removed"`
		}{d.Run, d.Step, true})
	}
	_, err = fmt.Fprintf(a.stdout, "%s  %s  removed\n", oneLine(d.Run), oneLine(d.Step))
	return err
}

func runAndSteps(_ *cobra.Command, args []string) error {
	if len(args) < 2 {
		return usage(errors.New("missing " + []string{"RUN", "STEP"}[len(args)]))
	}
	return nil
}
