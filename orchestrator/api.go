package orchestrator

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/internal/version"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// api answers requests and listens to submissions.
//
// Every orchestrator hears requests about runs, and only the owner of the run's partition answers: so a request needs
// to know nothing of who owns what, and during a change of owners it is answered at most twice, with the same state.
type api struct {
	*env
	of     *self
	loops  *loops
	reg    *registry
	tools  *kv.Registry
	groups *kv.Groups
	ear    hearing
	subs   []*nats.Subscription
	keyless
	streams streams
}

func newAPI(p *self, ls *loops, reg *registry, store *kv.Store) *api {
	return &api{env: ls.all[0].env, of: p, loops: ls, reg: reg, tools: store.Registry, groups: store.Groups, ear: store.Beats().Ear()}
}

func (s *api) open() error {
	handlers := []struct {
		subject, queue string
		handle         nats.MsgHandler
	}{
		{subjects.PingSubject, subjects.DoctorQueue, s.ping},
		{subjects.RegisterFilter, subjects.DoctorQueue, s.register},
		{subjects.ApplyTemplateFilter, subjects.DoctorQueue, s.applyTemplate},
		{subjects.ApplyGroupFilter, subjects.DoctorQueue, s.applyGroup},
		{subjects.OverrideFilter, subjects.DoctorQueue, s.override},
		{subjects.TenantOverrideFilter, subjects.DoctorQueue, s.overrideForTenant},
		{subjects.RemoveFilter, subjects.DoctorQueue, s.remove},
		{subjects.APIAll, "", s.request},
		{subjects.DemandSubject, "", s.demand},
		{subjects.WaitingSubject, "", s.demand},
		{subjects.QueuesSubject, subjects.DoctorQueue, s.queues},
		{subjects.IntakeFilter, "", s.submission},
		{subjects.IntakeShardsFilter, "", s.submission},
		{subjects.AllProgress, "", s.progress},
		{subjects.AllTokens, "", s.token},
		{subjects.AllStreams, "", func(m *nats.Msg) { takeHandedOver(s, m) }},
	}
	known := func(m *nats.Msg) bool {
		_, plan := subjects.ParseSubmit(m.Subject)
		if plan {
			return wire.KindPlan.Known(m.Header)
		}
		return wire.KindRequest.Known(m.Header)
	}
	for _, h := range handlers {
		sub, err := s.of.nc.QueueSubscribe(h.subject, h.queue, func(m *nats.Msg) {
			if known(m) { // else it is for a newer orchestrator, if there is one
				h.handle(m)
			}
		})
		if err != nil {
			return kv.Fault(err)
		}
		s.subs = append(s.subs, sub)
	}
	return nil
}

func (s *api) close() {
	s.ear.Stop()
	for _, sub := range s.subs {
		_ = sub.Unsubscribe() // the connection may be gone already; then so is the subscription
	}
}

func (s *api) reply(m *nats.Msg, body []byte) { s.replyBy(m, wire.Versioned(), body) }

func (s *api) replyBy(m *nats.Msg, h nats.Header, body []byte) {
	if !subjects.ReplyAllowed(m.Reply) { // none, or one that this program's rights must not be lent to
		return
	}
	if err := s.bus.PublishMsg(&nats.Msg{Subject: m.Reply, Header: h, Data: body}); err != nil {
		s.log.Warn("an answer could not be sent", "subject", m.Subject, "error", err)
	}
}

func (s *api) refuse(m *nats.Msg, err error) {
	if !subjects.ReplyAllowed(m.Reply) { // none, or one that this program's rights must not be lent to
		return
	}
	h, body := wire.Refusal(err)
	_ = s.bus.PublishMsg(&nats.Msg{Subject: m.Reply, Header: h, Data: body}) // the asker's time-out covers a loss
}

func (s *api) ping(m *nats.Msg) {
	var keys []string
	for _, k := range s.cfg.SecretsKey.Keys() {
		keys = append(keys, k.Public.ID())
	}
	b, _ := json.Marshal(map[string]any{
		"keys": strings.Join(keys, ","), "keyless": s.keyless.list(time.Now()), // that it can open secrets with, and who can't
		"name": s.cfg.Name, "member": s.of.member, "version": version.Stepjet(), "time": time.Now().UTC().Format(time.RFC3339Nano),
	})
	s.reply(m, b)
}

// request hands a request about a run to its loop, which knows whether the run is ours.
func (s *api) request(m *nats.Msg) {
	id, verb, ok := subjects.ParseAPI(m.Subject)
	if !ok {
		return
	}
	l := s.loops.of(id.Partition())
	l.post(func() {
		if c := l.cursors.owned[id.Partition()]; c == nil || !c.caughtUp {
			return // another's, or not read yet: the asker asks again
		}
		switch verb {
		case subjects.VerbGet:
			s.get(l, m, id)
		case subjects.VerbHead:
			if r := s.underWay(l, m, id, "its head stands in history"); r != nil {
				s.reply(m, wire.HeadReply(headOf(r)))
			}
		case subjects.VerbCancel:
			s.cancel(l, m, id)
		case subjects.VerbApprove, subjects.VerbAnswer:
			s.answerQuestion(l, m, id, verb)
		case subjects.VerbAmend, subjects.VerbAmendApproved:
			s.amend(l, m, id, verb == subjects.VerbAmendApproved)
		case subjects.VerbSay:
			s.say(l, m, id)
		}
	})
}

// progress hears how far workers say that their steps are. Every orchestrator does, and the owner of the run passes
// it on.
func (s *api) progress(m *nats.Msg) {
	of, ok := subjects.ParseProgress(m.Subject)
	p, readable := wire.ParseProgress(m.Data)
	if !ok || !readable || !wire.KindProgress.Known(m.Header) {
		return
	}
	l := s.loops.of(of.Partition())
	l.post(func() {
		if r := l.runs.byID[of.Run]; r != nil {
			l.announcer.progress(r, of, p)
		}
	})
}

// token hears what handlers are writing. The owner of the run passes it on, and answers whether somebody may listen.
func (s *api) token(m *nats.Msg) {
	of, ok := subjects.ParseToken(m.Subject)
	t, readable := wire.ParseToken(m.Data)
	if !ok || !readable || !wire.KindToken.Known(m.Header) {
		return
	}
	l := s.loops.of(of.Partition())
	l.post(func() {
		if r := l.runs.byID[of.Run]; r != nil {
			if heard, is := l.announcer.token(r, of, t); is {
				s.reply(m, wire.TokenReply{Heard: heard}.Body())
			}
		}
	})
}

// maxReply bounds a document sent in a reply; a larger one goes through a blob.
const maxReply = 512 << 10

func (s *api) get(l *loop, m *nats.Msg, id subjects.Run) {
	r := l.runs.byID[id]
	switch {
	case r == nil || r.phase == finished:
		s.refuse(m, notActive(id))
		return
	case r.phase == foreign:
		s.refuse(m, leftAlone(id))
		return
	}
	if r.phase == finishing { // its machine rests, and its results may have to be read
		view := r.view()
		account, _ := l.dispatcher.agentry.accounts(r)
		l.job(func(ctx context.Context) { s.answer(ctx, l, m, id, view, l.documents.of(ctx, view, account)) })
		return
	}
	l.announcer.arrived(r)
	doc, complete := l.documents.begun(l.ctx, r)
	ask, view := s.explain(r, doc), r.view()
	l.job(func(ctx context.Context) {
		s.explainRest(ctx, ask)
		complete(ctx)
		s.answer(ctx, l, m, id, view, doc)
	})
}

// answer sends a document, by way of a blob where it is large.
func (s *api) answer(ctx context.Context, l *loop, m *nats.Msg, id subjects.Run, view *run, doc *outcome.Run) {
	b := doc.JSON()
	if len(b) > maxReply {
		bucket, err := view.bucket(), error(nil)
		if view.start == nil {
			bucket, err = l.store.BucketOf(ctx, id.Tenant, view.submitted)
		}
		if err != nil {
			return // whoever waits asks again
		}
		handle, err := l.values.put(ctx, bucket, func(unique string) string { return subjects.RunBlobName(id, view.generation, "get", unique) }, b)
		if err != nil {
			return
		}
		doc.Blob = handle
		b = doc.Head()
	}
	s.replyBy(m, wire.VersionedBy(doc.Blob), b)
}

func notActive(id subjects.Run) *fault.Error {
	return fault.New(fault.NotFound, "no active run '%s' of tenant '%s'", id.Plain(), id.Tenant).
		WithHint("a finished run is read from history; it is kept there for its retention")
}

// leftAlone is the answer to who wants something of a run that this version can't read.
func leftAlone(id subjects.Run) *fault.Error {
	return fault.New(fault.NewerVersion, "run '%s' was written by a newer version of Stepjet, so this orchestrator leaves it alone", id.Plain()).
		WithHint("upgrade the orchestrators: one that knows the run's version goes on with it, and can cancel it; to remove what nobody of yours wrote: stepjet doctor")
}

// finishedAlready is the answer to who wants to change a run that is over.
func finishedAlready(id subjects.Run) *fault.Error {
	return fault.New(fault.AlreadyFinished, "run '%s' had finished already", id.Plain())
}

// standing is a request that asks for a record. Of several that ask for the same one counts: the one that wrote it. So each is
// answered once the record was read, and it is known who wrote it; whichever comes first. Its methods run on the run's loop.
type standing struct {
	refuse func(error)

	send    func(already bool) // what was read, once it was
	known   bool               // whether this request wrote it,
	already bool               // or somebody did before
	over    bool               // it was answered
}

// stands takes how the request is answered by what was read.
func (x *standing) stands(send func(already bool)) {
	if x.send == nil {
		x.send = send
		x.settle()
	}
}

// recorded takes what became of writing the record. A request of which that is in doubt is not said to be the one that counted.
func (x *standing) recorded(d kv.Decision, err error) {
	if err != nil && x.send == nil && !x.over {
		x.over = true
		x.refuse(err)
		return
	}
	x.known, x.already = true, d != kv.Written
	x.settle()
}

func (x *standing) settle() {
	if x.known && x.send != nil && !x.over {
		x.over = true
		x.send(x.already)
	}
}

// underWay returns the run that a request wants to change; nil where the request was refused: there is no such run, it is
// over, which hint says something about, or it is left alone.
func (s *api) underWay(l *loop, m *nats.Msg, id subjects.Run, hint string) *run {
	r := l.runs.byID[id]
	meant, err := wire.Meant(m.Data)
	switch {
	case err != nil:
		s.refuse(m, err)
	case r == nil:
		s.refuse(m, notActive(id))
	case meant > r.generation: // its plan is not read yet: the asker asks again
	case meant > 0 && meant < r.generation:
		s.refuse(m, fault.New(fault.AlreadyFinished, "the run '%s' that is meant, of generation %d, is over; another was submitted under its id since", id.Plain(), meant).
			WithHint("look at the one that goes on: stepjet get %s", id.Plain()))
	case r.phase == finishing || r.phase == finished:
		s.refuse(m, finishedAlready(id).WithHint("%s", hint))
	case r.phase == foreign:
		s.refuse(m, leftAlone(id))
	default:
		return r
	}
	return nil
}

// cancel asks for the stop of a run, and answers once some stop of it was read: only the ledger's order says which it is, and
// whether it came before the run was over.
func (s *api) cancel(l *loop, m *nats.Msg, id subjects.Run) {
	r := s.underWay(l, m, id, "")
	if r == nil {
		return
	}
	send := func(stands *machine.Stop) func(already bool) {
		return func(already bool) {
			s.reply(m, wire.Cancelled{Run: id.Plain(), Status: stands.Reason, By: stands.By, Already: already}.Body())
		}
	}
	if stands := stopOf(r); stands != nil {
		send(stands)(true)
		return
	}
	x := &standing{refuse: func(err error) { s.refuse(m, err) }}
	r.asks().cancels = append(r.asks().cancels, func() {
		if stands := stopOf(r); stands != nil {
			x.stands(send(stands))
		} else { // its last record was first
			x.stands(func(bool) { s.refuse(m, finishedAlready(id)) })
		}
	})
	stop := wire.Stop{Reason: outcome.Cancelled, By: text.Clip(wire.ParseCancel(m.Data).By, 128), Nonce: l.clock.Unique()}
	l.decider.stop(r, stop, func(d kv.Decision, err error) {
		if err == nil && d == kv.Gone {
			err = finishedAlready(id)
		}
		l.post(func() { x.recorded(d, err) })
	})
}

// stopOf returns the stop that stands for a run, as far as its records were read.
func stopOf(r *run) *machine.Stop {
	if r.machine == nil {
		return nil
	}
	return machine.StopOf(r.machine)
}

// amend takes a request for an amendment. Whether who asks may approve of it the subject says, since that is what the server
// lets them publish to.
func (s *api) amend(l *loop, m *nats.Msg, id subjects.Run, approved bool) {
	request, err := wire.ParseAmendRequest(m)
	if err != nil {
		s.refuse(m, err)
		return
	}
	r := s.underWay(l, m, id, "what is to be done besides is a plan of its own")
	if r == nil || r.phase != running || r.awaitingInput() {
		return // else it isn't read yet: the asker asks again
	}
	a := &amending{s: s, l: l, m: m, r: r, asks: request, digest: request.Digest(), approved: approved}
	a.counts.refuse = a.refuse
	a.take()
}

// submission hears every plan that is published, stored or refused. The ledger itself refuses a second plan of an
// active run, so this is the only way to tell its watchers of a conflict.
func (s *api) submission(m *nats.Msg) {
	id, ok := subjects.ParseSubmit(m.Subject)
	if !ok {
		return
	}
	l := s.loops.of(id.Partition())
	l.post(func() {
		r := l.runs.byID[id]
		if r == nil {
			s.submittedAgain(l, m, id)
			return
		}
		if r.rejected || r.phase == foreign || r.body != nil && bytes.Equal(r.body, m.Data) { // of a rejected run, the id is free
			return
		}
		if d := plan.Digest(m.Data); d != r.digest {
			asked, _ := wire.ParsePlan(m.Header) // of a plan that is refused
			l.announcer.conflict(id, asked.Client, r.digest, d)
		}
	})
}

// submittedAgain is submission of a plan under an id whose run this owner may have skipped when it took the partition over,
// since it was over: then its plan's record is there still. An id that is new is none of that.
func (s *api) submittedAgain(l *loop, m *nats.Msg, id subjects.Run) {
	shard, below := subjects.LedgerShard(id.Partition(), l.store.Shards()), l.cursors.skipped[id.Partition()].below
	made, dated := subjects.MadeAt(id.ID)
	if below == 0 || dated && l.times.now(shard).Sub(made) < freshFor {
		return
	}
	l.job(func(ctx context.Context) {
		there, err := l.store.Read(ctx, subjects.PlanRecord(id, l.store.Shards()))
		if err != nil || there.Seq >= below || bytes.Equal(there.Data, m.Data) {
			return
		}
		if doc, err := l.store.History(ctx, id); err != nil || doc.Status == outcome.Rejected { // of a rejected run, the id is free
			return
		}
		asked, _ := wire.ParsePlan(m.Header) // of a plan that is refused
		l.post(func() { l.announcer.conflict(id, asked.Client, plan.Digest(there.Data), plan.Digest(m.Data)) })
	})
}
