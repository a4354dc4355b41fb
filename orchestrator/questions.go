package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/orchestrator/agents"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// questions tells people what runs wait for, and records what nobody said in time. The machine knows the questions; the
// entries of the bucket are for who looks for them, so they are written behind it, repaired by the sweep, and removed
// when they are answered.
type questions struct {
	*env
	values    *values
	memory    *memory
	announcer *announcer
	agentry   *agentry
	runs      *runTable
	cursors   *cursors
	reg       *registry

	sweeping bool
}

// answerOf returns the record of an answer as the machine takes it.
func answerOf(c machine.Call, number int, a wire.Answer) *machine.Answer {
	return &machine.Answer{
		Call: c, Number: number, Digest: a.Digest, Decision: a.Decision, Value: a.Value, Arguments: a.Arguments,
		Error: a.Error, Reason: a.Reason, By: a.By, Verified: a.Verified,
	}
}

// carryOut does what the machine asks for about questions.
func (qs *questions) carryOut(r *run, eff *machine.Effects) {
	for _, c := range eff.Ask {
		if q := r.machine.Question(c); q != nil && r.asks().entries[c].number != q.Number {
			qs.tell(r, *q)
		}
	}
	for _, q := range eff.Expire {
		qs.record(r, &q, wire.Answer{Digest: q.Digest, Decision: wire.Expire}, func(kv.Decision, error) {})
	}
	for _, c := range eff.Settled {
		qs.remove(r, c)
	}
	if r.people == nil {
		return
	}
	for _, c := range slices.SortedFunc(maps.Keys(r.people.changes), byPlace) { // nobody is asked about a plan that is over
		if r.machine.Question(c) == nil {
			qs.remove(r, c)
		}
	}
}

// proposed fills in what a person is shown of an amendment.
func proposed(a *machine.Amendment, doc *outcome.Question) {
	doc.Revision, doc.By, doc.Verified, doc.Reason = a.Revision, a.By, a.Verified, a.Reason
	doc.Change, _ = json.Marshal(changeOf(a)) // it was read from JSON
}

// roundAsked fills in what a person is shown of a round of an agent.
func roundAsked(r *run, q *machine.Question, doc *outcome.Question) {
	if segments, ok := subjects.ParseStepToken(q.Round.Scope); ok {
		doc.Round = &segments[len(segments)-1].Number
	}
	if doc.Tool = r.step(q.Step).Does().Tool; r.agents == nil {
		return
	}
	if d := r.agents.defined[doc.Tool]; d != nil && d.Approval != nil {
		doc.Text = d.Approval.Ask
	}
	if rec := r.agents.records.At(q.Round.Scope); rec != nil {
		doc.Plan = agents.Shown(rec)
	}
}

// tell writes the entry of an open question. What can't be shown because its references lead nowhere fails the step, as
// it would when it is called: by a record in the place of the answer, where no worker may write.
func (qs *questions) tell(r *run, q machine.Question) {
	r.asks().entries[q.Call] = questionEntry{number: q.Number}
	bucket := r.bucket()
	doc := &outcome.Question{
		Run: r.id.Plain(), Tenant: r.id.Tenant, Generation: r.generation, Step: r.token(q.Call), Number: q.Number, Kind: q.Kind,
		Digest: q.Digest, Since: q.Since,
	}
	if !q.Until.IsZero() {
		doc.Until = &q.Until
	}
	if on := machine.Unanswered(r.machine, &q); doc.Until != nil && on != machine.Expire {
		doc.OnTimeout = on
	}
	if q.OfPlan() {
		switch {
		case q.Round != nil:
			roundAsked(r, &q, doc)
		case q.Amendment != nil:
			proposed(q.Amendment, doc)
			fallthrough
		default:
			doc.Text = r.plan.Approval.Text()
		}
		r.asks().changes[q.Call] = true
		qs.job(func(ctx context.Context) { qs.put(ctx, r, bucket, q, doc) })
		return
	}
	doc.Tool = r.step(q.Step).Tool
	if q.Guard != nil && q.Guard.On != plan.OnCall {
		qs.tellOfGuard(r, q, doc)
		return
	}
	if q.Asks != nil {
		qs.tellOfWorker(r, q, doc)
		return
	}
	in := r.inputs(q.Call)
	in.gather(r) // for the text, whatever the arguments refer to
	in.resolver = nil
	together := q.Item == 0 && in.plan.Steps[in.step].ForEach != nil
	complete, size := qs.agentry.question(r, q)
	if q.Guard != nil {
		doc.Text, doc.Guard = q.Guard.Why, q.Guard.On
	}
	qs.memory.reserve(in.most(together)+size, func(ctx context.Context) {
		err := qs.values.shown(ctx, &in, together, doc)
		if err == nil || q.Kind == outcome.Ask {
			if no := complete(ctx, doc); no != nil {
				err = no
			}
		}
		if err != nil {
			if ctx.Err() == nil {
				qs.post(func() { qs.unshown(r, q, err) })
			}
			return
		}
		qs.put(ctx, r, bucket, q, doc)
	})
}

// tellOfGuard is tell for what went in or out of an agent and a guard asks about.
func (qs *questions) tellOfGuard(r *run, q machine.Question, doc *outcome.Question) {
	doc.Text, doc.Guard = q.Guard.Why, q.Guard.On
	value, bucket := sourceOf(r, q.Guard.Value), r.bucket()
	in := r.unread(q.Call) // of an agent, whose input is asked about
	in.gather(r)
	qs.memory.reserve(value.size()+in.most(false), func(ctx context.Context) {
		var err *fault.Error
		if q.Guard.On == plan.OnInput && q.Guard.Value.Value == nil {
			doc.Arguments, err = qs.values.arguments(ctx, &in)
		} else {
			doc.Arguments, err = qs.values.read(ctx, &value)
		}
		switch {
		case ctx.Err() != nil:
		case err != nil:
			qs.post(func() { qs.unshown(r, q, err) })
		default:
			qs.put(ctx, r, bucket, q, doc)
		}
	})
}

// tellOfWorker is tell for what the worker of a call asks. It all stands in its record.
func (qs *questions) tellOfWorker(r *run, q machine.Question, doc *outcome.Question) {
	asks, err := wire.ParseAsks(q.Asks.Body)
	if err != nil { // of no record that was decoded here
		qs.unshown(r, q, err)
		return
	}
	doc.Attempt = q.Attempt
	fillAsked(&asks.Asked, doc)
	bucket := r.bucket()
	qs.job(func(ctx context.Context) { qs.put(ctx, r, bucket, q, doc) })
}

// fillAsked fills in what a person is asked for.
func fillAsked(a *tool.Asked, doc *outcome.Question) {
	doc.Text, doc.Schema = a.Question, a.Schema
	if len(a.Choices) > 0 {
		doc.Choices, _ = json.Marshal(a.Choices) // they were read from JSON
	}
}

// unshown records that there is nothing to show for a question, so that nobody can be asked.
func (qs *questions) unshown(r *run, q machine.Question, why *fault.Error) {
	if r.phase != running { // it is over, or another's
		return
	}
	if now := r.machine.Question(q.Call); now == nil || now.Number != q.Number {
		return // answered, or asked anew: then it is found out again
	}
	qs.record(r, &q, wire.Answer{Digest: q.Digest, Error: why}, func(_ kv.Decision, err error) {
		if err != nil {
			qs.post(func() { delete(r.asks().entries, q.Call) }) // the sweep tries again
		}
	})
}

// shown fills in what a person is shown of a call.
func (v *values) shown(ctx context.Context, in *inputs, together bool, doc *outcome.Question) *fault.Error {
	x := reader{values: v, ctx: ctx, in: in}
	text, err := x.resolver().Question(in.step, in.item, x.result)
	if x.err != nil {
		return x.err
	}
	if err == nil {
		err = tool.TooLargeToAsk(len(text))
	}
	if err != nil {
		return err
	}
	if text != "" {
		doc.Text = text
	}
	if together {
		doc.Items, doc.Arguments, err = v.together(ctx, in)
		return err
	}
	args, err := v.arguments(ctx, in)
	if err != nil || !in.does.Ask {
		doc.Arguments = args
		return err
	}
	question, err := tool.ReadAsked(args)
	if err != nil {
		return err
	}
	fillAsked(question, doc)
	return nil
}

// together returns the arguments of all items of a step, as one array.
func (v *values) together(ctx context.Context, in *inputs) (n int, all json.RawMessage, err *fault.Error) {
	list, err := v.list(ctx, in)
	if err != nil {
		return 0, nil, err
	}
	all = append(all, '[')
	for i, item := range list {
		one := *in
		one.call.Item, one.item = i+1, item
		args, err := v.arguments(ctx, &one)
		if err != nil {
			return 0, nil, err
		}
		if i > 0 {
			all = append(all, ',')
		}
		if all = append(all, args...); len(all) > plan.MaxArguments {
			return 0, nil, fault.New(fault.TooLarge, "the arguments of all items would have more than %d bytes together", plan.MaxArguments).
				WithHint(`have each item asked for by itself: leave out "all"`)
		}
	}
	return len(list), append(all, ']'), nil
}

// put writes an entry, and tells whoever listens. Where the question was answered meanwhile, the entry goes again.
func (qs *questions) put(ctx context.Context, r *run, bucket string, q machine.Question, doc *outcome.Question) {
	err := qs.store.PutQuestion(ctx, r.id, bucket, doc)
	qs.post(func() {
		if r.phase != running {
			qs.remove(r, q.Call)
			return
		}
		now := r.machine.Question(q.Call)
		switch {
		case now == nil:
			r.asks().entries[q.Call] = questionEntry{number: q.Number, written: true}
			qs.remove(r, q.Call)
		case err != nil:
			if ctx.Err() == nil {
				qs.log.Warn("a question can't be listed yet; the sweep tries again", "tenant", r.id.Tenant, "run", r.id.Plain(), "step", doc.Step, "error", err)
			}
			delete(r.asks().entries, q.Call)
		case now.Number == q.Number:
			r.asks().entries[q.Call] = questionEntry{number: q.Number, written: true}
			qs.announcer.question(r, doc)
		}
	})
}

// remove takes away the entry of a question that nobody is asked any more.
func (qs *questions) remove(r *run, c machine.Call) {
	if r.people == nil || r.people.entries[c].number == 0 {
		return
	}
	delete(r.people.entries, c)
	delete(r.people.changes, c)
	key := subjects.QuestionKey(r.id, r.generation, r.token(c))
	qs.job(func(ctx context.Context) { qs.purge(ctx, key, 0) })
}

func (qs *questions) purge(ctx context.Context, key string, upTo uint64) {
	if err := qs.store.PurgeQuestion(ctx, key, upTo); err != nil && ctx.Err() == nil {
		qs.log.Warn("the entry of a question that was answered could not be removed; the sweep tries again", "key", key, "error", err)
	}
}

// byPlace orders calls, so that what is done for several is done in the same order each time, and a simulated world can be
// looked at again.
func byPlace(a, b machine.Call) int {
	return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Item, b.Item))
}

// over removes what is left of a run's questions.
func (qs *questions) over(r *run) {
	if r.people == nil {
		return
	}
	for _, c := range slices.SortedFunc(maps.Keys(r.people.entries), byPlace) {
		qs.remove(r, c)
	}
}

// record creates the record of an answer. Whose record is first counts.
func (qs *questions) record(r *run, q *machine.Question, a wire.Answer, done func(kv.Decision, error)) {
	h, body := a.Message()
	step := r.token(q.Call)
	subject := subjects.AnswerRecord(r.id, r.generation, step, q.Number, qs.store.Shards())
	qs.store.CreateAsync(qs.ctx, subject, h, body, nil, func(d kv.Decision, _ uint64, err error) {
		if err != nil && qs.ctx.Err() == nil {
			qs.log.Error("an answer could not be recorded", "tenant", r.id.Tenant, "run", r.id.Plain(), "step", step, "error", err)
		}
		done(d, err)
	})
}

// answered tells whoever waits what became of a question whose record was read.
func (qs *questions) answered(r *run, a *machine.Answer) {
	if r.machine.Question(a.Call) == nil {
		qs.remove(r, a.Call)
	}
	if r.people == nil {
		return
	}
	var still []answerer
	for _, w := range r.people.waiting[a.Call] {
		if w.number <= a.Number {
			w.tell()
		} else {
			still = append(still, w)
		}
	}
	r.people.waiting[a.Call] = still
}

// sweep compares the entries with the open questions of the runs that are here: it writes what is missing, and removes
// what nobody is asked.
func (qs *questions) sweep() {
	if qs.sweeping || !qs.any() {
		return
	}
	qs.sweeping = true
	qs.job(func(ctx context.Context) {
		keys, last, err := qs.store.QuestionKeys(ctx)
		if code := fault.CodeOf(err); err != nil && ctx.Err() == nil && code != fault.NotReady && code != fault.Permission {
			qs.log.Warn("the sweep can't see which questions can be listed", "error", err)
		}
		qs.post(func() {
			qs.sweeping = false
			if err == nil {
				qs.compare(keys, last)
			}
		})
	})
}

// any reports whether this loop owns anything; without that, no entry is its own.
func (qs *questions) any() bool {
	return slices.ContainsFunc(qs.cursors.owned[:], func(c *cursor) bool { return c != nil && c.caughtUp })
}

func (qs *questions) compare(keys map[string]bool, last uint64) {
	wanted := map[string]bool{}
	var again []reasked
	for _, r := range qs.runs.oldestFirst(func(r *run) bool { return r.phase == running && r.machine.Asked() }) {
		var missing []machine.Question
		r.machine.Questions(func(q *machine.Question) {
			key := subjects.QuestionKey(r.id, r.generation, r.token(q.Call))
			wanted[key] = true
			switch e := r.asks().entries[q.Call]; {
			case !e.written && e.number > 0: // it is being written
			case !keys[key]:
				missing = append(missing, *q)
			case q.Number > 1:
				again = append(again, reasked{r, *q, r.token(q.Call)})
			}
		})
		slices.SortFunc(missing, func(a, b machine.Question) int {
			return cmp.Or(byPlace(a.Call, b.Call), cmp.Compare(a.Number, b.Number))
		})
		for _, q := range missing {
			qs.tell(r, q)
		}
	}
	if len(again) > 0 {
		qs.job(func(ctx context.Context) { qs.recheck(ctx, again) })
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		id, generation, _, ok := subjects.ParseQuestionKey(key)
		if !ok || wanted[key] || !qs.gone(id, generation) {
			continue
		}
		qs.job(func(ctx context.Context) { qs.purge(ctx, key, last) })
	}
}

// reasked is an open question whose step was asked about before.
type reasked struct {
	r    *run
	q    machine.Question
	step string
}

// recheck reads whether the entries are of the questions that are open: who wrote of an earlier one, perhaps for an
// earlier owner, may have come late.
func (qs *questions) recheck(ctx context.Context, list []reasked) {
	slices.SortFunc(list, func(a, b reasked) int { return cmp.Or(older(a.r, b.r), byPlace(a.q.Call, b.q.Call)) })
	for _, x := range list {
		there, err := qs.store.Question(ctx, x.r.id, x.r.generation, x.step)
		if err != nil || there.Number == x.q.Number {
			continue // what can't be read is looked for by the next sweep
		}
		qs.post(func() {
			if x.r.phase != running {
				return
			}
			if now := x.r.machine.Question(x.q.Call); now != nil && now.Number == x.q.Number {
				qs.tell(x.r, *now)
			}
		})
	}
}

// gone reports whether nobody is asked anything of a generation, as far as this loop owns and knows it.
func (qs *questions) gone(id subjects.Run, generation uint64) bool {
	c, r := qs.cursors.owned[id.Partition()], qs.runs.byID[id]
	switch {
	case c == nil || !c.caughtUp || generation > c.last: // another's, or its plan was not read yet
		return false
	case r == nil || r.generation > generation:
		return true
	}
	return r.generation == generation && (r.phase == running || r.phase == finishing || r.phase == finished)
}
