package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"time"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/observe"
	"github.com/stepjet/stepjet/orchestrator/agents"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// sinks sends what calls of agents have returned to where the agents' definitions say, beside their blackboards: each object as
// soon as it is one, for who waits for it, and all that is not known to be sent before the run is over. What is sent, and
// under which message id or key, follows from the records. So nothing is kept of it: whoever takes a run over sends all of it
// again, and a stream or a bucket that has it takes it once.
//
// A sink never fails a run. What one can't take is told in the log and to observers, and is on the blackboard all the same.
type sinks struct {
	*env
	values  *values
	memory  *memory
	agentry *agentry
}

// sinkPatience is how long the end of a run waits for sinks that don't answer, all together; soonPatience is how long what goes on
// tries to send one object, before it leaves that and all behind it to who comes next. Of many it may take long for all, where
// each is slow: they wait for nobody who goes on.
const (
	sinkPatience = 10 * time.Second
	soonPatience = 2 * time.Second
)

// settled sends what a call has returned, with all else of its agent that was not sent yet. What begins while a planner writes is of
// no round before that is decided: then the steps of the round are over that it stands for.
func (s *sinks) settled(r *run, c machine.Call) {
	if r.agents == nil || r.machine == nil {
		return
	}
	of, round, own, inRound := machine.RoundAround(r.machine, c)
	if !inRound || own || !toSinks(r, of) {
		return
	}
	if v := machine.Rounds(r.machine, of, round); len(v) > 0 && v[0].Record != nil {
		s.soon(r, of)
	}
}

// soon sends what an agent has made in rounds that are not past, as its gates look at them: each call once. One at a time does: it
// is told of what comes meanwhile.
func (s *sinks) soon(r *run, of machine.Call) {
	its, name := r.agents, r.token(of)
	if _, under := its.sending.Find(name); under {
		its.sending.Put(name, true)
		return
	}
	over := func() {
		more := its.sending.At(name)
		if its.sending.Drop(name); more && r.phase == running && r.agents == its {
			s.soon(r, of)
		}
	}
	x, begun, ok := s.agentry.atGate(r, of, machine.RoundCount(r.machine, of)-1, over)
	if its.sending.Put(name, !ok); !ok { // who gathers it says when that is done
		return
	}
	send, sent := s.sender(r, false)
	s.memory.reserve(x.size, func(ctx context.Context) {
		var all []agents.Sent
		var read *agents.Loop
		err := x.ask(ctx, s.values, func(l *agents.Loop) *fault.Error {
			read, all = l, agents.SentBy(l, sent)
			return nil
		})
		s.post(func() { // gates need not wait for sinks
			x.found(its)
			if begun != nil {
				begun(read)
			}
		})
		if err == nil { // else the end of the run makes sure
			send(ctx, name, all)
		}
		s.post(over)
	})
}

// unsent returns what sends all that agents of a run that is over have made and is not known to be sent, beside the loop, and
// how many bytes that reads.
func (s *sinks) unsent(r *run) (do func(context.Context), size int64) {
	if r.agents == nil || r.start == nil || !slices.Contains(r.start.Needs, wire.Sinks) {
		return func(context.Context) {}, 0
	}
	all := s.agentry.loops(r, agent.Sends)
	for _, x := range all {
		size += x.size
	}
	id := r.id
	send, sent := s.sender(r, true)
	return func(ctx context.Context) {
		within, cancel := context.WithTimeout(ctx, sinkPatience)
		defer cancel()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if l, err := all[name].read(ctx, s.values); err == nil {
				send(within, name, agents.SentBy(l, sent))
			} else if ctx.Err() == nil {
				s.log.Error("what an agent has made can't be read, and goes to none of its sinks", "tenant", id.Tenant, "run", id.Plain(), "agent", name, "error", err)
			}
		}
	}, size
}

// sender returns what sends objects of an agent, one after the other, and what reports whether one is known to be sent. Before the
// last time it leaves them where a sink does not answer.
func (s *sinks) sender(r *run, last bool) (send func(ctx context.Context, name string, all []agents.Sent), sent func(*agents.Sent) bool) {
	if r.agents.sent == nil {
		r.agents.sent = &doneBefore[string]{}
	}
	known, id, generation, bucket := r.agents.sent, r.id, r.generation, r.bucket()
	patience := soonPatience
	if last {
		patience = sinkPatience
	}
	of := observedRun(id, generation, r.trace)
	sent = func(o *agents.Sent) bool {
		for n := range o.To {
			if !known.has(subjects.SinkID(id, generation, o.Step, n)) {
				return false
			}
		}
		return true
	}
	return func(ctx context.Context, name string, all []agents.Sent) {
		for _, o := range all {
			for _, n := range slices.Sorted(maps.Keys(o.To)) {
				x := sinking{id: id, generation: generation, bucket: bucket, n: n, to: o.To[n], body: wire.Sunk{
					Run: id.Plain(), Tenant: id.Tenant, Generation: generation, Agent: name, Step: o.Step, Tool: o.Tool, Type: o.Type, Value: o.Value,
				}}
				if known.has(x.message()) {
					continue
				}
				one, cancel := context.WithTimeout(ctx, patience)
				kept, err := s.send(one, &x)
				cancel()
				if err != nil && (s.ctx.Err() != nil || !last && fault.As(err).Retryable) {
					return // whoever comes next sends it
				}
				if !known.add(x.message()) {
					continue
				}
				told := observe.Sink{Run: of, Step: o.Step, Tool: o.Tool, Subject: x.subject(), Bucket: x.to.Bucket != "", Kept: kept}
				if err != nil {
					told.Err = fault.As(err)
				}
				s.tell.sink(&told)
				if err != nil {
					s.log.Error("an object of an agent could not be sent to a sink: it is on the blackboard alone", "tenant", id.Tenant, "run", id.Plain(), "step", o.Step, "subject", x.subject(), "error", err)
				}
			}
		}
	}, sent
}

// sinking is an object on its way to a sink.
type sinking struct {
	id         subjects.Run
	generation uint64
	bucket     string // of the run's large values
	n          int    // which of the entry's sinks it is
	to         agent.Sink
	body       wire.Sunk
}

// message is the message id under which it goes, whoever sends it.
func (x *sinking) message() string {
	return subjects.SinkID(x.id, x.generation, x.body.Step, x.n)
}

func (x *sinking) subject() string {
	if x.to.Bucket != "" {
		return subjects.BucketSubject(subjects.SinksBucket, subjects.SinkKey(x.id, x.generation, x.to.Bucket, x.body.Step))
	}
	return subjects.SinkSubject(x.id.Tenant, x.to.Subject)
}

// send sends an object. A large one lies in a blob that goes by its bytes, stored before.
func (s *sinks) send(ctx context.Context, x *sinking) (kept bool, err error) {
	if len(x.body.Value) > wire.InlineLimit {
		sum := sha256.Sum256(x.body.Value)
		blob, err := s.store.PutOnce(ctx, x.bucket, subjects.RunBlobName(x.id, x.generation, "object", hex.EncodeToString(sum[:])), x.body.Value)
		if err != nil {
			return false, err
		}
		x.body.Value, x.body.Blob = nil, blob
	}
	h, body := x.body.Message(x.message())
	return s.store.Send(ctx, x.subject(), h, body)
}
