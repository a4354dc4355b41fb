package orchestrator

import (
	"context"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// answering is one request to answer a question. It is answered when this owner has read from the ledger what stands:
// only its order says whether the answer came before a time-out, a stop, or somebody else's.
type answering struct {
	s    *api
	l    *loop
	m    *nats.Msg
	verb string
	r    *run
	call machine.Call
	asks wire.AnswerRequest
}

// answerQuestion takes an answer. Approvals and what plans ask have verbs of their own, so that who may do the one need
// not be able to do the other.
func (s *api) answerQuestion(l *loop, m *nats.Msg, id subjects.Run, verb string) {
	request, err := wire.ParseAnswerRequest(m)
	if err != nil {
		s.refuse(m, err)
		return
	}
	r := s.underWay(l, m, id, "nothing waits for an answer any more: stepjet get "+id.Plain())
	if r == nil || r.phase != running {
		return // else it isn't read yet: the asker asks again
	}
	call, token, ok := r.callOf(request.Step)
	if token != "" && ok {
		call, ok = r.machine.Find(token)
	}
	if !ok {
		s.refuse(m, fault.New(fault.InvalidID, "run '%s' has no step %q", id.Plain(), text.Clip(request.Step, 80)).
			WithHint("the steps that wait: stepjet questions list %s", id.Plain()))
		return
	}
	a := &answering{s: s, l: l, m: m, verb: verb, r: r, call: call, asks: request}
	a.take()
}

func (a *answering) refuse(err error) { a.s.refuse(a.m, err) }

// take checks the answer against the question as it stands now, and records it.
func (a *answering) take() {
	q := a.r.machine.Question(a.call)
	if q == nil || a.stands(q) {
		a.over()
		return
	}
	if err := a.unfit(q); err != nil {
		a.refuse(err)
		return
	}
	if a.asks.Value == nil {
		a.record(q)
		return
	}
	a.checkValue(q)
}

// stands reports whether what is answered was answered before, though something else is asked under the same token: about an
// amendment of a plan that was approved, say.
func (a *answering) stands(q *machine.Question) bool {
	before, _, _ := machine.Stands(a.r.machine, a.call, a.asks.Digest)
	return before != nil && before.Digest == a.asks.Digest && q.Digest != a.asks.Digest
}

// over answers where nobody is asked any more: by what stands.
func (a *answering) over() {
	stands, _, change := machine.Stands(a.r.machine, a.call, a.asks.Digest)
	switch {
	case stands != nil:
		a.told()(true)
		return
	case change != nil && change.Stale() != nil: // its plan came to its end before anybody answered
		a.refuse(fault.New(fault.AlreadyFinished, "revision %d of the plan of %s does nothing: %s", change.Revision, a.asks.Step, change.Stale().Message).
			WithHint("%s", change.Stale().Hint))
		return
	}
	st := outcome.StepStatus("")
	if a.call.Step != machine.ThePlan {
		st = a.r.machine.Step(a.call, a.r.submitted).Status
	}
	if st.Terminal() {
		a.refuse(fault.New(fault.AlreadyFinished, "the step %s is over: %s", a.asks.Step, st).WithHint("nobody is asked about it any more"))
		return
	}
	a.refuse(fault.New(fault.Conflict, "the step %s waits for no answer", a.asks.Step).
		WithHint("what waits: stepjet questions list %s", a.r.id.Plain()))
}

// unfit says why an answer is none to a question; nil where it may be.
func (a *answering) unfit(q *machine.Question) error {
	switch {
	case q.Kind == outcome.Approval && a.verb != subjects.VerbApprove:
		return fault.New(fault.Permission, "the step %s waits for an approval, which this request can't give", a.asks.Step).
			WithHint("approvals have a request of their own, for those who may give them: stepjet approve")
	case q.Kind == outcome.Ask && a.verb != subjects.VerbAnswer:
		return fault.New(fault.InvalidValue, "the step %s asks for a value, and not for an approval", a.asks.Step).
			WithHint("stepjet questions answer %s %s VALUE", a.r.id.Plain(), a.asks.Step)
	case a.asks.Digest != q.Digest:
		return fault.New(fault.Conflict, "this answer is to something else than what the step %s asks", a.asks.Step).
			WithHint("look at the question again, and answer with its digest: stepjet questions show %s %s", a.r.id.Plain(), a.asks.Step)
	case q.Kind == outcome.Ask && a.asks.Decision == wire.Approve:
		return fault.New(fault.InvalidValue, "the step %s asks for a value", a.asks.Step).WithHint(`write "value", or "decision": "reject"`)
	case a.asks.Value == nil && a.asks.Arguments == nil:
		return nil
	case q.Amendment != nil:
		return fault.New(fault.InvalidValue, "an amendment is approved or rejected as it is").WithHint("reject it, and ask for another")
	case q.Round != nil:
		return fault.New(fault.InvalidValue, "a round of an agent is approved or rejected as it is").
			WithHint("reject it with a reason: its planner is told, and answers again")
	case q.Guard != nil:
		return fault.New(fault.InvalidValue, "what a guard of an agent asks about passes as it is, or not at all").
			WithHint("reject it with a reason: the agent's planner is told")
	case q.Step == machine.ThePlan:
		return fault.New(fault.InvalidValue, "a plan is approved or rejected as it is").WithHint("reject it, and submit another")
	case q.Item == 0 && a.r.step(q.Step).ForEach != nil:
		return fault.New(fault.InvalidValue, "all items of %s are asked for together, so they are approved or rejected as they are", a.asks.Step).
			WithHint(`with "all" left out of the plan, each item is asked for by itself`)
	case a.asks.Arguments != nil:
		return a.unfitArguments(q)
	}
	return nil
}

// unfitArguments checks arguments that take the place of the plan's.
func (a *answering) unfitArguments(q *machine.Question) error {
	args, bad := plan.Output(a.asks.Arguments, false)
	switch {
	case bad != nil:
		return notTaken(fault.InvalidArguments, "the arguments", bad)
	case len(args) == 0 || args[0] != '{':
		return fault.New(fault.InvalidArguments, "the arguments are no object").WithHint("write all of them, as the question shows them")
	}
	name := a.r.step(q.Step).Tool
	if schema := a.r.schemas[name]; schema != nil {
		if wrong := schema.Check(args, nil); len(wrong) > 0 {
			err := tool.Refusal(name, wrong)
			err.Hint = "write arguments that fit it: stepjet tools show " + name
			if plan.IsInline(name) {
				err.Hint = "write arguments that fit what the agent's step says of them in the plan"
			}
			if wrong[0].Hint != "" {
				err.Hint = wrong[0].Hint + "; " + err.Hint
			}
			return err
		}
	}
	return nil
}

// notTaken is the error for what a person wrote and no tool could have returned.
func notTaken(code fault.Code, what string, bad *fault.Error) error {
	why := strings.TrimPrefix(strings.TrimPrefix(bad.Message, "the tool's output "), "the output ")
	return fault.New(code, "%s can't be taken: what is written there %s", what, why).
		WithHint("write flat JSON in UTF-8, each key of an object once; what is large, by a name or an address")
}

// checkValue checks a value that decides the step, beside the loop, and goes on.
func (a *answering) checkValue(q *machine.Question) {
	if q.Asks != nil {
		a.tellWorker(q)
		return
	}
	in, asks := a.r.inputs(q.Call), q.Kind == outcome.Ask
	of := a.r.start.Tools[a.r.step(q.Step).Tool]
	in.resolver = nil
	a.l.driver.memory.reserve(in.most(false), func(ctx context.Context) {
		err := a.unfitValue(ctx, &in, asks, of)
		a.l.post(func() {
			switch now := a.r.machine; {
			case err != nil:
				a.refuse(err)
			case a.r.phase != running: // it is over, or another's
			case now.Question(a.call) == nil || now.Question(a.call).Digest != a.asks.Digest:
				a.over()
			default:
				a.record(now.Question(a.call))
			}
		})
	})
}

func (a *answering) unfitValue(ctx context.Context, in *inputs, asks bool, of *wire.FrozenTool) error {
	value, bad := plan.Output(a.asks.Value, false)
	if bad != nil {
		return notTaken(fault.InvalidValue, "the value", bad)
	}
	if asks {
		args, err := a.l.values.arguments(ctx, in)
		if err != nil {
			return err
		}
		asked, err := tool.ReadAsked(args)
		if err == nil {
			err = asked.Accepts(value)
		}
		if err != nil {
			return err
		}
		return nil
	}
	if of == nil {
		return nil // a step with a plan of its own, whose result nothing declares
	}
	schema, err := a.s.reg.output(ctx, of)
	if err != nil || schema == nil {
		return err
	}
	if wrong := schema.Check(value, nil); len(wrong) > 0 {
		return fault.New(fault.InvalidValue, "the value is none that %s could return: %s", in.plan.Steps[in.step].Tool, wrong[0].Message).
			WithHint("a value takes the place of what the tool returns, so it fits its output schema")
	}
	return nil
}

// tellWorker checks what the worker of a call is to be told, and goes on. What it asked stands in the record.
func (a *answering) tellWorker(q *machine.Question) {
	asks, err := wire.ParseAsks(q.Asks.Body)
	value, bad := plan.Output(a.asks.Value, false)
	switch {
	case err != nil: // of no record that was decoded here
		a.refuse(err)
		return
	case bad != nil:
		a.refuse(notTaken(fault.InvalidValue, "the value", bad))
		return
	case len(a.asks.Value) > machine.MaxAnswer:
		a.refuse(fault.New(fault.TooLarge, "the answer has %d bytes, and a tool that asks is told %d at most", len(a.asks.Value), machine.MaxAnswer).
			WithHint("hand large data on by a name or an address"))
		return
	}
	if err := asks.Accepts(value); err != nil {
		a.refuse(err)
		return
	}
	a.record(q)
}

// record creates the record, and answers once some record of this number was read: none was yet. Where the run goes to
// another owner before that, the asker asks again.
func (a *answering) record(q *machine.Question) {
	x, w := &standing{refuse: a.refuse}, a.r.asks().waiting
	w[a.call] = append(w[a.call], answerer{q.Number, func() { x.stands(a.told()) }})
	a.l.questions.record(a.r, q, a.asks.Answer, func(d kv.Decision, err error) {
		a.l.post(func() { x.recorded(d, err) })
	})
}

// told returns what is answered by what stands for the question now, to one that was there already or to the one that counted.
func (a *answering) told() (send func(already bool)) {
	account, err := a.becomes()
	return func(already bool) {
		if err != nil {
			a.refuse(err)
			return
		}
		a.s.reply(a.m, wire.AnswerReply{Run: a.r.id.Plain(), Step: a.asks.Step, Answered: *account, Already: already}.Body())
	}
}

// becomes returns what stands for the question, which says the same as the answer; or why that does not count.
func (a *answering) becomes() (*outcome.Answered, error) {
	stands, account, change := machine.Stands(a.r.machine, a.call, a.asks.Digest)
	switch {
	case stands == nil && a.r.machine.Question(a.call) != nil:
		return nil, fault.New(fault.Conflict, "the question of %s was asked anew while this answer was on its way", a.asks.Step).
			WithHint("look at it again: stepjet questions show %s %s", a.r.id.Plain(), a.asks.Step)
	case stands == nil:
		return nil, fault.New(fault.AlreadyFinished, "the step %s came to its end before it was answered", a.asks.Step).
			WithHint("see how: stepjet get %s", a.r.id.Plain())
	case a.asks.Digest != stands.Digest:
		return nil, fault.New(fault.Conflict, "this answer is to something else than what the step %s was asked", a.asks.Step).
			WithHint("what was decided, and by whom: stepjet get %s", a.r.id.Plain())
	case !a.asks.Same(wire.Answer{Digest: stands.Digest, Decision: stands.Decision, Value: stands.Value, Arguments: stands.Arguments}):
		return nil, fault.New(fault.Conflict, "the step %s was %s already%s", a.asks.Step, account.Decision, byWhom(account)).
			WithHint("that stands; see what came of it: stepjet get %s", a.r.id.Plain())
	case change != nil && change.Stale() != nil && change.Stale().Code != fault.Rejected:
		now, _ := machine.Revision(a.r.machine, change.Scope)
		return nil, overtaken(change.Stale(), now)
	}
	return account, nil
}

func byWhom(a *outcome.Answered) string {
	if a.By == "" {
		return ""
	}
	return " by " + a.By
}

// saying is one request to say something to an agent. It is answered when this owner has read from the ledger what
// stands: only its order says whether it came before the end of the loop.
type saying struct {
	s    *api
	l    *loop
	m    *nats.Msg
	r    *run
	asks wire.SayRequest
	of   machine.Call
}

// say takes a word to an agent.
func (s *api) say(l *loop, m *nats.Msg, id subjects.Run) {
	asks, err := wire.ParseSayRequest(m)
	if err != nil {
		s.refuse(m, err)
		return
	}
	r := s.underWay(l, m, id, "nobody hears it any more")
	if r == nil || r.phase != running || r.awaitingInput() {
		return // else it isn't read yet: the asker asks again
	}
	x := &saying{s: s, l: l, m: m, r: r, asks: asks}
	there := false
	if x.of, there = r.machine.Find(asks.Agent); !there || machine.RoundCount(r.machine, x.of) == 0 {
		const none = "run '%s' has no agent at %q, or it has not begun"
		s.refuse(m, fault.New(fault.InvalidID, none, id.Plain(), text.Clip(asks.Agent, 80)).
			WithHint("name the step that calls it; which go on: stepjet get %s", id.Plain()))
		return
	}
	switch send := x.told(); {
	case send != nil:
		send(true)
	case !machine.Hears(r.machine, x.of):
		s.refuse(m, x.unheard())
	default:
		x.record()
	}
}

func (x *saying) unheard() error {
	if len(machine.AllSaid(x.r.machine, x.of)) >= machine.MaxSaid {
		return fault.New(fault.LimitExceeded, "the agent was said %d things", machine.MaxSaid).
			WithHint("say several things at a time")
	}
	const deaf = "the agent %s hears nothing any more: it is over, or in its last round"
	return fault.New(fault.AlreadyFinished, deaf, x.asks.Agent).
		WithHint("see what it came to: stepjet get %s", x.r.id.Plain())
}

// told returns what is answered by the word as it stands; nil where it does not.
func (x *saying) told() (send func(already bool)) {
	all := machine.AllSaid(x.r.machine, x.of)
	i := slices.IndexFunc(all, func(s machine.Said) bool { return s.ID == x.asks.ID })
	if i < 0 {
		return nil
	}
	if !x.asks.Same(wire.Say{Content: all[i].Content, Mode: modeOf(all[i].Say)}) {
		err := fault.New(fault.Conflict, "something else was said to %s as %q", x.asks.Agent, x.asks.ID).WithHint("take another id")
		return func(bool) { x.s.refuse(x.m, err) }
	}
	reply := wire.SayReply{Run: x.r.id.Plain(), Agent: x.asks.Agent, ID: x.asks.ID}
	if n := all[i].Round; n >= 0 {
		reply.Round = &n
	}
	return func(already bool) {
		reply.Already = already
		x.s.reply(x.m, reply.Body())
	}
}

// modeOf is the mode of a word.
func modeOf(s *machine.Say) string {
	if s.Interrupt {
		return wire.Interrupt
	}
	return ""
}

// record creates the record, and answers once it was read. Where the run goes to another owner before that, the asker
// asks again.
func (x *saying) record() {
	r, key := x.r, wordOf{x.asks.Agent, x.asks.ID}
	one := &standing{refuse: func(err error) { x.s.refuse(x.m, err) }}
	r.agents.speakers.Put(key, append(r.agents.speakers.At(key), func() {
		send := x.told()
		if send == nil { // it came too late
			err := x.unheard()
			send = func(bool) { x.s.refuse(x.m, err) }
		}
		one.stands(send)
	}))
	h, body := x.asks.Say.Message()
	subject := subjects.SayRecord(r.id, r.generation, x.asks.Agent, x.asks.ID, x.l.store.Shards())
	x.l.store.CreateAsync(x.l.ctx, subject, h, body, nil, func(d kv.Decision, _ uint64, err error) {
		if err == nil && d == kv.Gone {
			err = finishedAlready(r.id)
		}
		x.l.post(func() { one.recorded(d, err) })
	})
}
