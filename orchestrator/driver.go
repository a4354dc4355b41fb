package orchestrator

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/seal"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// driver feeds the machines of runs with records, lists and deadlines, and carries out what they ask for.
type driver struct {
	*env
	times       *ledgerTime
	timers      *timers
	values      *values
	memory      *memory
	dispatcher  *dispatcher
	decider     *decider
	deadLetters *deadLetters
	announcer   *announcer
	sinks       *sinks
	reg         *registry
	evaluator   *evaluator
	questions   *questions
	suspects    *suspects
	cursors     *cursors
	finish      func(*run) // is told of a run whose last step is decided

	letGoFrom int64 // bytes of results that a run may hold

	effects machine.Effects // scratch
}

// begin starts the machine of a run, with what was recorded of it so far.
func (dr *driver) begin(r *run, now time.Time) {
	dr.effects.Reset()
	r.machine.Begin(&dr.effects)
	dr.tell.open(r)
	dr.expand(r, now)
	if !r.recovered {
		dr.announcer.start(r)
	}
	dr.unpark(r, now)
	dr.perform(r)
	if r.uncompared {
		dr.suspects.add(r, 0)
		dr.suspects.compareSoon()
	}
}

// take takes a record of a run that goes on.
func (dr *driver) take(r *run, e entry) {
	if !e.Time.After(dr.cursors.alone[r.id.Partition()]) { // another may have read it before, and sent what follows from it
		r.uncompared = true
		dr.suspects.add(r, 0)
		dr.suspects.compareSoon()
	}
	if r.awaitingInput() {
		r.parked = append(r.parked, e)
		return
	}
	now := dr.times.of(r)
	dr.effects.Reset()
	if dr.apply(r, e, now) {
		dr.perform(r)
	}
}

// outstanding tells each of the attempts of a run that should be out. What is to be decided or stopped is so once more,
// which is harmless.
func (dr *driver) outstanding(r *run, each func(d machine.Dispatch, now time.Time)) {
	now := dr.times.of(r)
	dr.effects.Reset()
	r.machine.Outstanding(now, &dr.effects)
	dr.expand(r, now)
	for _, d := range dr.effects.Dispatch {
		if !r.changes.withholds(d) {
			each(d, now)
		}
	}
	dr.effects.Dispatch = dr.effects.Dispatch[:0]
	dr.perform(r)
}

// tick wakes runs at their deadlines.
func (dr *driver) tick() {
	mono := dr.clock.Mono()
	for r := dr.timers.due(mono); r != nil; r = dr.timers.due(mono) {
		if r.phase != running {
			continue
		}
		now := r.time.At(mono)
		dr.effects.Reset()
		r.machine.Tick(now, &dr.effects)
		dr.perform(r)
	}
}

// perform carries out the effects gathered for a run.
func (dr *driver) perform(r *run) {
	eff := &dr.effects
	r.changes.settle(eff)
	defer func() { // events come after what somebody waits for
		for _, c := range eff.Settled {
			dr.announcer.step(r, c)
			dr.sinks.settled(r, c)
		}
	}()
	if eff.Finished {
		r.phase = finishing
		dr.timers.set(r, time.Time{})
		dr.finish(r)
		return
	}
	for _, c := range eff.Settled {
		dr.deadLetters.write(r, c)
	}
	if r.recovered && len(eff.Dispatch) > 0 {
		// What an earlier owner may have sent is compared with what is out before anything is sent again; while a blob
		// is fetched, records that decide some of it are still to be read.
		r.recovered = r.awaitingInput()
		r.uncompared = true
		dr.suspects.add(r, longGone)
		dr.suspects.compareSoon()
	} else {
		if r.uncompared && len(eff.Dispatch) > 0 { // a comparison that goes on knows nothing of these
			dr.suspects.add(r, 0)
			dr.suspects.compareSoon()
		}
		for _, d := range eff.Dispatch {
			if !r.machine.Wanted(d.Call, d.Attempt) {
				continue // decided by a record that was read together with the one that asked for it
			}
			if r.changes.hold(d) {
				continue
			}
			if again := r.machine.Decided(d.Call); d.Attempt > 1 && (again == nil || again.Asks == nil) {
				dr.announcer.retry(r, d)
			}
			dr.dispatcher.offer(r, d, 0)
		}
	}
	if len(eff.Decide) > 0 {
		dr.decider.decide(r, eff.Decide)
	}
	for _, step := range eff.Judge {
		dr.evaluator.condition(r, step)
	}
	for _, d := range eff.Derive {
		dr.evaluator.value(r, d)
	}
	for _, step := range eff.Fit {
		dr.evaluator.fit(r, step)
	}
	for _, c := range eff.Weigh {
		dr.evaluator.approval(r, c)
	}
	for _, c := range eff.Until {
		dr.evaluator.until(r, c)
	}
	for _, c := range eff.Round {
		dr.dispatcher.agentry.round(r, c)
	}
	dr.questions.carryOut(r, eff)
	for _, of := range eff.Shape {
		dr.evaluator.output(r, of)
	}
	for _, d := range eff.Late {
		dr.decider.late(r, d)
	}
	for _, c := range eff.Close {
		dr.decider.closeScope(r, c)
	}
	if eff.Stop != nil {
		dr.decider.stop(r, wire.Stop{Reason: eff.Stop.Reason, By: eff.Stop.By}, func(kv.Decision, error) {})
	}
	dr.timers.set(r, r.machine.NextDeadline())
}

// unpark applies what was parked until a blob has to be fetched or nothing is left. Effects gather.
func (dr *driver) unpark(r *run, now time.Time) {
	for len(r.parked) > 0 && !r.awaitingInput() {
		next := r.parked[0]
		r.parked = r.parked[1:]
		dr.apply(r, next, now)
	}
	if len(r.parked) == 0 {
		r.parked = nil
	}
}

// apply hands one record to the machine; false means that a blob is fetched first and the record parked before all
// others.
func (dr *driver) apply(r *run, e entry, now time.Time) bool {
	rec := machine.Record{Seq: e.Seq, Time: e.Time}
	switch e.rec.Kind {
	case subjects.StopKind:
		stop := wire.ParseStop(e.Data)
		rec.Stop = &machine.Stop{Reason: stop.Reason, By: stop.By}
	case subjects.StepKind:
		c, token, ok := r.call(e.rec.Attempt)
		if !ok {
			return true // a record that no dispatch of ours can have asked for
		}
		rec.Result = decodeResult(c, e, r, func() *wire.Redactor { return dr.redactor(r) })
		if named := token; named != "" {
			rec.Result.Token = &named
		}
		if h := rec.Result.Handle; h != nil && !h.Checked {
			dr.fetch(r, rec)
			return false
		}
	case subjects.ToldKind:
		if rec.Told = readTold(r, e); rec.Told == nil {
			return true
		}
	case subjects.AnswerKind:
		c, token, ok := r.callOf(e.rec.Step)
		if !ok {
			return true
		}
		rec.Answer = answerOf(c, e.rec.Number, wire.ParseAnswer(e.Data))
		rec.Answer.Token = token
	case subjects.AmendKind:
		if !dr.amend(r, e, &rec) || !dr.earlier(r, rec, machine.MissingFor(r.machine, rec.Amendment)) {
			return false
		}
	case subjects.RoundKind:
		if !ofRound(r, e.rec.Step) {
			return true
		}
		if !dr.round(r, e, &rec) {
			return false
		}
	case subjects.SayKind:
		rec.Say = sayOf(e)
	case subjects.ClaimKind:
		if !handsOver(r, e.rec.Attempt) {
			return true
		}
		rec.Claim = &machine.Claim{Token: e.rec.Attempt.Step, Attempt: e.rec.Attempt.Number, Nonce: wire.ParseClaim(e.Data).Nonce}
	default:
		return true
	}
	dr.record(r, rec, now)
	return true
}

// handsOver reports whether an attempt is of a planner whose agent lets it hand over steps: nobody else's claims decide anything.
func handsOver(r *run, a subjects.Attempt) bool {
	_, _, is := planStep(r, subjects.InScope(subjects.ScopeOf(a.Step), plan.StreamStep))
	_, _, ok := r.call(a)
	return is && ok
}

// record hands a whole record to the machine.
func (dr *driver) record(r *run, rec machine.Record, now time.Time) {
	r.machine.Apply(rec, now, &dr.effects)
	if machine.Recalls(r.machine) { // not even which call it is of can be said before the state is computed anew
		r.unheard = append(r.unheard, rec)
	} else {
		dr.heard(r, &rec, now)
	}
	dr.letGo(r)
	dr.expand(r, now)
}

// heard lets all others know of a record that the machine has taken.
func (dr *driver) heard(r *run, rec *machine.Record, now time.Time) {
	if x := decidedNow(r, rec); x != nil {
		r.changes.freeze()
		if r.machine.Amendment(x.Scope, x.Revision) == x && x.InForce() {
			dr.announcer.amended(r, x)
		}
	}
	if rec.Answer != nil && rec.Answer.Step != machine.NotYet {
		dr.questions.answered(r, rec.Answer)
	}
	if rec.Stop != nil {
		r.people.stopped()
	}
	if rec.Say != nil {
		r.agents.heardOut(wordOf{rec.Say.Agent, rec.Say.ID})
	}
	if rec.Result != nil && rec.Result.Step >= 0 {
		dr.dispatcher.decided(r, rec.Result)
		r.agents.over(rec.Result.Call)
		dr.tell.record(r, rec, now)
	}
}

// letGoFrom is how many bytes of results a run may hold, before its machine looks which of them nobody refers to any more.
const letGoFrom = 1 << 20

// letGo lets the machine of a run let go of what nobody refers to any more. What the planner of an agent is shown with each
// request stays.
func (dr *driver) letGo(r *run) {
	machine.LetGo(r.machine, dr.letGoFrom, func(of, planner machine.Call) bool {
		return r.agents != nil && dr.dispatcher.agentry.sendsWhole(r, of, planner)
	}, func(step int) { delete(r.lists, step) })
}

// recall reads all again that the machine has let go of, where it is to compute its state anew.
func (dr *driver) recall(r *run) {
	if r.recalling || !machine.Recalls(r.machine) {
		return
	}
	r.recalling = true
	dr.evaluator.readAgain(r, machine.MissingOf(r.machine, nil), func() {
		r.recalling, r.derivable = false, nil
		now := dr.times.of(r)
		dr.effects.Reset()
		machine.Recall(r.machine, now, &dr.effects)
		heard := r.unheard
		r.unheard = nil
		for i := range heard {
			dr.heard(r, &heard[i], now)
		}
		dr.expand(r, now)
		dr.unpark(r, now)
		dr.perform(r)
	})
}

// earlier gives back to the machine what a round of an agent, or an amendment of one, refers to of earlier rounds, before its
// record is applied;
// false means that it is read first and the record waits before all others.
func (dr *driver) earlier(r *run, rec machine.Record, missing []*machine.Result) bool {
	if len(missing) == 0 {
		return true
	}
	r.busy = true
	dr.evaluator.readAgain(r, missing, func() {
		r.busy = false
		now := dr.times.of(r)
		dr.effects.Reset()
		dr.record(r, rec, now)
		dr.unpark(r, now)
		dr.perform(r)
	})
	return false
}

// round takes the record of a round; false means that something is read first, and the record waits before all others.
func (dr *driver) round(r *run, e entry, rec *machine.Record) bool {
	if blob := wire.RoundBlob(e.Header, e.Data, r.id, r.generation, r.bucket()); blob != nil {
		dr.fetchRound(r, e, blob)
		return false
	}
	rec.Round = roundOf(r, e)
	return dr.earlier(r, *rec, machine.MissingOf(r.machine, rec.Round))
}

// fetchRound reads the blob that a round lies in, which takes the place of its record's body; records behind it wait. It was
// there before its record was. What can't be read any more is an answer of no use, unless another owner has purged the run.
func (dr *driver) fetchRound(r *run, e entry, blob *outcome.Handle) {
	r.busy = true
	dr.memory.reserve(blob.Size, func(ctx context.Context) {
		body, err := dr.values.blob(ctx, blob)
		purged := err != nil && ctx.Err() == nil && dr.evaluator.purged(ctx, r.id, r.generation)
		if err != nil {
			unreadable := wire.UnreadableRound()
			_, body, _ = unreadable.Message() // of texts
		}
		dr.post(func() {
			r.busy = false
			switch {
			case r.phase != running || ctx.Err() != nil:
				return
			case purged:
				dr.evaluator.over(r)
				return
			case err != nil:
				dr.log.Error("a round of an agent can't be read: it counts as an answer of no use", "tenant", r.id.Tenant, "run", r.id.Plain(), "scope", e.rec.Step, "error", err)
			}
			e.Header, e.Data = wire.Versioned(), body
			r.parked = append([]entry{e}, r.parked...)
			now := dr.times.of(r)
			dr.effects.Reset()
			dr.unpark(r, now)
			dr.perform(r)
		})
	})
}

// decidedNow returns the amendment that a record is, or that a person said with it what becomes of it; nil for none.
func decidedNow(r *run, rec *machine.Record) *machine.Amendment {
	if rec.Answer == nil || rec.Answer.Step == machine.NotYet {
		return rec.Amendment
	}
	counts, _, x := machine.Stands(r.machine, rec.Answer.Call, rec.Answer.Digest)
	if counts != rec.Answer {
		return nil
	}
	return x
}

// enter makes sure that the inputs of composites can be read which lie in blobs, or are large.
func (dr *driver) enter(r *run) {
	for _, c := range dr.effects.Enter {
		if r.entering[c] || !r.machine.Entering(c) {
			continue
		}
		if r.entering == nil {
			r.entering = map[machine.Call]bool{}
		}
		r.entering[c] = true
		in := r.inputs(c)
		in.resolver = nil // that of a run is for one goroutine
		dr.memory.reserve(in.most(false), func(ctx context.Context) {
			_, err := dr.values.arguments(ctx, &in)
			dr.post(func() { dr.entered(ctx, r, c, err) })
		})
	}
	dr.effects.Enter = dr.effects.Enter[:0]
}

// entered tells the machine that an input can be read, or records that it can't.
func (dr *driver) entered(ctx context.Context, r *run, c machine.Call, err *fault.Error) {
	delete(r.entering, c)
	if r.phase != running || ctx.Err() != nil {
		return
	}
	now := dr.times.of(r)
	dr.effects.Reset()
	if err == nil {
		r.machine.Enter(c, now, &dr.effects)
	} else {
		dr.lost(r, c, err, now)
	}
	dr.expand(r, now)
	dr.unpark(r, now)
	dr.perform(r)
}

// expand reads the lists that the machine asks for and tells it how long they are. What lies in a blob is
// read beside the loop.
func (dr *driver) expand(r *run, now time.Time) {
	dr.recall(r)
	for len(dr.effects.Expand) > 0 {
		step := dr.effects.Expand[0]
		dr.effects.Expand = dr.effects.Expand[1:]
		if r.reading[step] || !r.machine.Expanding(step) {
			continue
		}
		in := r.unread(machine.Call{Step: step})
		in.resolver = r.resolverOf(in.plan, in.numbers)
		in.gather(r)
		if in.apart {
			dr.expandLater(r, in)
			continue
		}
		list, err := dr.values.list(dr.ctx, &in)
		if err != nil && err.Code == fault.TooLarge { // for here
			in.resolver = nil
			dr.expandLater(r, in)
			continue
		}
		dr.expanded(r, step, list, err, now)
	}
	dr.enter(r)
}

// expandLater reads a list that is large, or whose parts lie in blobs.
func (dr *driver) expandLater(r *run, in inputs) {
	step := in.call.Step
	if r.reading == nil {
		r.reading = map[int]bool{}
	}
	r.reading[step] = true
	dr.memory.reserve(in.most(true), func(ctx context.Context) {
		list, err := dr.values.list(ctx, &in)
		dr.post(func() {
			delete(r.reading, step)
			if r.phase != running || ctx.Err() != nil {
				return
			}
			now := dr.times.of(r)
			dr.effects.Reset()
			dr.expanded(r, step, list, err, now)
			dr.expand(r, now)
			dr.unpark(r, now)
			dr.perform(r)
		})
	})
}

// expanded tells the machine of a list, or records that there is none. The record is that of the step's own first
// attempt, which is never sent.
func (dr *driver) expanded(r *run, step int, list [][]byte, err *fault.Error, now time.Time) {
	if err != nil {
		dr.lost(r, machine.Call{Step: step}, err, now)
		return
	}
	if r.lists == nil {
		r.lists = map[int][][]byte{}
	}
	r.lists[step] = list
	if r.step(step).Plan != nil {
		r.machine.Elements(step, list)
	}
	r.takeOver(step, list)
	r.machine.Expand(step, len(list), now, &dr.effects)
}

// lost records why the list or the input of a call can't be read, where nothing is recorded of it yet.
func (dr *driver) lost(r *run, c machine.Call, err *fault.Error, now time.Time) {
	if !machine.Lost(r.machine, c, now, &dr.effects) {
		dr.decider.fail(r.attempt(c, 1), err, r.trace)
	}
}

// decodeTold reads the record of an evaluation of a step. It never fails: the record stands and decides.
func decodeTold(c machine.Call, e entry, r *run) *machine.Told {
	if e.rec.What != subjects.ToldValue {
		told := wire.ParseTold(e.Data)
		return &machine.Told{
			Call: c, Approval: e.rec.What == subjects.ToldApproval, Until: e.rec.What == subjects.ToldUntil, Fits: e.rec.What == subjects.ToldState,
			Holds: told.Holds, Error: told.Error, Number: e.rec.Number, Guard: told.Guard,
		}
	}
	told := wire.ParseToldValue(e.Data, r.id, r.generation, r.bucket(), plan.MaxValues)
	value := &machine.Result{Value: told.Value, Handle: told.Handle, Size: int64(len(told.Value)), Error: told.Error}
	if told.Handle != nil {
		value.Size = told.Handle.Size
	}
	return &machine.Told{Call: c, Value: value}
}

// decodeResult reads the record of an attempt of a run. It never fails: the record stands and decides. redactor
// returns what takes the secrets of the run out of its error.
func decodeResult(c machine.Call, e entry, r *run, redactor func() *wire.Redactor) *machine.Result {
	if bad := wire.AboveRun(e.Header, r.version); bad != nil {
		return &machine.Result{Call: c, Attempt: e.rec.Attempt.Number, Error: bad}
	}
	codes := wire.CodesOf(r.plan.Language, r.start.Needs)
	w := wire.ParseCleanResult(e.Header, e.Data, codes, redactor)
	if codes.Guards && w.Error != nil && w.Error.Code == fault.Rejected && !strings.HasPrefix(w.Worker, ownerMark) { // a worker's own word
		codes.Guards = false
		w = wire.ParseCleanResult(e.Header, e.Data, codes, redactor)
	}
	if w.Handle != nil {
		if w.Error = wire.CheckResult(w.Handle, e.rec.Attempt, r.bucket(), kv.MaxBlob); w.Error != nil {
			w.Handle = nil
		}
	}
	r.agents.heard(e.rec.Attempt, &w)
	var asks *machine.Asks
	if w.Asks != nil && w.Error == nil {
		asks = &machine.Asks{Body: e.Data}
	}
	return &machine.Result{
		Asks: asks,
		Call: c, Attempt: e.rec.Attempt.Number, Error: w.Error, Body: apart(w.Body), Text: w.Text, Handle: w.Handle,
		ByOwner: strings.HasPrefix(w.Worker, ownerMark), Worker: interned(strings.TrimPrefix(w.Worker, ownerMark)), Started: w.Started, Ended: w.Ended,
		Deliveries: int32(w.Deliveries),
	}
}

// small is the size of a body up to which the message that it came in, with its subject and its headers, is much more.
const small = 1 << 10

// apart returns the body of a message to keep: a small one without the rest of the message.
func apart(body []byte) []byte {
	if len(body) > small {
		return body
	}
	return bytes.Clone(body)
}

// interned returns a header's value to keep: those of a message are parts of one string that holds all of them. Equal
// ones, such as the names of workers, are one.
func interned(value string) string { return unique.Make(value).Value() }

// redactor returns the run's; nil where it has no secrets.
func (dr *driver) redactor(r *run) *wire.Redactor {
	if r.clean.made {
		return r.clean.r
	}
	r.clean.made = true
	keys := dr.cfg.SecretsKey
	opened, err := r.context.Open(func(key, value string) (string, error) {
		return keys.Open(seal.About(r.id.Tenant, r.id.ID, key), value)
	})
	if err != nil {
		dr.log.Warn("the secrets of a run can't be taken out of its errors", "tenant", r.id.Tenant, "run", r.id.Plain(), "error", fault.As(err).Message)
		opened = r.context // what is not sealed of them can
	}
	all := []wire.Context{opened.All}
	for _, c := range opened.Steps {
		all = append(all, c)
	}
	r.clean.r = wire.NewRedactor(all...)
	return r.clean.r
}

// fetch reads the blob of a result that nobody has checked before the machine sees its record, since what lies in it
// decides whether it counts as a success. Later records of the run wait.
func (dr *driver) fetch(r *run, rec machine.Record) {
	r.busy = true
	dr.job(func(ctx context.Context) {
		body, err := dr.values.blob(ctx, rec.Result.Handle)
		dr.post(func() {
			r.busy = false
			if r.phase != running || ctx.Err() != nil {
				return
			}
			if err != nil {
				rec.Result.Error = unreadable(err)
			}
			rec.Result.Body = body
			now := dr.times.of(r)
			dr.effects.Reset()
			dr.record(r, rec, now)
			dr.unpark(r, now)
			dr.perform(r)
		})
	})
}

// readTold reads the record of an evaluation; nil where it is of nothing that the plan has.
func readTold(r *run, e entry) *machine.Told {
	if e.rec.What == subjects.ToldOutput {
		return readToldOutput(r, e)
	}
	c, token, ok := r.callOf(e.rec.Step)
	if !ok || c.Step == machine.ThePlan {
		return nil
	}
	told := decodeTold(c, e, r)
	told.Token = token
	return told
}

// readToldOutput reads the record of what the plan came to, or a composite, which goes by its token.
func readToldOutput(r *run, e entry) *machine.Told {
	told := &machine.Told{Call: machine.Call{Step: machine.ThePlan}}
	switch {
	case subjects.IsIteration(e.rec.Step): // of a round of an agent
		told.Step, told.Token = machine.NotYet, e.rec.Step
	case e.rec.Step == subjects.RootScope:
		if r.machine.Plan().Output == nil {
			return nil
		}
	default:
		if step, _, ok := planStep(r, e.rec.Step); !ok || step.Plan == nil {
			return nil
		}
		told.Step, told.Token = machine.NotYet, e.rec.Step
	}
	w := wire.ParseCleanResult(e.Header, e.Data, wire.Codes{Own: true}, func() *wire.Redactor { return nil })
	told.Output = &machine.Result{Call: told.Call, Attempt: 1, Error: w.Error, Body: w.Body, Handle: w.Handle, ByOwner: true}
	return told
}

// amend hands the record of an amendment to the machine; false means that what its tools are is read first and the record
// waits before all others.
func (dr *driver) amend(r *run, e entry, rec *machine.Record) bool {
	a := wire.ParseAmend(e.Data)
	rec.Amendment = amendmentOf(r, e.rec, &a)
	if r.agents != nil && a.Round != nil {
		r.agents.amended.Put(amendedRound{e.rec.Step, e.rec.Number}, a.Round)
	}
	if len(a.Tools) == 0 {
		return true
	}
	c := changesOf(r)
	c.frozen = append(c.frozen, &frozenLater{rec.Amendment, a.Tools})
	unknown := map[string]*wire.FrozenTool{}
	for name, t := range a.Tools {
		if _, known := r.schemas[name]; !known || t.Plan {
			unknown[name] = t
		}
	}
	if len(unknown) == 0 {
		return true
	}
	r.busy = true
	dr.learn(r, *rec, unknown)
	return false
}

// learn reads what the tools of an amendment are. The plan of a template decides what becomes of the run, so that nobody
// goes on without; the schema of any other tool its worker has too.
func (dr *driver) learn(r *run, rec machine.Record, tools map[string]*wire.FrozenTool) {
	dr.job(func(ctx context.Context) {
		learned := schemas{}
		templates, err := dr.reg.templates(ctx, &wire.Start{Tools: tools})
		for _, name := range slices.Sorted(maps.Keys(tools)) {
			schema, err := dr.reg.schema(ctx, tools[name])
			if err != nil && ctx.Err() == nil {
				dr.log.Warn("the schema of a tool can't be read: its worker checks the arguments alone", "tool", name, "error", err)
			}
			learned[name] = schema
		}
		dr.post(func() {
			if err != nil && r.phase == running && ctx.Err() == nil {
				dr.log.Error("the template that an amendment calls can't be read: trying again", "tenant", r.id.Tenant, "run", r.id.Plain(), "error", err)
				dr.later(time.Second, func() { dr.learn(r, rec, tools) })
				return
			}
			rec.Amendment.Templates = templates
			dr.learned(ctx, r, rec, learned)
		})
	})
}

// learned goes on with an amendment once it is known what its tools are.
func (dr *driver) learned(ctx context.Context, r *run, rec machine.Record, learned schemas) {
	r.busy = false
	if r.phase != running || ctx.Err() != nil {
		return
	}
	maps.Copy(learned, r.schemas) // which others share
	r.schemas = learned
	now := dr.times.of(r)
	dr.effects.Reset()
	dr.record(r, rec, now)
	dr.unpark(r, now)
	dr.perform(r)
}

// settleAmendments goes on where an amendment could not be recorded.
func (dr *driver) settleAmendments(r *run) {
	if r.phase == running {
		dr.effects.Reset()
		dr.perform(r)
	}
}
