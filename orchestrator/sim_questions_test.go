package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/internal/lab/unfold"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// In some worlds the contracts of tools ask for approvals, and in all of them some plans and steps do, or ask for a value.
// People answer: once, twice, late, to something else than what is asked; some say no, some do the work themselves, and
// some nothing before the time is over. What a run comes to by that is compared with the reference interpreter, which is
// told of each answer's record and finds out for itself what it counts for.

// approving is whether this is such a world.
func (w *world) approving() bool { return w.seed%6 == 4 }

// approval is what the contract of a tool asks for.
func (w *world) approval(name string) tool.Approval {
	if !w.approving() {
		return ""
	}
	return []tool.Approval{tool.AlwaysApprove, "", "$args != null", "($args.no.such ?? 0) > 1", "$args > 1", tool.AlwaysApprove}[(int(w.seed)/6+len(name)+int(name[5]))%6]
}

// simQuestions is the bucket of questions.
type simQuestions struct {
	seq     uint64
	entries map[string]simQuestion
	people  bool // somebody looks at them
}

type simQuestion struct {
	seq uint64
	doc *outcome.Question
}

func (s *simStore) PutQuestion(_ context.Context, r subjects.Run, _ string, q *outcome.Question) error {
	key := subjects.QuestionKey(r, q.Generation, q.Step)
	return s.do("tell of the question "+key, func() {
		if e, there := s.w.questions.entries[key]; there && e.doc.Number < q.Number && s.w.bug == askEarlier {
			s.w.at(s.w.upTo(time.Second), func() { s.w.questions.entries[key] = e })
		}
		s.w.roundAsked(r, q)
		s.w.guardAsked(r, q)
		s.w.questions.seq++
		s.w.questions.entries[key] = simQuestion{s.w.questions.seq, q}
		if !s.w.questions.people {
			s.w.questions.people = true
			s.w.people()
		}
		s.w.stats["a question"]++
		s.w.log("a question: %s %d", key, q.Number)
	})
}

func (s *simStore) QuestionKeys(context.Context) (keys map[string]bool, last uint64, err error) {
	if len(s.w.questions.entries) == 0 { // else some owner would always be looking, and no world come to rest
		return nil, s.w.questions.seq, nil
	}
	err = s.do("look for questions", func() {
		keys, last = map[string]bool{}, s.w.questions.seq
		for key := range s.w.questions.entries {
			keys[key] = true
		}
	})
	return keys, last, err
}

func (s *simStore) Question(_ context.Context, r subjects.Run, generation uint64, step string) (q *outcome.Question, err error) {
	key := subjects.QuestionKey(r, generation, step)
	err = s.do("look at the question "+key, func() { q = s.w.questions.entries[key].doc })
	if err == nil && (q == nil || s.w.bug == askEarlier) {
		err = fault.New(fault.NotFound, "nothing lies at %s", key)
	}
	return q, err
}

func (s *simStore) PurgeQuestion(_ context.Context, key string, upTo uint64) error {
	if s.w.bug == keepQuestions {
		return nil
	}
	return s.do("remove the question "+key, func() {
		if e, there := s.w.questions.entries[key]; there && (upTo == 0 || e.seq <= upTo) {
			delete(s.w.questions.entries, key)
		}
	})
}

// people look at what is asked, now and then, and answer.
func (w *world) people() {
	w.at(20*time.Millisecond+w.upTo(300*time.Millisecond), func() {
		if w.idle {
			return
		}
		for _, key := range slices.Sorted(maps.Keys(w.questions.entries)) {
			if q := w.questions.entries[key].doc; q.Step != unfold.Gate && q.Step != innerScope+"/g" && w.chance(2) {
				w.answer(q)
			}
		}
		w.people()
	})
}

// answer sends somebody's answer to a question, perhaps more than one.
func (w *world) answer(q *outcome.Question) {
	id, verb := subjects.NewRun(q.Tenant, q.Run), subjects.VerbApprove
	yes := wire.Answer{Digest: q.Digest, Decision: wire.Approve, By: "ann"}
	instead := wire.Answer{Digest: q.Digest, Value: json.RawMessage(`{"x":[1,"said"]}`), By: "ann"}
	if q.Kind == outcome.Ask {
		verb, yes = subjects.VerbAnswer, instead
	}
	say := func(a wire.Answer) {
		body, _ := wire.AnswerRequest{Step: q.Step, Answer: a}.Body()
		for _, o := range w.owners {
			o.after(w.latency(), func() {
				o.svc.request(&nats.Msg{Subject: subjects.API(id, verb), Reply: "_INBOX.said." + id.ID, Data: body})
			})
		}
	}
	if w.answerGuard(q, say) || w.answerProposal(q, w.truths.of(id, q.Generation), say) {
		return
	}
	if w.healed {
		say(yes)
		return
	}
	switch w.Intn(10) {
	case 0:
		say(wire.Answer{Digest: q.Digest, Decision: wire.Reject, Reason: "no", By: "bob"})
	case 1:
		stale := yes
		stale.Digest = "of something else"
		say(stale)
	case 2:
		say(yes)
		say(wire.Answer{Digest: q.Digest, Decision: wire.Reject, By: "bob"})
	case 3:
		say(instead)
	case 4:
		edited := yes
		if q.Kind == outcome.Approval {
			edited.Arguments = json.RawMessage(`{"edited":[1]}`)
		}
		say(edited)
	case 5: // who writes to the ledger past all owners
		subject := subjects.AnswerRecord(id, q.Generation, q.Step, q.Number, len(w.shards))
		h, body := wire.Answer{Digest: "forged", Decision: wire.Approve, By: "eve"}.Message()
		if x := w.truths.of(id, q.Generation); x != nil && !x.gone {
			w.streamOf(subject).create(subject, h, body, nil)
		}
	default:
		say(yes)
		say(yes)
	}
}

// answerRecorded takes note of an answer. What it counts for where it stands the reference interpreter finds out.
func (t *truths) answerRecorded(x *truth, rec subjects.Record, e *kv.Entry) {
	if t.proposalAnswered(x, rec, e) || t.roundAnswered(x, rec, e) || t.guardAnswered(x, rec, e) {
		return
	}
	a := wire.ParseAnswer(e.Data)
	var step *plan.Step // nil for the plan itself
	isItem, known := false, rec.Step == subjects.RootScope
	if x.plan != nil && !known {
		step, isItem, known = x.plan.Find(rec.Step)
	}
	if !known || x.start == nil || x.start.Rejected() {
		t.w.violate("I8", "an answer to a step that the plan doesn't have, or before it was started: %s", e.Subject)
		return
	}
	said := &reference.Answer{Number: rec.Number, Other: a.Digest == "forged", Decision: a.Decision, Value: a.Value, Arguments: a.Arguments}
	if said.Refusal, said.Hint = x.refusal(step, a); a.Error != nil {
		said.Err = &reference.Err{Code: string(a.Error.Code), Message: a.Error.Message, Hint: a.Error.Hint}
	}
	if a.Value != nil && !x.fits(rec.Step, a.Value) { // what a person says in the place of a tool is held against the state likewise
		said.Value, said.Decision, said.Err = nil, "", &reference.Err{Code: string(fault.StateInvalid), Message: misfit(a.Value)}
	}
	if t.inquiryAnswered(x, rec, a, said) {
		return
	}
	x.decided = append(x.decided, reference.Decided{Step: rec.Step, Answer: said})
	x.hinted = x.hinted || isItem && a.Error != nil && t.nested[x.digest] != nil
	if x.answers == nil {
		x.answers = map[string]wire.Answer{}
	}
	if _, before := x.answers[rec.Step]; before || said.Other {
		t.w.stats["a void answer"]++
		return
	}
	if len(x.out[rec.Step]) > 0 {
		t.w.violate("I13", "%s was dispatched before it was approved of", rec.Step)
	}
	x.answers[rec.Step] = a
	noteTime(&x.times.answered, rec.Step, e.Time)
	t.noteAnswer(x, rec.Step, step, isItem, a, e)
	if a.Decision == wire.Approve && a.Arguments == nil {
		return
	}
	x.disturbed = x.disturbed || a.Error == nil
	if a.Decision != wire.Approve && (step == nil || !x.approved(rec.Step, step.Approval, x.contract(step).Approval)) {
		x.final[rec.Step], x.succeeded[rec.Step] = true, a.Value != nil
	}
}

// noteAnswer counts what people, and owners in their place, said.
func (t *truths) noteAnswer(x *truth, token string, step *plan.Step, isItem bool, a wire.Answer, e *kv.Entry) {
	what := "answer " + a.Decision
	switch {
	case a.Error != nil:
		what = "there was nothing to show"
	case a.Value != nil && step != nil && step.Ask:
		what = "answer to what a step asks"
	case a.Value != nil:
		what = "answer in the place of a tool"
	case a.Arguments != nil:
		what = "answer with other arguments"
	}
	t.w.stats[what]++
	switch {
	case step == nil:
		t.w.stats["a plan was asked for: "+a.Decision]++
	case isItem:
		t.w.stats["an item was asked for"]++
	case step.Approval != nil && step.Approval.All:
		t.w.stats["all items were asked for"]++
	}
	q := t.w.questions.entries[subjects.QuestionKey(x.id, x.gen, token)].doc
	switch {
	case q == nil || q.Until == nil:
	case a.Decision != wire.Expire && e.Time.After(*q.Until):
		t.w.stats["an answer came before its time was recorded to be over"]++
	case a.Decision == wire.Expire && e.Time.Before(*q.Until):
		t.w.violate("time", "nobody was to answer %s any more %v too early", token, q.Until.Sub(e.Time))
	}
}

// refusal is what the error says of a step that does not begin because of an answer.
func (x *truth) refusal(step *plan.Step, a wire.Answer) (message, hint string) {
	if a.Decision == wire.Expire {
		wait := time.Duration(0)
		switch {
		case step == nil:
			wait = x.plan.Approval.Timeout
		case step.Ask:
			wait = step.Timeout
		case step.Approval != nil:
			wait = step.Approval.Timeout
		}
		return "nobody answered within " + wait.String(), "ask again with a longer timeout, or without one: it then waits as long as the run"
	}
	message = "Rejected by " + a.By + " (unverified)"
	if a.Reason != "" {
		message += ": " + a.Reason
	}
	return message, ""
}

// weighed takes note of whether a contract's condition asks for an approval.
func (t *truths) weighed(x *truth, rec subjects.Record, e *kv.Entry) {
	if x.agent {
		t.agentWeighed(x, rec, e)
		return
	}
	told := wire.ParseTold(e.Data)
	if x.free == nil {
		x.free = map[string]bool{}
	}
	if _, again := x.free[rec.Step]; again {
		t.w.violate("I2", "a second record of whether the contract asks for an approval of %s", rec.Step)
	}
	x.free[rec.Step] = !told.Holds && told.Error == nil
	t.w.stats[fmt.Sprintf("a contract's condition: approval %t, error %t", told.Holds, told.Error != nil)]++
	w := &reference.Told{Holds: told.Holds}
	if told.Error != nil {
		w.Err = &reference.Err{Code: string(told.Error.Code), Message: told.Error.Message}
	}
	x.decided = append(x.decided, reference.Decided{Step: rec.Step, Weighed: w})
}

// approved reports whether a person, or a timeout that stands for one, let something begin.
func (x *truth) approved(token string, asks *plan.Approval, rule tool.Approval) bool {
	switch x.answers[token].Decision {
	case wire.Approve:
		return true
	case wire.Expire:
		return asks != nil && asks.ApproveOnTimeout && rule == ""
	}
	return false
}

// checkI13: nothing that needs an approval is sent before its record.
func (t *truths) checkI13(x *truth, a subjects.Attempt, s *plan.Step) {
	rule, token := x.contract(s).Approval, a.Step
	t.checkProposed(x, token)
	switch {
	case x.early:
		return
	case s.Ask:
		t.w.violate("I13", "%s was dispatched, which asks a person", a.MessageID())
		return
	case x.plan.Approval != nil && !x.approved(subjects.RootScope, x.plan.Approval, ""):
		t.w.violate("I13", "%s was dispatched, of whose plan nobody has approved", a.MessageID())
		return
	case s.Approval == nil && rule == "":
		return
	}
	if s.Approval != nil && s.Approval.All {
		token, _, _ = subjects.SplitItem(a.Step)
	}
	free := s.Approval == nil && rule != tool.AlwaysApprove && x.free[token]
	if free || x.approved(token, s.Approval, rule) {
		t.w.stats["dispatch that a person approved of, or need not"]++
		return
	}
	t.w.violate("I13", "%s was dispatched, of which nobody has approved", a.MessageID())
}

// sabotageQuestions does wrong what no answer of the world can make a loop do wrong about questions.
func (o *orch) sabotageQuestions(l *loop) {
	if o.w.bug != approveUnasked && o.w.bug != sendUnapproved && o.w.bug != expireEarly {
		return
	}
	for _, r := range l.runs.oldestFirst(func(r *run) bool { return r.phase == running && !r.busy }) {
		var open []*machine.Question
		r.machine.Questions(func(q *machine.Question) { open = append(open, q) })
		slices.SortFunc(open, func(a, b *machine.Question) int { return strings.Compare(r.token(a.Call), r.token(b.Call)) })
		for _, q := range open {
			switch {
			case !o.w.chance(10):
			case o.w.bug == expireEarly:
				if !q.Until.IsZero() {
					l.questions.record(r, q, wire.Answer{Digest: q.Digest, Decision: wire.Expire}, func(kv.Decision, error) {})
				}
			case o.w.bug == sendUnapproved && (q.Kind == outcome.Ask || q.Round != nil) || q.Step == machine.ThePlan: // there is nothing to send
			case o.w.bug == sendUnapproved:
				l.dispatcher.dispatch(r, machine.Dispatch{Call: q.Call, Attempt: 1}, 0, nil)
			default: // it believes whatever it is told, without asking the ledger
				var eff machine.Effects
				r.machine.Apply(machine.Record{Seq: r.lastSeq + 1_000_000, Time: r.machine.LastTime(), Answer: &machine.Answer{
					Call: q.Call, Number: q.Number, Digest: q.Digest, Decision: machine.Approve,
				}}, r.machine.LastTime(), &eff)
				for _, d := range eff.Dispatch {
					l.dispatcher.offer(r, d, 0)
				}
			}
		}
	}
}

// answersLost spoils the record of an answer on its way from the ledger: it is read as one to whatever is asked.
func (w *world) spoilAnswer(e kv.Entry, rec subjects.Record) kv.Entry {
	a := wire.ParseAnswer(e.Data)
	if w.bug != ignoreDigests || a.Digest != "forged" {
		return e
	}
	for _, q := range w.questions.entries {
		if q.doc.Generation == rec.Generation && q.doc.Step == rec.Step && q.doc.Run == rec.Run.Plain() {
			a.Digest = q.doc.Digest
		}
	}
	e.Data, _ = json.Marshal(a)
	return e
}

// endedAsked counts what ended while a person was asked about it, because its run or its step did.
func (t *truths) endedAsked(x *truth, doc *outcome.Run) {
	eachStep(doc.Steps, func(st *outcome.Step) {
		s, _, known := x.plan.Find(st.ID)
		asks := known && (s.Ask || s.Approval != nil || x.contract(s).Approval != "")
		if asks && st.Status == outcome.StepCancelled && len(x.records[st.ID]) == 0 {
			t.w.stats["ended while somebody was asked"]++
		}
	})
}
