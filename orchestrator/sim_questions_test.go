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

	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// In some worlds the contracts of tools ask for approvals, and people answer: once, twice, late, to something else than
// what is asked, and some say no. Since a contract changes nothing of the language, all else that is checked of a run is
// checked there as well: a rejection is to the reference interpreter what an owner decided.

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
}

type simQuestion struct {
	seq uint64
	doc *outcome.Question
}

func (s *simStore) PutQuestion(_ context.Context, r subjects.Run, _ string, q *outcome.Question) error {
	key := subjects.QuestionKey(r, q.Generation, q.Step)
	return s.do("tell of the question "+key, func() {
		s.w.questions.seq++
		s.w.questions.entries[key] = simQuestion{s.w.questions.seq, q}
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
		for _, key := range slices.Sorted(maps.Keys(w.questions.entries)) {
			if q := w.questions.entries[key].doc; w.chance(2) {
				w.answer(q)
			}
		}
		w.people()
	})
}

// answer sends somebody's answer to a question, perhaps more than one.
func (w *world) answer(q *outcome.Question) {
	id := subjects.NewRun(q.Tenant, q.Run)
	say := func(a wire.Answer) {
		body, _ := wire.AnswerRequest{Step: q.Step, Answer: a}.Body()
		for _, o := range w.owners {
			o.after(w.latency(), func() {
				o.svc.request(&nats.Msg{Subject: subjects.API(id, subjects.VerbApprove), Reply: "_INBOX.said." + id.ID, Data: body})
			})
		}
	}
	approve := wire.Answer{Digest: q.Digest, Decision: wire.Approve, By: "ann"}
	if w.healed {
		say(approve)
		return
	}
	switch w.Intn(8) {
	case 0:
		say(wire.Answer{Digest: q.Digest, Decision: wire.Reject, Reason: "no", By: "bob"})
	case 1:
		stale := approve
		stale.Digest = "of something else"
		say(stale)
	case 2:
		say(approve)
		say(wire.Answer{Digest: q.Digest, Decision: wire.Reject, By: "bob"})
	case 3: // who writes to the ledger past all owners
		subject := subjects.AnswerRecord(id, q.Generation, q.Step, q.Number, len(w.shards))
		h, body := wire.Answer{Digest: "forged", Decision: wire.Approve, By: "eve"}.Message()
		if x := w.truths.of(id, q.Generation); x != nil && !x.gone {
			w.streamOf(subject).create(subject, h, body, nil)
		}
	default:
		say(approve)
		say(approve)
	}
}

// answerRecorded takes note of an answer, and of what it comes to where it counts.
func (t *truths) answerRecorded(x *truth, rec subjects.Record, e *kv.Entry) {
	a := wire.ParseAnswer(e.Data)
	id, _, _ := subjects.SplitItem(rec.Step)
	_, known := x.plan.Index(id)
	if !known || x.start == nil || x.start.Rejected() {
		t.w.violate("I8", "an answer to a step that the plan doesn't have, or before it was started: %s", e.Subject)
		return
	}
	if x.answers == nil {
		x.answers = map[string]wire.Answer{}
	}
	if _, before := x.answers[rec.Step]; before || a.Digest == "forged" {
		t.w.stats["a void answer"]++
		return
	}
	if len(x.out[rec.Step]) > 0 {
		t.w.violate("I13", "%s was dispatched before it was approved of", rec.Step)
	}
	x.answers[rec.Step] = a
	t.w.stats["answer "+a.Decision]++
	if a.Decision == wire.Approve {
		x.decided = append(x.decided, reference.Decided{Step: rec.Step, Allowed: true})
		return
	}
	x.disturbed = true
	message := "Rejected by bob (unverified)"
	if a.Reason != "" {
		message += ": " + a.Reason
	}
	x.final[rec.Step] = true
	x.decided = append(x.decided, reference.Decided{Step: rec.Step, ByOwner: true, Reply: reference.Reply{Err: &reference.Err{Code: "rejected", Message: message}}})
}

// weighed takes note of whether a contract's condition asks for an approval.
func (t *truths) weighed(x *truth, rec subjects.Record, e *kv.Entry) {
	told := wire.ParseTold(e.Data)
	if x.free == nil {
		x.free = map[string]bool{}
	}
	x.free[rec.Step] = !told.Holds && told.Error == nil
	if x.free[rec.Step] {
		x.decided = append(x.decided, reference.Decided{Step: rec.Step, Allowed: true})
	}
	t.w.stats[fmt.Sprintf("a contract's condition: approval %t, error %t", told.Holds, told.Error != nil)]++
}

// checkI13: nothing that needs an approval is sent before its record.
func (t *truths) checkI13(x *truth, a subjects.Attempt, step int) {
	rule := x.contract(step).Approval
	if rule == "" || x.early {
		return
	}
	if x.answers[a.Step].Decision == wire.Approve || rule != tool.AlwaysApprove && x.free[a.Step] {
		t.w.stats["dispatch that a person approved of, or need not"]++
		return
	}
	t.w.violate("I13", "%s was dispatched, of which nobody has approved", a.MessageID())
}

// sabotageQuestions does wrong what no answer of the world can make a loop do wrong about questions.
func (o *orch) sabotageQuestions(l *loop) {
	if o.w.bug != approveUnasked && o.w.bug != sendUnapproved {
		return
	}
	for _, r := range l.runs.oldestFirst(func(r *run) bool { return r.phase == running && !r.busy }) {
		var open []*machine.Question
		r.machine.Questions(func(q *machine.Question) { open = append(open, q) })
		slices.SortFunc(open, func(a, b *machine.Question) int { return strings.Compare(r.token(a.Call), r.token(b.Call)) })
		for _, q := range open {
			switch {
			case !o.w.chance(10):
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

// asksPeople reports whether a contract of the run asks for approvals.
func (x *truth) asksPeople() bool {
	for _, f := range x.start.Tools {
		if f.Contract.Approval != "" {
			return true
		}
	}
	return false
}

// unanswered reports whether something ended while a person was asked about it, or while it was looked at whether one is
// to be asked, because its run or its step did: it was never sent. That leaves no record that counts, and the reference
// interpreter, which knows of no questions, waits for one.
func (x *truth) unanswered(doc *outcome.Run) bool {
	open := func(step int, st *outcome.Step) bool {
		return st.Status == outcome.StepCancelled && x.contract(step).Approval != "" && len(x.out[st.ID]) == 0
	}
	for i := range doc.Steps {
		if open(i, &doc.Steps[i]) || slices.ContainsFunc(doc.Steps[i].Items, func(st outcome.Step) bool { return open(i, &st) }) {
			return true
		}
	}
	return false
}
