package conformance

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// claimBody is what a claim says.
type claimBody struct {
	Nonce string `json:"nonce"`
	Seq   uint64 `json:"seq"`
}

func claim(ctx context.Context, s *stage, v *verdict) {
	const long = 500 * time.Millisecond
	p := s.probe(s.newRun(ctx, "claim"), "s1")
	p.send(ctx, p.header(func(w *wire.Step) { w.Claim = p.claim() }), []byte(sleeping(long)))
	r, ok := p.await(ctx, s.o.Patience)
	if !ok {
		v.must("create the claim, execute, record; or refuse the step with the error tool_terminal",
			"a step with %s leaves no record%s", subjects.HeaderClaim, s.ended())
		return
	}
	if r.Error != nil {
		s.refuses = true
		v.should("create the claim before executing, so that you can host at_most_once tools",
			"steps of at_most_once tools are refused: %s", said(r.Error))
		return
	}
	claims, offers := s.witness.offered(p.claim()), s.witness.offered(p.record())
	const first = "create the record at " + subjects.HeaderClaim +
		" and wait for its PubAck before the tool is called: who comes second must not execute"
	if len(claims) == 0 {
		v.must(first, "it executed a step of an at_most_once tool without a claim")
		return
	}
	if len(offers) > 0 && offers[0].at.Sub(claims[0].at) < long-100*time.Millisecond {
		v.must(first, "it claimed the step only when the tool had already run")
	}
	var body claimBody
	if json.Unmarshal(claims[0].Data, &body) != nil || body.Nonce == "" || body.Seq != p.seq {
		v.must(`the claim's body is {"nonce":"<random>","seq":<stream sequence of the step's message>}`,
			"the claim says %s, and the message's sequence is %d",
			text.Clip(string(claims[0].Data), 120), p.seq)
	}
	if header(claims[0].Header, headerExpect) == "" {
		v.must("create the claim like a result, with "+headerExpect, "the claim has no %s", headerExpect)
	}
	again := s.probe(s.newRun(ctx, "claim"), "s1")
	again.send(ctx, again.header(func(w *wire.Step) { w.Claim = again.claim() }), []byte(`{"echo":"another"}`))
	again.await(ctx, s.o.Patience)
	if more := s.witness.offered(again.claim()); len(more) > 0 {
		var other claimBody
		if json.Unmarshal(more[0].Data, &other) == nil && other.Nonce == body.Nonce {
			v.must("make a new random nonce for each claim that you try to create: by it you tell your own claim from that of a worker that had the step before you",
				"two claims have the same nonce %q", text.Clip(body.Nonce, 60))
		}
	}
	s.zombie(ctx, v)
}

// zombie sends a step whose run is over.
func (s *stage) zombie(ctx context.Context, v *verdict) {
	p := s.probe(s.newRun(ctx, "zombie"), "s1")
	p.attempt.Generation++
	p.send(ctx, p.header(func(w *wire.Step) { w.Claim = p.claim() }), []byte(`{"echo":"a zombie"}`))
	p.settled(ctx, soon)
	if r, ok := p.result(ctx); ok && r.Error == nil {
		v.should("make the claim depend on the run's plan record (docs: At most once), so that a step which slept through the end of its run is not executed",
			"it executed a step of an at_most_once tool whose run is over")
	}
}

func foreign(ctx context.Context, s *stage, v *verdict) {
	r := s.newRun(ctx, "foreign")
	nameless, broken, forged := s.probe(r, "nameless"), s.probe(r, "broken"), s.probe(r, "forged")
	victim := s.probe(s.newRun(ctx, "victim"), "s1")
	nameless.send(ctx, nats.Header{}, []byte("just some words"))
	h := broken.header()
	h[subjects.HeaderAttempt] = []string{"x"}
	delete(h, subjects.HeaderResult)
	broken.send(ctx, h, []byte(`{"echo":`))
	forged.send(ctx, forged.header(func(w *wire.Step) { w.Result = victim.record() }), []byte(`{"echo":"forged"}`))
	s.alive(ctx, v, "messages that are no steps")
	for _, p := range []*probe{nameless, broken, forged} {
		if !p.settled(ctx, soon) {
			v.should("acknowledge what is no step of Stepjet's: nobody else can do anything with it",
				"a message without the headers of a step is left to come again for ever")
			s.note(s.store.Ledger.PurgeSubject(ctx, subjects.Step(p.attempt, s.tool.Shard)))
		}
	}
	if len(s.witness.offered(victim.record())) > 0 {
		v.should("publish only to a "+subjects.HeaderResult+
			" that belongs to the step's own subject: same run, generation, step and attempt",
			"it published a result to another run's record, because a forged step asked it to")
		s.note(s.store.Ledger.PurgeSubject(ctx, victim.record()))
	}
	s.quiet(ctx, 2*s.lease())
}
