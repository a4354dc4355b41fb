package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/agents"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// agentsCommand is about tools that are agents.
func agentsCommand(a *app) *cobra.Command {
	t := agents.Terminal{
		Work: a.work, Tools: a.registered, Apply: a.apply, Read: a.readFile, Say: a.say, JSON: a.json, Document: a.printJSON,
		Show: func(x *tool.Registered) error { return a.showTool(x, nil, nil) },
		Text: a.texts(a.stdout), Width: func() int { return cmp.Or(a.width(), 80) },
		Speak: func(ctx context.Context, run string, w client.Word) (h *client.Heard, err error) {
			s, err := a.open(ctx, existing)
			if err != nil {
				return nil, err
			}
			defer s.close()
			ctx, cancel := a.patience(ctx)
			defer cancel()
			if h, err = client.Say(ctx, s.client, run, w); err != nil {
				return nil, why(ctx, err)
			}
			return h, nil
		},
	}
	t.Run = func(body func([]string) ([]byte, error)) *cobra.Command {
		var f runFlags
		p := planner{app: a}
		c := &cobra.Command{RunE: a.work(func(cmd *cobra.Command, args []string) error {
			plan, err := body(args)
			if err == nil {
				err = p.read()
			}
			if err != nil {
				return err
			}
			p.agent, p.again = args[0], f.run != ""
			return a.runBody(cmd.Context(), plan, f, func(s *session, run string) following {
				return following{
					ready: func(ctx context.Context) (context.Context, func(), error) { return p.ready(ctx, s) },
					tell:  a.rounds(cmd.Context(), s, run), over: a.roundsOver(s, run), left: leaving{a, s, run}.left, hosts: func() bool { return p.hosts },
				}
			})
		})}
		p.models.add(c.Flags(), "what plans")
		c.Flags().StringArrayVar(&p.files, "apply", nil, "first register the agents of a `file`, as \"agents apply\" does; may be given several times")
		c.Flags().StringVar(&f.run, "run", "", "run `id`, the idempotency key; default: a new one")
		c.Flags().StringVar(&f.tools, "tools", "", "tools `file` for the toolworker here (env STEPJET_TOOLS; default: the built-in tools)")
		c.Flags().DurationVar(&f.wait, "wait", 0, "wait for this `duration` at most; default: until the outcome is there")
		f.with.add(c.Flags())
		f.may.add(c.Flags())
		return c
	}
	return agents.Command(t)
}

// rounds tells of the rounds of an agent's run.
func (a *app) rounds(ctx context.Context, s *session, run string) reporter {
	switch {
	case a.flags.quiet:
		return silent{}
	case a.screen != nil && a.screen.Redraws():
		v := agents.NewView(run, agents.Step, time.Now())
		return newLive(a.screen, a.errStyle, &roundView{View: v, ctx: ctx, s: s, run: run, spent: map[outcome.Handle]json.RawMessage{}})
	}
	return &roundLines{lines: lines{w: a.stderr, st: a.errStyle, where: s.arguments(a)}}
}

// roundView draws the rounds of an agent's run, and reads the run's document for what no event tells.
type roundView struct {
	*agents.View
	ctx   context.Context // of the command
	s     *session
	run   string
	spent map[outcome.Handle]json.RawMessage // results that were read; of the goroutine that reads
}

func (v *roundView) apply(e client.Event, now time.Time) (stale bool) { return v.Apply(e, now) }

func (v *roundView) read() func(time.Time) bool {
	ctx, cancel := context.WithTimeout(v.ctx, time.Second)
	defer cancel()
	doc, err := v.s.client.Get(ctx, v.run)
	if err != nil {
		return func(time.Time) bool { return v.ctx.Err() == nil }
	}
	// What lies in blobs is read here, where nothing is locked.
	agents.RoundsOf(agents.At(doc, agents.Step), func(h *outcome.Handle) (json.RawMessage, error) {
		if _, known := v.spent[*h]; !known {
			if raw, err := v.s.client.Blob(ctx, h); err == nil {
				v.spent[*h] = raw
			}
		}
		return nil, nil
	})
	return func(now time.Time) bool {
		return v.Merge(doc, func(h *outcome.Handle) (json.RawMessage, error) { return v.spent[*h], nil }, now)
	}
}

func (v *roundView) lines(st style, _, rows int, now time.Time) []string {
	look := agents.Look{Bold: st.bold, Dim: st.dim, Status: st.step, Mark: mark, Words: inWords, Took: took}
	return v.Lines(look, rows, now)
}

// roundsOver returns what tells, once an agent's run is over, what its rounds came to.
func (a *app) roundsOver(s *session, run string) func(context.Context) {
	if a.flags.quiet {
		return func(context.Context) {}
	}
	return func(ctx context.Context) {
		ctx, cancel := a.patience(ctx)
		defer cancel()
		doc, err := s.client.Get(ctx, run)
		if err != nil {
			a.say("what its rounds came to can't be seen: %s", oneLine(fault.As(why(ctx, err)).Message))
			return
		}
		a.tellRounds(doc, func(h *outcome.Handle) (json.RawMessage, error) { return s.client.Blob(ctx, h) })
	}
}

// tellRounds tells what the rounds of an agent's run came to. blob returns a result that lies elsewhere.
func (a *app) tellRounds(doc *outcome.Run, blob func(*outcome.Handle) (json.RawMessage, error)) {
	of := agents.At(doc, agents.Step)
	all := agents.RoundsOf(of, blob)
	if len(all) == 0 {
		return
	}
	a.texts(a.stderr)(agents.Table(all))
	a.say("%s", agents.Whole(of, all, blob))
	a.sayMessages(doc)
	a.sayList("what was wrong with the last answer", linesOf(of, agents.LastProblems(of)), doc.Run)
	a.sayList("what the last round came to", linesOf(of, agents.LastResults(of)), doc.Run)
	a.sayList("what people said", linesOf(of, agents.Said(of)), doc.Run)
	a.sayList("of the agents below", agents.Others(doc), doc.Run)
}

// linesOf are lines about the agent of "agents run".
func linesOf(of *outcome.Step, texts []string) (lines []agents.Line) {
	for _, x := range texts {
		lines = append(lines, agents.Line{Agent: of.ID, Text: x})
	}
	return lines
}

// sayList says lines about agents below a heading, where there are any: as many as are read. What is told of an agent other than the one
// that was called has its name before it.
func (a *app) sayList(heading string, all []agents.Line, run string) {
	if len(all) > 0 {
		a.say("%s", a.errStyle.bold(heading))
	}
	for _, line := range all[:min(len(all), agents.MostTold)] {
		if line.Agent != agents.Step {
			line.Text = line.Agent + ": " + line.Text
		}
		a.say("  %s", oneLine(line.Text))
	}
	if more := len(all) - agents.MostTold; more > 0 {
		a.say("  and %d more: stepjet get %s --step %s%s", more, quote(run), quote(all[agents.MostTold].Agent), asTyped(argumentsOf(a)))
	}
}

// sayMessages says what the agents of a run have told people, below each other, whole as far as the document has it.
func (a *app) sayMessages(doc *outcome.Run) {
	for k, x := range agents.Messages(doc) {
		if k == 0 {
			a.say("%s", a.errStyle.bold("told people"))
		}
		if x.LeftOut > 0 {
			a.say("  %s", a.errStyle.dim("… "+text.Count(x.LeftOut, "message")+" before"))
		}
		who := fmt.Sprintf("round %d", x.Round)
		if x.Agent != agents.Step {
			who = oneLine(x.Agent) + ", " + who
		}
		a.say("  %s", a.errStyle.dim(who))
		for _, line := range agents.Paragraphs(x.Message) {
			a.say("    %s", line)
		}
	}
}

// roundLines writes a line for each step of an agent's rounds, under the number of its round.
type roundLines struct {
	lines
	told agents.Told
}

func (l *roundLines) event(e client.Event) {
	if e.Kind != subjects.EventStep {
		l.lines.event(e)
		return
	}
	l.note(e)
	if !e.Status.Terminal() && e.RetryAt.IsZero() {
		return
	}
	heading, name, known := l.told.Name(agents.Step, e.Step, e.Status)
	if !known {
		return
	}
	if e.Step = name; heading != "" {
		_, _ = fmt.Fprintln(l.w, l.st.bold(heading))
	}
	_, _ = fmt.Fprintln(l.w, "  "+l.step(e))
}

// leaving is a run that is left by an interrupt.
type leaving struct {
	*app
	s   *session
	run string
}

// againWithin is how long an interrupt at a terminal may be followed by another one, which cancels the run.
const againWithin = 3 * time.Second

// left cancels the run where a person at a terminal interrupts the command once more; otherwise the run goes on.
func (l leaving) left(ctx context.Context, err error) error {
	if !errors.Is(err, errInterrupt) || !l.terminal || l.env.Again == nil {
		return err
	}
	l.say("to follow it again: stepjet watch %s%s; to cancel it, press Ctrl-C again within %s", quote(l.run), l.s.arguments(l.app), againWithin)
	select {
	case <-l.env.Again:
	case <-time.After(againWithin):
		return err
	}
	ctx, cancel := l.patience(context.WithoutCancel(ctx))
	defer cancel()
	if _, failed := l.s.client.Cancel(ctx, l.run, userName(l.env.Getenv)); failed != nil {
		return &settled{fault.Wrap(fault.CodeOf(failed), failed, "the run goes on, since it can't be cancelled")}
	}
	l.say("%s", l.errStyle.yellow("cancelled: "+oneLine(l.run)))
	return err
}
