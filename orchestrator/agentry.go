package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/agent/request"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/orchestrator/agents"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// agentry does what package agents finds out about the loops of agents: it makes the requests of planners and the records
// of rounds, and asks the gates before calls are sent. All of it is found out beside the loop, of what the records were at
// that moment, and follows from records that don't change any more; so it is done again by whoever comes next.
type agentry struct {
	*env
	values    *values
	memory    *memory
	decider   *decider
	announcer *announcer

	inline int // bytes of a round's record; a longer one lies in a blob
	many   int // calls that a round has where its gates share what they look at
}

// ofRound reports whether the record of a round is of one that the run can have.
func ofRound(r *run, scope string) bool {
	s, _, ok := planStep(r, subjects.ScopeOf(scope))
	return r.agents != nil && ok && s.Agent() != nil && subjects.IsIteration(scope)
}

// roundOf reads a round that the run can have, whose bytes are there.
func roundOf(r *run, e entry) *machine.Round {
	s, _, _ := planStep(r, subjects.ScopeOf(e.rec.Step))
	d := wire.ParseRound(e.Data)
	r.agents.records.Put(e.rec.Step, &d)
	round := agents.Decided(&d, e.rec.Step, r.agents.defined[s.Does().Tool], s.Agent(), r.agents.templates, r.agents.frozen(r), formerly(r))
	sum := sha256.Sum256(e.Data)
	round.Digest = hex.EncodeToString(sum[:])
	return round
}

// formerly reports whether a run began before runs with agents needed wire.AgentOrder: it goes on by the rules of then.
func formerly(r *run) bool { return !slices.Contains(r.start.Needs, wire.AgentOrder) }

// sayOf reads the record of a word to an agent.
func sayOf(e entry) *machine.Say {
	s := wire.ParseSay(e.Data)
	return &machine.Say{
		Agent: e.rec.Step, ID: e.rec.What, Content: s.Content, Interrupt: s.Mode == wire.Interrupt, By: s.By, Verified: s.Verified,
	}
}

// ready reports whether a call can be sent as it is: one in a round of an agent is asked about at its gate before, and the
// request of a planner is made. then is called once that is done, where the call is to be sent.
func (ag *agentry) ready(r *run, d machine.Dispatch, then func()) bool {
	of, round, own, inRound := machine.RoundAround(r.machine, d.Call)
	if inRound {
		if taken := tries(r).Of(d.Call); taken != nil {
			ag.again(r, d, taken)
			return false
		}
	}
	if !inRound || r.agents.made(d.Call) != nil || isFree(r, of, d.Call) {
		return true
	}
	key := machine.Dispatch{Call: d.Call, Attempt: d.Attempt}
	its := r.agents // which the run lets go of when it is over
	if its.asking.At(key) {
		return false
	}
	its.asking.Put(key, true)
	summary := machine.Summary(r.machine, d.Call)
	again := func() {
		if its.asking.Drop(key); r.phase == running && r.machine.Wanted(d.Call, d.Attempt) {
			ag.ready(r, d, then)
		}
	}
	if (own || summary) && ag.waitsForShare(r, of, again) {
		return false
	}
	var x *looked
	var begun func(*agents.Loop)
	switch {
	case own || summary:
		its.gates.Drop(r.token(of)) // of the round before
		x = ag.look(r, of, round, ag.sendsWhole(r, of, d.Call) || machine.Responds(r.machine, of))
	case r.step(d.Step).Own: // it may tell of all that there was, and of what agents below have used up by now
		if x = ag.look(r, of, round, false); !captures(r, of) {
			x.addBelow(r, round)
		}
	default:
		var ok bool
		if x, begun, ok = ag.atGate(r, of, round, again); !ok {
			return false
		}
	}
	in, path, since := asWritten(r, d.Call), x.pathOf(r, d.Call), machine.ReadySince(r.machine, d.Call)
	in.resolver, in.schema = nil, nil
	a := r.attempt(d.Call, d.Attempt)
	send := ag.sender(r, d, (own || summary) && ag.sendsWhole(r, of, d.Call), x)
	guard := ag.guardOf(r, x, d.Call, of, round)
	ag.memory.reserve(x.size+in.most(false)+guard.size(), func(ctx context.Context) {
		var args, result json.RawMessage
		var beside func(context.Context)
		says := ""
		var err *fault.Error
		var asked *agents.Loop // with all that there is
		switch {
		case guard != nil:
			err = guard.read(ctx, ag.values)
		case !own && !summary:
			args, err = ag.values.arguments(ctx, &in)
		}
		if err == nil {
			err = x.ask(ctx, ag.values, func(l *agents.Loop) (err *fault.Error) {
				asked = l
				switch {
				case own:
					args, beside, err = send(ctx, l.Ask, round)
				case summary:
					none := false
					args, _, err = send(ctx, func(round int) (*agents.Asked, *fault.Error) {
						asked, err := l.Summarise(round)
						none = asked == nil && err == nil
						return asked, err
					}, round)
					if none {
						result = json.RawMessage("null")
					}
				case guard != nil:
					if args = guard.message(l); args == nil {
						result = json.RawMessage("null")
					}
				default:
					says = l.Said(round, path, args)
					args, result, err = l.Ready(round, path, since, args)
				}
				return err
			})
		}
		if ctx.Err() != nil {
			return
		}
		ag.post(func() {
			its.asking.Drop(key)
			x.found(its)
			if begun != nil {
				begun(asked)
			}
			switch {
			case r.phase != running || !r.machine.Wanted(d.Call, d.Attempt):
			case err != nil:
				ag.decider.fail(a, err, r.trace)
			case (own || summary) && args == nil && result == nil:
				ag.ready(r, d, then)
			case result != nil:
				ag.announcer.says(r, d, says)
				ag.answer(a, result, r)
			case r.step(d.Step).Own:
				ag.decider.fail(a, fault.New(fault.Internal, "nobody answers this call"), r.trace)
			default:
				its.arguments.Put(d.Call, args)
				if then(); beside != nil {
					ag.job(beside)
				}
			}
		})
	})
	return false
}

// isFree reports whether the gate of an agent need not be asked about a call in a round of it: a hundred calls would each
// look at all the others. What a template calls is its author's.
func isFree(r *run, agent, c machine.Call) bool {
	return r.step(c.Step).Free || inTemplate(r, agent, c)
}

// inTemplate reports whether a call in a round of an agent is one that a template makes.
func inTemplate(r *run, agent, c machine.Call) bool {
	for c = r.machine.Composite(c.Step); c.Step != machine.ThePlan && c != agent; c = r.machine.Composite(c.Step) {
		if r.step(c.Step).Template != nil {
			return true
		}
	}
	return false
}

// sendsWhole reports whether the requests of an agent's planner have all rounds in them.
func (ag *agentry) sendsWhole(r *run, of, planner machine.Call) bool {
	return r.machine.Contract(planner.Step).WholeRequest || r.agents.whole.At(r.token(of))
}

// asks makes the request of a planner, or of who makes a summary; nil for none.
type asks func(round int) (*agents.Asked, *fault.Error)

// sender returns what makes the request of a planner, and stores the parts that it names before it is sent. Those are made
// of the records, so whoever makes them finds what others have stored of them. Where something else lies there, it returns
// nothing: the request is to be made anew, whole.
//
// A planner whose contract says so is sent a small last part in the request. Then that one is stored beside it, by what is
// returned, while the first request of a round is under way; and before each other one, since those follow an attempt of a worker
// that may have looked for it elsewhere.
func (ag *agentry) sender(r *run, d machine.Dispatch, whole bool, x *looked) (send func(context.Context, asks, int) (args []byte, beside func(context.Context), err *fault.Error)) {
	carries, keep := r.machine.Contract(d.Step).PartContent, ag.keeper(r, x.name)
	return func(ctx context.Context, ask asks, round int) (args []byte, beside func(context.Context), err *fault.Error) {
		asked, err := ask(round)
		switch {
		case err != nil || asked == nil:
			return nil, nil, err
		case whole:
			args, err = asked.Whole()
			return args, nil, err
		}
		var late *agents.Asked
		if carries {
			late = asked.Carry(d.Attempt)
		}
		same, err := keep(ctx, asked)
		switch {
		case err != nil || !same:
			return nil, nil, err
		case late != nil:
			beside = func(ctx context.Context) { _, _ = keep(ctx, late) } // what fails, whoever makes the next round's request does
		}
		return asked.Request, beside, nil
	}
}

// keeper returns what stores parts of an agent's request. Its rounds are past once all of them are stored, and not before: so
// whoever makes a request has stored, or stores, all parts that it names or leads to.
func (ag *agentry) keeper(r *run, name string) func(context.Context, *agents.Asked) (same bool, err *fault.Error) {
	its, bucket, id := r.agents, r.bucket(), r.id
	return func(ctx context.Context, asked *agents.Asked) (bool, *fault.Error) {
		same, err := asked.Keep(func(p request.Part, fresh bool) (bool, error) {
			return ag.values.keep(ctx, bucket, p.Name, p.Bytes, fresh)
		})
		switch {
		case err != nil: // also when stopping: then nobody looks at it
			return false, fault.As(err)
		case !same:
			ag.log.Warn("something else lies where a part of an agent's request belongs: its requests are sent whole", "tenant", id.Tenant, "run", id.Plain(), "agent", name)
			ag.post(func() { its.whole.Put(name, true) })
			return false, nil
		}
		ag.post(func() {
			if asked.Past.Rounds() > its.past.At(name).Rounds() {
				its.past.Put(name, asked.Past)
			}
		})
		return true, nil
	}
}

// answer records what a call came to that is not made.
func (ag *agentry) answer(a subjects.Attempt, result []byte, r *run) {
	ag.answerWith(a, wire.Result{Body: result}, r)
}

// answerWith is answer for a result of which more is said.
func (ag *agentry) answerWith(a subjects.Attempt, own wire.Result, r *run) {
	result, bucket := own.Body, r.bucket()
	own.Worker, own.Trace = ownerMark+ag.cfg.Name, r.trace.Of(a)
	record := func(ctx context.Context) {
		h, body := own.Message()
		ag.store.CreateAsync(ctx, subjects.StepRecord(a, ag.store.Shards()), h, body, nil, ag.decider.recorded(a, own.Trace))
	}
	if len(result) <= wire.InlineLimit {
		record(ag.ctx)
		return
	}
	ag.job(func(ctx context.Context) {
		h, err := ag.values.put(ctx, bucket, a.BlobName, result)
		if err != nil {
			return // only when stopping: the next owner does it
		}
		h.Checked = true
		own.Handle, own.Body = h, result
		record(ctx)
	})
}

// again answers a call in a round with what it came to in the run that this one tries again.
func (ag *agentry) again(r *run, d machine.Dispatch, taken *wire.ReusedResult) {
	a := r.attempt(d.Call, d.Attempt)
	own := wire.Result{Body: taken.Value, Type: taken.Type, Planner: taken.Planner}
	if taken.Blob == nil {
		ag.answerWith(a, own, r)
		return
	}
	ag.memory.reserve(taken.Size, func(ctx context.Context) { // a record may name no blob but its own
		value, err := ag.values.value(ctx, taken.Blob, false)
		switch own.Body = value; {
		case ctx.Err() != nil:
		case err != nil:
			ag.post(func() { ag.decider.fail(a, err, r.trace) })
		default:
			ag.post(func() { ag.answerWith(a, own, r) })
		}
	})
}

// round records what the answer of a planner came to, each once at a time. While an owner finds one out, another may record
// it, and all that follows may come, up to the planner's next answer: that one waits for nothing.
func (ag *agentry) round(r *run, of machine.Call) {
	scope, waits := machine.RoundScope(r.machine, of)
	its := r.agents
	if !waits || its.deciding.At(scope) {
		return
	}
	its.deciding.Put(scope, true)
	x, id, generation, a := ag.look(r, of, machine.RoundCount(r.machine, of)-1, false), r.id, r.generation, r.attempt(of, 1)
	trace, bucket := r.trace, r.bucket()
	ag.memory.reserve(x.size, func(ctx context.Context) {
		defer ag.post(func() {
			its.deciding.Drop(scope)
			x.found(its)
		})
		var d *wire.Round
		l, err := x.read(ctx, ag.values)
		if err == nil {
			d, err = l.Decide(scope)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			ag.decider.fail(a, err, trace)
			return
		}
		h, body, bad := ag.written(ctx, d, id, generation, bucket)
		said := func(_ kv.Decision, _ uint64, err error) {
			if err != nil && ctx.Err() == nil {
				ag.log.Error("a round could not be recorded; the sweep tries again", "tenant", id.Tenant, "run", id.Plain(), "scope", scope, "error", err)
			}
		}
		if bad != nil {
			said(0, 0, bad)
			return
		}
		ag.store.CreateAsync(ctx, subjects.RoundRecord(id, generation, scope, ag.store.Shards()), h, body, nil, said)
	})
}

// written writes the record of a round. What is too long for a message is stored in a blob before: it goes by the digest of its
// bytes, so that who dies in between leaves what the next one finds, and one whose code makes other bytes stores others. Which
// blob counts is the record's to say. The error is one to try again after.
func (ag *agentry) written(ctx context.Context, d *wire.Round, id subjects.Run, generation uint64, bucket string) (nats.Header, []byte, error) {
	h, body, err := d.Message()
	if err != nil || len(body) > wire.MaxRound {
		d = &wire.Round{Problems: []fault.Problem{{Code: fault.LimitExceeded, Message: fmt.Sprintf("the answer is too large to be run as one round: its record would have %d bytes, at most %d are allowed", len(body), wire.MaxRound),
			Hint: "answer with less at a time, or refer to what results have instead of writing it"}}}
		h, body, _ = d.Message() // of texts
	}
	if len(body) <= ag.inline {
		return h, body, nil
	}
	if err := ag.store.RecordNeeds(ctx, wire.LargeRoundNeeds()); err != nil { // the run goes to one who knows, once the record stands
		return nil, nil, err
	}
	sum := sha256.Sum256(body)
	blob, err := ag.store.PutOnce(ctx, bucket, subjects.RoundBlobName(id, generation, hex.EncodeToString(sum[:])), body)
	if err != nil {
		return nil, nil, err
	}
	h, body = wire.LargeRoundMessage(blob)
	return h, body, nil
}

// guardCall is a call of a guard of an agent: what it is asked about, and where that is read.
type guardCall struct {
	agents.Guarded
	path  string // of the call that waits, within the round
	since uint64
	in    *inputs // of such a call
	value source  // of all else but an input

	about  json.RawMessage // one or the other, once it was read
	unmade *fault.Error    // why there are no arguments
}

// guardOf gathers what a call of a guard is asked about; nil for any other call.
func (ag *agentry) guardOf(r *run, x *looked, c, of machine.Call, round int) *guardCall {
	about, is := machine.GuardAsked(r.machine, c)
	if !is {
		return nil
	}
	g := &guardCall{Guarded: agents.Guarded{On: about.On, Round: round}, value: sourceOf(r, about.Value)}
	if about.Of != of {
		g.Step, g.Tool = r.token(about.Of), r.step(about.Of.Step).Tool
	}
	if about.On == plan.OnCall {
		g.path, g.since = x.pathOf(r, about.Of), machine.ReadySince(r.machine, about.Of)
		in := asWritten(r, about.Of)
		in.resolver, in.schema = nil, nil
		g.in = &in
	}
	return g
}

// size bounds the bytes that are read for it.
func (g *guardCall) size() int64 {
	switch {
	case g == nil:
		return 0
	case g.in != nil:
		return g.in.most(false)
	}
	return g.value.size()
}

// read reads what that takes.
func (g *guardCall) read(ctx context.Context, v *values) (err *fault.Error) {
	if g.in == nil {
		g.about, err = v.read(ctx, &g.value)
		return err
	}
	g.about, g.unmade = v.arguments(ctx, g.in)
	return nil
}

// message is what the guard is called with; nil where there is nothing to be asked.
func (g *guardCall) message(l *agents.Loop) json.RawMessage {
	switch {
	case g.in != nil && (g.unmade != nil || !g.OfCall(l, g.path, g.since, g.about)):
		return nil // whoever sends the call finds out the same, and says so
	case g.On == plan.OnResult:
		g.Result = g.about
	case g.On == plan.OnOutput:
		g.Output = g.about
	}
	return g.Message(l)
}

// weighing is what is found out of a call in a round before it begins: what it would be called with, and whether a guard
// has a person asked about it. nil for any other call.
type weighing struct {
	x     *looked
	round int
	path  string
	since uint64
	which machine.Weighing
}

// weighs gathers that.
func (ag *agentry) weighs(r *run, c machine.Call) *weighing {
	of, round, own, inRound := machine.RoundAround(r.machine, c)
	if _, isGuard := machine.GuardAsked(r.machine, c); !inRound || own || isGuard || machine.Summary(r.machine, c) {
		return nil
	}
	x, _, _ := ag.atGate(r, of, round, nil)
	return &weighing{x, round, x.pathOf(r, c), machine.ReadySince(r.machine, c), machine.Weighs(r.machine, c)}
}

func (w *weighing) size() int64 {
	if w == nil {
		return 0
	}
	return w.x.size
}

// found returns what a call would be called with, and which guard has a person asked about it, and why; nil for none.
func (w *weighing) found(ctx context.Context, v *values, args json.RawMessage) (with json.RawMessage, no *plan.Refusal, err *fault.Error) {
	if w == nil {
		return args, nil, nil
	}
	with = args
	err = w.x.ask(ctx, v, func(l *agents.Loop) *fault.Error {
		with, no = agents.Weigh(l, w.round, w.path, w.since, args, w.which.Passed)
		return nil
	})
	return with, no, err
}

// question returns what completes a question about a call in a round of an agent, and how many bytes that reads: the gate
// of a step that asks a person is asked, and what it returns is what the step fails with; of a call is shown what it would
// be called with, and why a guard asks. Anywhere else there is none.
func (ag *agentry) question(r *run, q machine.Question) (complete func(context.Context, *outcome.Question) *fault.Error, size int64) {
	w := ag.weighs(r, q.Call)
	if w == nil || q.Item == 0 && r.step(q.Step).ForEach != nil {
		return func(context.Context, *outcome.Question) *fault.Error { return nil }, 0
	}
	return func(ctx context.Context, doc *outcome.Question) *fault.Error {
		if q.Kind != outcome.Ask {
			with, no, err := w.found(ctx, ag.values, doc.Arguments)
			if err != nil {
				return err
			}
			if doc.Arguments = with; no != nil && (doc.Text == "" || w.which.Number > 1) {
				doc.Text, doc.Guard = no.Err.Message, plan.OnCall
			}
			return nil
		}
		return w.x.ask(ctx, ag.values, func(l *agents.Loop) *fault.Error {
			_, _, err := l.Ready(w.round, w.path, w.since, nil)
			return err
		})
	}, w.size()
}
