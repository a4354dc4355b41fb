package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/cli/screen"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// asking are the commands about what runs ask people.
type asking struct{ *app }

// commands returns them: what waits, and the two that decide an approval.
func (a asking) commands() []*cobra.Command {
	return []*cobra.Command{a.questionsCommand(), a.approveCommand(), a.rejectCommand()}
}

func (a asking) questionsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "questions",
		Short: "List, show and answer what runs wait for people to say",
		Long: `A run waits for a person where its plan, a step or the contract of a tool asks for an approval, and
where a step calls the tool "ask". Until somebody answers, nothing of the step is sent. Approvals are
given by "stepjet approve" and "stepjet reject".`,
		Example: `  stepjet questions list
  stepjet questions show order-42 pay
  stepjet questions answer order-42 colour '"red"'`,
		Args: knownCommand, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.questionsListCommand(), a.questionsShowCommand(), a.questionsAnswerCommand())
	return c
}

func (a asking) questionsListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list [RUN]",
		Short: "List what the runs of a tenant wait for people to say, or one run",
		Example: `  stepjet questions list
  stepjet questions list order-42 -o json | jq -r '.[] | [.run, .step, .text] | @tsv'`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			s, err := a.open(cmd.Context(), existing)
			if err != nil {
				return err
			}
			defer s.close()
			ctx, cancel := a.patience(cmd.Context())
			defer cancel()
			all, err := s.client.Questions(ctx, strings.Join(args, ""))
			if err != nil {
				return why(ctx, err)
			}
			if a.json() {
				if all == nil {
					all = []*outcome.Question{}
				}
				return a.printJSON(all)
			}
			return a.showQuestions(all)
		}),
	}
}

func (a asking) showQuestions(all []*outcome.Question) error {
	if len(all) == 0 {
		a.say("nothing waits for an answer")
		return nil
	}
	st, t := a.style, table{}
	head := func(s string) cell { return cell{text: s, paint: st.dim} }
	t.add(head("RUN"), head("STEP"), head("KIND"), head("TOOL"), head("SINCE"), head("UNTIL"), head("TEXT"))
	for _, q := range all {
		until := ""
		if q.Until != nil {
			until = clock(*q.Until, a.now())
		}
		t.add(plain(oneLine(q.Run)), plain(oneLine(q.Step)), plain(string(q.Kind)), plain(toolOrRevision(q)),
			plain(clock(q.Since, a.now())), plain(until), plain(clipLine(q.Text)))
	}
	var b bytes.Buffer
	t.write(&b, "", a.width())
	_, err := a.stdout.Write(b.Bytes())
	return err
}

// toolOrRevision says what of a step a question is about: the tool that it calls, an amendment of its plan, or a
// round of the agent.
func toolOrRevision(q *outcome.Question) string {
	switch {
	case q.Revision > 0:
		return fmt.Sprintf("(amendment %d)", q.Revision)
	case q.Round != nil:
		return fmt.Sprintf("%s (round %d)", oneLine(q.Tool), *q.Round)
	}
	return oneLine(q.Tool)
}

func (a asking) questionsShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show RUN [STEP]",
		Short: "Show a question: its text, and the arguments that would be called with",
		Long: `Shows what a person is asked. STEP is a step's id, "id=3" for an item of a for_each, or "=" for the
plan as a whole; it may be left out where only one step of the run waits. The digest names what is
shown: an answer with it counts for nothing else.`,
		Example: `  stepjet questions show order-42 pay
  stepjet questions show order-42 -o json | jq .arguments`,
		Args: runAndStep,
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			s, err := a.open(cmd.Context(), existing)
			if err != nil {
				return err
			}
			defer s.close()
			q, err := a.question(cmd.Context(), s, args)
			if fault.CodeOf(err) == fault.NotFound && len(args) > 1 {
				err = a.notAsked(cmd.Context(), s, args[0], args[1], err)
			}
			if err != nil {
				return err
			}
			if a.json() {
				return a.printJSON(q)
			}
			return a.writeQuestion(q)
		}),
	}
}

// question reads the question of a step or, where none is named, the only one of the run.
func (a asking) question(ctx context.Context, s *session, args []string) (*outcome.Question, error) {
	ctx, cancel := a.patience(ctx)
	defer cancel()
	if len(args) > 1 {
		q, err := s.client.Question(ctx, args[0], args[1])
		return q, why(ctx, err)
	}
	all, err := s.client.Questions(ctx, args[0])
	switch {
	case err != nil:
		return nil, why(ctx, err)
	case len(all) == 0:
		return nil, fault.New(fault.NotFound, "run %q waits for no answer", args[0]).WithHint("stepjet get %s%s shows where it stands", args[0], s.arguments(a.app))
	case len(all) > 1:
		var steps []string
		for _, q := range all {
			steps = append(steps, q.Step)
		}
		return nil, usage(fmt.Errorf("several steps of %s wait, name one: %s", args[0], oneLine(strings.Join(steps, " "))))
	}
	q, err := s.client.Question(ctx, args[0], all[0].Step)
	return q, why(ctx, err)
}

// notAsked says why nobody is asked about a step: what was decided and by whom, or how it ended without; otherwise that
// which the look for its question came to.
func (a asking) notAsked(ctx context.Context, s *session, run, step string, otherwise error) error {
	ctx, cancel := a.patience(ctx)
	defer cancel()
	doc, err := s.client.Get(ctx, run)
	if err != nil {
		return otherwise
	}
	answer, status, what := doc.Approval, outcome.StepStatus(""), "the plan"
	if step != subjects.RootScope {
		at := findStep(doc, step)
		if at == nil {
			return otherwise
		}
		answer, status, what = at.Answer, at.Status, "the step "+step
		if n := len(at.Answers); n > 0 { // its tool asked since
			answer = at.Answers[n-1]
		}
	}
	switch x := lastAsked(doc, step); {
	case x != nil && !x.Waits:
		return fault.New(fault.AlreadyFinished, "%s", amendmentLine(x)).
			WithHint("that stands; see what came of it: stepjet get %s%s", run, s.arguments(a.app))
	case answer != nil && x == nil:
		return fault.New(fault.AlreadyFinished, "%s was %s", what, answeredLine(answer)).
			WithHint("that stands; see what came of it: stepjet get %s%s", run, s.arguments(a.app))
	case status.Terminal():
		return fault.New(fault.AlreadyFinished, "%s is %s, and waits for no answer", what, status).
			WithHint("see how it ended: stepjet get %s --step %s%s", run, step, s.arguments(a.app))
	}
	return otherwise
}

func (a asking) writeQuestion(q *outcome.Question) error {
	var b bytes.Buffer
	st := a.style
	step := q.Step
	if step == subjects.RootScope {
		step = "the plan"
	}
	what := oneLine(q.Tool)
	switch {
	case q.Revision > 0:
		what = fmt.Sprintf("amendment %d", q.Revision)
	case q.Round != nil:
		what = fmt.Sprintf("%s, round %d", what, *q.Round)
	}
	fmt.Fprintf(&b, "%s  %s  %s\n\n", st.bold(oneLine(q.Run)), st.bold(oneLine(step)), st.dim(what))
	if q.Text != "" {
		fmt.Fprintf(&b, "%s\n\n", oneLine(q.Text))
	}
	var t table
	line := func(name, text string) {
		if text != "" {
			t.add(cell{text: name, paint: st.dim}, plain(oneLine(text)))
		}
	}
	line("waits for", map[outcome.QuestionKind]string{outcome.Approval: "an approval", outcome.Ask: "an answer"}[q.Kind])
	if q.Items > 0 {
		line("items", fmt.Sprint(q.Items))
	}
	if q.By != "" {
		line("asked for by", q.By+map[bool]string{false: " (unverified)"}[q.Verified])
	}
	line("because", q.Reason)
	line("since", clock(q.Since, a.now()))
	if q.Until != nil {
		line("until", clock(*q.Until, a.now()))
		line("then", q.OnTimeout)
	}
	line("digest", q.Digest)
	where := asTyped(argumentsOf(a.app))
	if q.Step == subjects.RootScope {
		line("its steps", "stepjet get "+q.Run+where+", stepjet graph "+q.Run+where)
	}
	line("to answer", answerCommand(q, where))
	t.write(&b, "", 0)
	writePart(&b, st, "schema", q.Schema)
	writePart(&b, st, "choices", q.Choices)
	if q.Kind == outcome.Approval {
		writePart(&b, st, "change", q.Change)
		writePart(&b, st, "what would run", q.Plan)
		writePart(&b, st, "arguments", q.Arguments)
	}
	_, err := a.stdout.Write(b.Bytes())
	return err
}

// answerFlags are those of all commands that answer a question.
type answerFlags struct {
	digest, reason, by string

	kind outcome.QuestionKind // of what the command answers
	user func() string        // who runs the command
}

func (f *answerFlags) add(a *app, c *cobra.Command) {
	c.Flags().StringVar(&f.reason, "reason", "", "`text` for who reads what became of the run")
	c.Flags().StringVar(&f.digest, "digest", "", "`digest` of the question that was looked at; default: that of the question as it stands, where nothing else was asked under its step before")
	c.Flags().StringVar(&f.by, "by", "", "`name` of who answers, for the record (default: the user's name); the server's word takes its place where there is one")
	f.user = func() string { return userName(a.env.Getenv) }
}

func (f *answerFlags) answer() client.Answer {
	return client.Answer{Reason: f.reason, By: cmp.Or(f.by, f.user())}
}

func (a asking) questionsAnswerCommand() *cobra.Command {
	f := answerFlags{kind: outcome.Ask}
	c := &cobra.Command{
		Use:   "answer RUN STEP VALUE",
		Short: "Answer what a step asks by the tool \"ask\"",
		Long: `VALUE is JSON and becomes the result of the step; what is no JSON is taken for a text. It has to fit
the schema and the choices of the question.`,
		Example: `  stepjet questions answer order-42 colour red
  stepjet questions answer order-42 address '{"city": "Bonn"}'`,
		Args: exactly("RUN", "STEP", "VALUE"),
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			return a.answer(cmd.Context(), args[:2], &f, func(ctx context.Context, s *session, q *outcome.Question) (*client.Answered, error) {
				if q.Kind == outcome.Approval {
					return nil, usage(fmt.Errorf("the step %s waits for an approval: stepjet approve", q.Step))
				}
				return s.client.Answer(ctx, q, screen.Value(args[2]), f.answer())
			})
		}),
	}
	f.add(a.app, c)
	return c
}

func (a asking) approveCommand() *cobra.Command {
	f := answerFlags{kind: outcome.Approval}
	var arguments, value, whole string
	c := &cobra.Command{
		Use:   "approve RUN [STEP]",
		Short: "Approve what a run waits for: a step, the plan, an amendment of it, an agent's round",
		Long: `Lets a step begin that waits for an approval. STEP is "=" for the plan as a whole, and may be left
out where only one step of the run waits. Look first: stepjet questions show RUN STEP. What is asked
about a plan that was approved before is an amendment of it: it is in force from then on. What is asked
about the step of an agent is a round of it, where its definition says "approval": "plan".

--arguments calls the tool with other arguments than those that are shown; they have to fit its
input schema. --value does not call it at all: the value becomes the result of the step. --plan approves
of a plan as it should be: what differs from the one that waits is added and discarded before it begins.`,
		Example: `  stepjet approve order-42 pay
  stepjet approve order-42 pay --arguments '{"amount": 40}' --reason "the rest is a credit note"
  stepjet approve order-42 pay --value '{"paid": true}'`,
		Args: runAndStep,
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			if arguments != "" && value != "" {
				return usage(fmt.Errorf("--arguments or --value: the tool is called, or it is not"))
			}
			return a.answer(cmd.Context(), args, &f, func(ctx context.Context, s *session, q *outcome.Question) (*client.Answered, error) {
				if q.Kind == outcome.Ask {
					return nil, usage(fmt.Errorf("the step %s asks for a value: stepjet questions answer", q.Step))
				}
				x := f.answer()
				if whole != "" {
					return a.approveEdited(ctx, s, q, whole, x)
				}
				if value != "" {
					return s.client.Answer(ctx, q, json.RawMessage(value), x)
				}
				if arguments != "" {
					if !json.Valid([]byte(arguments)) {
						return nil, usage(fmt.Errorf("--arguments is no JSON"))
					}
					x.Arguments = json.RawMessage(arguments)
				}
				return s.client.Approve(ctx, q, x)
			})
		}),
	}
	f.add(a.app, c)
	c.Flags().StringVar(&arguments, "arguments", "", "`JSON` object that takes the place of the arguments shown")
	c.Flags().StringVar(&value, "value", "", "`JSON` that takes the place of what the tool would return")
	c.Flags().StringVar(&whole, "plan", "", "`file` with the whole plan as it should be, of a plan that waits; - is standard input")
	return c
}

// approveEdited approves of a plan with edits: by an amendment that answers its question.
func (a asking) approveEdited(ctx context.Context, s *session, q *outcome.Question, file string, x client.Answer) (*client.Answered, error) {
	if q.Step != subjects.RootScope || q.Revision > 0 {
		return nil, usage(fmt.Errorf("--plan is for a plan that waits as a whole, and %s is none", q.Step))
	}
	plan, err := a.readFile(file, wire.MaxAmendment)
	if err != nil {
		return nil, err
	}
	var amended *client.Amended
	edits := client.Amendment{Plan: plan, Approved: true, Approves: q.Digest, By: x.By, Reason: x.Reason}
	for {
		amended, err = s.client.Amend(ctx, q.Run, edits)
		if now, tells := revisionNow(err); !tells || now <= edits.Revision {
			break
		}
		edits.Revision++ // what was asked for before does nothing, or is the same
	}
	if err != nil {
		return nil, allProblems(err)
	}
	doc, err := s.client.Get(ctx, q.Run)
	if err != nil {
		return nil, err
	}
	return &client.Answered{Answered: *doc.Approval, Already: amended.Already}, nil
}

func (a asking) rejectCommand() *cobra.Command {
	f := answerFlags{kind: outcome.Approval}
	c := &cobra.Command{
		Use:   "reject RUN [STEP]",
		Short: "Reject what a run waits for: the step fails, or the run is cancelled",
		Long: `Fails a step that waits for an approval, or for an answer, with the code "rejected" and the reason.
Rejecting the plan as a whole ("=") cancels the run before its first step. Rejecting an amendment of a
plan leaves the plan as it is.`,
		Example: `  stepjet reject order-42 pay --reason "over the budget"
  stepjet reject order-42 =`,
		Args: runAndStep,
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			return a.answer(cmd.Context(), args, &f, func(ctx context.Context, s *session, q *outcome.Question) (*client.Answered, error) {
				return s.client.Reject(ctx, q, f.answer())
			})
		}),
	}
	f.add(a.app, c)
	return c
}

// answer reads a question, gives an answer to it, and says what stands.
func (a asking) answer(
	ctx context.Context, args []string, f *answerFlags,
	give func(context.Context, *session, *outcome.Question) (*client.Answered, error),
) error {
	s, err := a.open(ctx, existing)
	if err != nil {
		return err
	}
	defer s.close()
	q, err := a.question(ctx, s, args)
	switch {
	case fault.CodeOf(err) == fault.NotFound && len(args) > 1: // what stands is told
		q = &outcome.Question{Run: args[0], Step: args[1], Kind: f.kind, Digest: f.digest}
	case err != nil:
		return err
	case f.digest == "" && followsAnother(q):
		return usage(fmt.Errorf("%s of %s was asked about before, and another question waits now: say by --digest which one is answered "+
			"(stepjet questions show %s %s%s shows it, and the command)", oneLine(q.Step), oneLine(q.Run), oneLine(q.Run), oneLine(q.Step), s.arguments(a.app)))
	case f.digest != "" && f.digest != q.Digest: // of something else that was asked under the same step, or nothing
		q.Digest, q.Revision = f.digest, 0
	}
	one, cancel := a.patience(ctx)
	defer cancel()
	stands, err := give(one, s, q)
	if err != nil {
		return why(one, err)
	}
	if a.json() {
		return a.printJSON(struct {
			Run  string `json:"run"`
			Step string `json:"step"`
			*outcome.Answered
			Already bool `json:"already,omitempty"`
		}{q.Run, q.Step, &stands.Answered, stands.Already})
	}
	_, err = fmt.Fprintf(a.stdout, "%s  %s  %s\n", oneLine(q.Run), oneLine(q.Step), a.style.bold(standsLine(stands)))
	return err
}

func runAndStep(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return usage(fmt.Errorf("missing RUN"))
	case 1, 2:
		return nil
	}
	return usage(fmt.Errorf("too many arguments: RUN and STEP"))
}

// askedThere tells of a run what another reporter does, and asks at the terminal what the run asks of people.
type askedThere struct {
	reporter
	asker *screen.Asker
}

// asked adds to a reporter that a person at the terminal is asked; where nobody sits there, it is the reporter alone.
func asked(ctx context.Context, a *app, s *session, run string, tell reporter) reporter {
	in, ok := a.env.Stdin.(*os.File)
	if !ok || a.screen == nil || a.flags.quiet || !screen.CanAsk(in) {
		return tell
	}
	return askedThere{tell, screen.Ask(ctx, screen.Asked{
		Screen: a.screen, In: in, Board: s.client, Run: run, By: userName(a.env.Getenv), Patience: a.patience, Stands: standsLine,
		Instead: func(ctx context.Context, run, step string) string {
			answered := fault.New(fault.NotFound, "the step %s waits for no answer any more", step)
			return fault.As(asking{a}.notAsked(ctx, s, run, step, answered)).Message
		},
		Command: func(q *outcome.Question) string { return answerCommand(q, s.arguments(a)) },
		Bold:    a.errStyle.bold, Dim: a.errStyle.dim,
	})}
}

func (t askedThere) event(e client.Event) {
	if _, drawn := t.reporter.(*live); drawn || e.Kind != subjects.EventQuestion { // it is asked, so no line has to tell of it
		t.reporter.event(e)
	}
	t.asker.Event(e)
}

func (t askedThere) close() {
	t.asker.Close()
	t.reporter.close()
}
