package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/agent/parts"
	"github.com/stepjet/stepjet/agent/request"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

// Asked is what a planner is asked.
type Asked struct {
	// Request names the last of Parts, which have to be stored before it is sent; in the first round there are none. They are
	// those of the rounds that are not past.
	Request []byte
	Parts   []request.Part
	// Past is what is left of all rounds before this one; nil before the second.
	Past *Past

	fresh bool  // none of the parts is stored yet, most likely
	last  *last // nil where it is not known, or there is none
}

// Ask returns what the planner of a round is asked. The error is what the call fails with, and the agent with it.
func (l *Loop) Ask(round int) (*Asked, *fault.Error) {
	asked, _, err := l.request(round, l.Usage(round))
	if err != nil {
		return nil, err
	}
	told, _ := l.tellUpTo(round)
	return &Asked{Request: asked.Bytes, Parts: told.parts, Past: l.past(round, told.loop), fresh: len(told.parts) == 1, last: lastOf(l, round, told.parts)}, nil
}

// request renders what the planner of a round is asked, and says what is reserved for its answer. The error is that the
// budget has no room for it, or what is wrong with the input.
func (l *Loop) request(round int, spent agent.Spending) (asked request.Request, kept agent.Reservation, err *fault.Error) {
	final := l.Final && round == len(l.Rounds)-1
	asks := spent
	if final { // which makes no calls, and is asked for where they have cost all there was
		asks.Budget.Steps, asks.Budget.CostUSD = 0, 0
	}
	if what := asks.UsedUp(0); what != "" {
		return asked, kept, exceeded(what, l.Share)
	}
	told, err := l.tellUpTo(round)
	if err != nil {
		return asked, kept, err
	}
	loop := told.loop.Clone()
	f, _ := l.begin(round)
	loop.Open(f, l.Rounds[round].Said)
	now := request.Now{Left: spent.Left()}
	if l.Timed {
		now.Elapsed = l.Rounds[round].Elapsed
	}
	now.Began = began(l, round)
	if !final {
		now.Dropped = l.dropped(round - 1)
	}
	render := func() request.Request { return loop.Request(now) }
	if final {
		all := l.executed(round)
		render = func() request.Request { r, _ := loop.Respond(now, all); return r }
	}
	most := int64(l.Definition.Planner.MaxOutputTokens)
	if spent.Budget.Tokens == 0 {
		return render(), kept, nil
	}
	if now.MaxOutput = most; most == 0 { // what is written for the bound counts, and is never longer than this
		now.MaxOutput = agent.DefaultOutput
	}
	asked = render()
	kept, fits := spent.Reserve(l.measured(round, asked), asked.Fresh, most)
	if !fits {
		return asked, kept, exceeded("tokens", l.Share)
	}
	now.MaxOutput = kept.MaxOutput
	return render(), kept, nil
}

// Summarise returns what a summary tool is asked before the planner of a round is; nil where no rounds are cut then, and where
// the budget has no room for it. The round before may not be past.
func (l *Loop) Summarise(round int) (*Asked, *fault.Error) {
	asked, _, due := l.summarising(round, l.Usage(round))
	if !due {
		return nil, nil
	}
	told, err := l.tellUpTo(round - 1)
	if err != nil {
		return nil, err
	}
	return &Asked{Request: asked.Bytes, Parts: told.parts, fresh: len(told.parts) == 1}, nil
}

// summarising renders what a summary tool is asked, and says what is reserved for its answer.
func (l *Loop) summarising(round int, spent agent.Spending) (asked request.Request, kept agent.Reservation, due bool) {
	asks := spent
	asks.Budget.Steps = 0 // it makes no calls
	if asks.UsedUp(0) != "" || l.Past.Rounds() >= round {
		return asked, kept, false
	}
	told, err := l.tellUpTo(round - 1)
	if err != nil {
		return asked, kept, false
	}
	loop := told.loop.Clone()
	f, _ := l.begin(round - 1)
	loop.Open(f, l.Rounds[round-1].Said)
	over := l.rendered(round - 1)
	most := int64(l.Definition.Planner.MaxOutputTokens)
	if spent.Budget.Tokens == 0 {
		asked, due = loop.Summarise(over, spent.Left(), most)
		return asked, kept, due
	}
	bound := most
	if bound == 0 {
		bound = agent.DefaultOutput
	}
	if asked, due = loop.Summarise(over, spent.Left(), bound); !due {
		return asked, kept, false
	}
	kept, fits := spent.Reserve(l.measured(round-1, asked), asked.Fresh, most)
	if !fits {
		return asked, kept, false
	}
	asked, due = loop.Summarise(over, spent.Left(), kept.MaxOutput)
	return asked, kept, due
}

// began are the calls that the planner of a round has handed over in attempts that ended without an answer, as of the record
// that ended the last of them: so whoever makes the request makes the same.
func began(l *Loop, round int) (all []request.Record) {
	r := l.Rounds[round]
	if len(r.Told) == 0 {
		return nil
	}
	x, err := l.answer(round)
	if err != nil || x.answer == nil {
		return nil
	}
	for _, id := range r.Told {
		i, known := x.places[id]
		if !known {
			continue
		}
		rec := request.Record{ID: id, Tool: x.answer.Calls[i].Entry, Arguments: request.Whole(x.answer.Calls[i].Arguments), Status: out}
		for k := range r.Calls {
			if c := &r.Calls[k]; c.Path == id && c.Single && c.Seq > 0 && c.Seq <= r.EndedAt {
				l.came(&rec, c, nil)
			}
		}
		all = append(all, rec)
	}
	return all
}

// out is the status of a call that had begun and was not over.
const out = "ready"

// summary is what stands in the place of the rounds that the part of one cuts: it was made before the next one's planner was
// asked; empty for ids, statuses and sizes.
func (l *Loop) summary(round int) string {
	if round+1 >= len(l.Rounds) || l.Rounds[round+1].Summary == nil {
		return ""
	}
	text, _ := agent.Summary(l.Rounds[round+1].Summary)
	return text
}

// told are the requests of a loop up to a round that is to be opened.
type told struct {
	loop  *request.Loop
	round int
	parts []request.Part // of the rounds before that are not past
}

// tellUpTo returns the requests up to a round. They must not be changed.
func (l *Loop) tellUpTo(round int) (*told, *fault.Error) {
	if l.told == nil || l.told.round > round {
		l.told = &told{round: l.Past.Rounds()}
		if l.Past != nil {
			l.told.loop = l.Past.asked.Clone()
		} else {
			first, err := l.begin(0)
			if err != nil {
				l.told = nil
				return nil, err
			}
			l.told.loop = request.Begin(l.Definition, first, l.Part)
		}
	}
	t := l.told
	for ; t.round < round; t.round++ {
		f, _ := l.begin(t.round)
		t.loop.Open(f, l.Rounds[t.round].Said)
		next, _ := l.begin(t.round + 1)
		t.parts = append(t.parts, t.loop.End(l.rendered(t.round), next, l.summary(t.round)))
	}
	return t, nil
}

// measured are the tokens that the last planner told of what a request begins with. Where it told of none, or where the
// request begins anew, all of it counts as fresh.
func (l *Loop) measured(round int, asked request.Request) int64 {
	if asked.Fresh == asked.Size {
		return 0
	}
	if told := l.inputTokens(round - 1); told > 0 {
		return told
	}
	return asked.Size - asked.Fresh
}

// Whole returns the request with all its rounds, for a planner that wants it so. None of them may be past.
func (a *Asked) Whole() ([]byte, *fault.Error) {
	made := map[string][]byte{}
	for _, p := range a.Parts {
		made[p.Name] = p.Bytes
	}
	whole, err := request.Rendered(context.Background(), request.Request{Bytes: a.Request}, parts.NewKeeper(parts.DefaultKept),
		func(_ context.Context, part string) ([]byte, error) { return made[part], nil })
	if err != nil {
		return nil, fault.As(err)
	}
	return whole, nil
}

// dropped returns what a round that another follows would have come to, as it was written; nothing where it put forward none. A
// run that does not need wire.AgentEnds tells of an output beside calls alone, and not of what ended the loop until something
// was said.
func (l *Loop) dropped(round int) request.Value {
	switch {
	case round < 0:
		return request.Value{}
	case round < l.Past.Rounds():
		return l.Past.dropped
	}
	x, err := l.answer(round)
	r := l.Rounds[round]
	switch {
	case err != nil || x.answer == nil || r.Record == nil:
		return request.Value{}
	case !l.Ends && r.Record.Fragment == nil && r.Refused == nil, l.Ends && len(r.Record.Problems) > 0 && r.Refused == nil:
		return request.Value{}
	case len(x.answer.Output) > 0 || !l.Ends:
		return request.Whole(x.answer.Output)
	case r.Record.End != "":
		return request.Whole(r.Record.Output)
	}
	return request.Whole(returnedDirectly(r))
}

// returnedDirectly returns the result of a direct call of a round with which the loop would have been over; nil for none, and
// for one that lies apart for its size.
func returnedDirectly(r *Round) json.RawMessage {
	for _, id := range r.Record.Direct {
		for i := range r.Calls {
			if c := &r.Calls[i]; c.Single && c.Path == id && c.Seq > 0 && c.Err == nil {
				return c.Value
			}
		}
	}
	return nil
}

// rendered is a round that is over, as requests tell of it.
func (l *Loop) rendered(round int) request.Round {
	out := request.Round{Plan: request.Whole(written(l.Rounds[round].Answer))}
	x, err := l.answer(round)
	if err != nil {
		return out
	}
	out.Problems = x.report.Problems
	if r := l.Rounds[round].Record; r != nil && len(r.Problems) > 0 { // also what was found when all of it was put together
		out.Problems = r.Problems
	}
	if x.answer == nil || len(out.Problems) > 0 && len(l.Rounds[round].Handed) == 0 {
		return out
	}
	out.Text, out.Provider = x.answer.Text, x.answer.Provider
	came := map[string]*Call{}
	for k := range l.Rounds[round].Calls {
		if c := &l.Rounds[round].Calls[k]; c.Single {
			came[c.Path] = c
		}
	}
	own := 0
	_, lost := l.shared(round, ^uint64(0), nil)
	for i, c := range x.answer.Calls {
		if c.Within >= 0 {
			continue
		}
		rec := request.Record{ID: c.ID, Tool: c.Entry, Arguments: request.Whole(c.Arguments), Status: request.NotRun}
		if own < len(x.answer.Commands) {
			cmd := x.answer.Commands[own]
			rec.Purpose, rec.TodoSuggestion, rec.Next, rec.Arguments = cmd.Purpose, cmd.TodoSuggestion, cmd.Next, request.Whole(cmd.Arguments)
		}
		own++
		if r := l.Rounds[round].Record; r != nil {
			l.came(&rec, came[x.paths[i]], r.Rest)
		} else if l.Rounds[round].hasRun() { // somebody interrupted the round before it was decided
			l.came(&rec, came[x.paths[i]], nil)
		}
		switch {
		case x.lacked[c.ID] && (len(out.Problems) > 0 || l.Rounds[round].Record == nil):
			rec.Note = noted
		case x.lacked[c.ID]:
			rec.Note = lacks
		}
		rec.Note = strings.TrimSpace(rec.Note + " " + x.added[c.ID].note() + " " + l.note(round, x, i, came[x.paths[i]]))
		if why := lost[c.ID]; why != "" {
			rec.Note = strings.TrimPrefix(rec.Note+" "+fmt.Sprintf(notWritten, why), " ")
		}
		rec.Result.Object = l.object(round, came[x.paths[i]])
		out.Records = append(out.Records, rec)
	}
	if no := l.Rounds[round].Refused; no != nil {
		out.Problems = []fault.Problem{{Code: no.Code, Path: "/output", Message: no.Message, Hint: no.Hint}}
	}
	return out
}

// executed returns what all calls of the rounds before one came to, in their order.
func (l *Loop) executed(round int) (all []request.Record) {
	for n := range round {
		x, err := l.answer(n)
		for k, rec := range l.rendered(n).Records {
			if err == nil && rec.Tool == "" && x.answer.Plan.Steps[k].Does().Plan != nil { // calls stand before what stands for earlier rounds
				rec.Tool = tool.PlanTool
			}
			all = append(all, rec)
		}
	}
	return all
}

// Logs returns what the account of the agent has of the calls of all its rounds, as a JSON list; values of more than most bytes
// are previews.
func (l *Loop) Logs(most int) []byte {
	return request.ToolLogs(l.executed(len(l.Rounds)), most)
}

// note is what a planner is told beside what a call came to: that it was made before, and was not made again.
func (l *Loop) note(round int, x *reading, call int, c *Call) string {
	e := l.entry(round, x, call)
	if e != nil && c != nil && c.Err == nil && e.Selects() != "" {
		return l.notSelected(round, e, c.Value)
	}
	if c == nil || !c.ByOwner || c.Err != nil || e == nil || e.Kind != agent.KindTool {
		return ""
	}
	after, err := l.begin(round + 1)
	if err != nil {
		return ""
	}
	_, note, _ := after.Done(e.Name, sent(l, round, x, call, c.Since, c.Arguments))
	return note
}

// noted is the note of a call that had begun before an answer was whole that is none, or can't be used.
const noted = "It began while you were writing."

// lacks is the note of a call that had begun while the answer was written.
const lacks = "It began while your answer was written, and your answer does not have it."

// notWritten is the note of a call whose result is not in the state.
const notWritten = "What it wrote is not in the state, or not all of it: %s."

// notSelected is the note of a facade that was not opened, since what its tool selected is of no use.
func (l *Loop) notSelected(round int, e *agent.Entry, selected json.RawMessage) string {
	f, err := l.begin(round)
	if err != nil {
		return ""
	}
	_, bad := f.Selected(e.Name, selected)
	if len(bad) == 0 {
		return ""
	}
	const note = "'%s' was not opened: what '%s' selected for it can't be used: %s: %s"
	return fmt.Sprintf(note, e.Name, e.Selects(), bad[0].Path, bad[0].Message)
}

// object is the name by which a planner reads on in a result of which it is shown a preview; empty where it can't.
func (l *Loop) object(round int, c *Call) string {
	after, err := l.begin(round + 1)
	if c == nil || c.Said != "" || err != nil || after.Entry("blackboard_get") == nil {
		return ""
	}
	return l.objects[c.Seq]
}

// came adds to a record what its call came to.
func (l *Loop) came(rec *request.Record, c *Call, rest []string) {
	for _, id := range rest {
		if id == rec.ID {
			return
		}
	}
	if c == nil {
		return
	}
	rec.Status, rec.MS = c.Status, c.MS
	if c.Arguments != nil && rec.Purpose == "" {
		rec.Arguments = request.Whole(c.Arguments)
	}
	if c.Err != nil {
		raw, _ := json.Marshal(struct { // of texts
			Code    fault.Code `json:"code"`
			Message string     `json:"message"`
			Hint    string     `json:"hint,omitempty"`
		}{c.Err.Code, c.Err.Message, c.Err.Hint})
		rec.Error = request.Whole(raw)
		return
	}
	if rec.Result = request.Whole(c.Value); c.Said != "" {
		raw, _ := json.Marshal(c.Said) // of a text
		rec.Result = request.Whole(raw)
	}
}

// written returns the steps, calls or commands of an answer as they were written; all of one that has none.
func written(answer []byte) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(answer, &members) != nil {
		return answer
	}
	for _, name := range []string{"steps", "calls", "execution_commands", "tool_commands", "tool_command"} {
		if v := members[name]; len(v) > 0 && strings.TrimSpace(string(v)) != "null" {
			return v
		}
	}
	return answer
}
