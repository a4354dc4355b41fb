package conformance

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// stage is where the checks are made: a server, this package in the role of the orchestrator, and the worker.
type stage struct {
	o       Options
	nc      *nats.Conn
	js      jetstream.JetStream
	store   *kv.Store
	tool    tool.Registered
	witness witness
	deaf    func() // ends the witness
	guest   Guest  // nil where somebody else runs the worker

	registered atomic.Bool // the worker asked to be
	worker     string      // its name
	refuses    bool        // it hosts no at_most_once tools
	useless    bool        // it takes no steps
	stopped    bool        // it was stopped
	prepared   *prepared
	runs       []madeRun // to be removed at the end
	broken     error     // what kept a check from being made
}

// definition is what the tool is registered with until the worker registers it itself.
func definition(name string) *tool.Definition {
	return &tool.Definition{
		Name: name, Description: "Does what its arguments say, so that a worker can be tested.",
		InputSchema:   json.RawMessage(`{"type":"object"}`),
		Orchestration: &tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: 64},
	}
}

// open makes a server ready for the worker, which must not have begun.
func open(ctx context.Context, o Options) (*stage, error) {
	if err := alone(ctx, o.Conn); err != nil {
		return nil, err
	}
	js, err := jetstream.New(o.Conn)
	if err != nil {
		return nil, kv.Fault(err)
	}
	s := &stage{o: o, nc: o.Conn, js: js}
	if s.store, err = kv.Setup(ctx, s.nc, kv.Config{AckWait: o.Lease, Logger: o.Logger}); err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stage) open(ctx context.Context) (err error) {
	if s.tool, err = s.store.Registry.Tool(ctx, s.o.Tool); fault.CodeOf(err) == fault.NotFound {
		raw, _ := json.Marshal(definition(s.o.Tool)) // made of strings and numbers
		s.tool, err = s.store.Registry.Register(ctx, raw)
	}
	if err != nil {
		return err
	}
	if s.deaf, err = s.witness.listen(s.nc, s.tool, s.store.Ledger.Shards()); err != nil {
		return err
	}
	if _, err = s.nc.Subscribe(subjects.RegisterFilter, func(m *nats.Msg) { go s.register(m) }); err == nil {
		err = s.nc.Flush()
	}
	if err != nil {
		return kv.Fault(err)
	}
	return nil
}

// alone refuses a server where an orchestrator works: the two would answer the same questions.
func alone(ctx context.Context, nc *nats.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := nc.RequestWithContext(ctx, subjects.PingSubject, nil); err != nil {
		return nil // nobody answers
	}
	return fault.New(fault.InvalidConfig, "an orchestrator works on this server").
		WithHint("the checks play the orchestrator themselves; give a server of its own, or none to have one started")
}

// register answers the worker's registration, as an orchestrator does.
func (s *stage) register(m *nats.Msg) {
	ctx, cancel := context.WithTimeout(context.Background(), s.o.Patience)
	defer cancel()
	t, err := s.store.Registry.Register(ctx, m.Data)
	reply := nats.NewMsg(m.Reply)
	if err != nil {
		reply.Header[subjects.HeaderStatus] = []string{subjects.StatusError}
		reply.Data, _ = json.Marshal(fault.As(err))
	} else {
		reply.Data, _ = json.Marshal(t)
		if t.Name == s.o.Tool {
			s.registered.Store(true)
		}
	}
	_ = m.RespondMsg(reply) // a worker that asked with a plain publish gets none
}

// start starts the worker, where it is ours to start.
func (s *stage) start(ctx context.Context) (err error) {
	if s.o.Host != nil {
		s.guest, err = s.o.Host.Start(ctx)
		s.stopped = err != nil
	}
	return err
}

// close stops the worker and removes what the checks wrote.
func (s *stage) close() {
	if s.guest != nil {
		s.guest.Kill()
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.o.Patience)
	defer cancel()
	for _, r := range s.runs {
		if ctx.Err() != nil {
			break
		}
		s.clear(ctx, r)
	}
	if s.deaf != nil {
		s.deaf()
	}
	s.store.Close()
}

// clear removes a run. What it can't remove lies on a server that is for testing.
func (s *stage) clear(ctx context.Context, r madeRun) {
	_ = s.store.Queue.PurgeSteps(ctx, r.Run, r.generation, s.tool.Name, s.tool.Shard)
	_ = s.store.Ledger.PurgeRun(ctx, r.Run, r.generation)
	// of a zombie
	_ = s.store.Ledger.PurgeSubject(ctx, subjects.GenerationFilter(r.Run, r.generation+1, s.store.Ledger.Shards()))
}

// make makes one check, unless it is not asked for or can't be made.
func (s *stage) make(ctx context.Context, c *check) Check {
	out := Check{Name: c.name, Expected: c.expected}
	v := &verdict{}
	began := time.Now()
	switch {
	case len(s.o.Only) > 0 && !c.always && !slices.Contains(s.o.Only, c.name):
		v.skip("not asked for")
	case s.useless && !c.useless:
		v.skip("the worker takes no steps")
	case s.stopped && !c.stopped:
		v.skip("the worker was stopped")
	default:
		c.run(ctx, s, v)
		out.MS = float64(time.Since(began).Microseconds()) / 1000
	}
	s.useless = s.useless || v.fatal
	out.Status, out.Findings, out.Why = v.status(), v.findings, v.skipped
	return out
}

// note keeps the first error that is not the worker's.
func (s *stage) note(err error) {
	if err != nil && s.broken == nil {
		s.broken = err
	}
}

// until waits for something to become true; false where it doesn't within d.
func until(ctx context.Context, d time.Duration, is func() bool) bool {
	end := time.NewTimer(d)
	defer end.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-end.C:
			return is()
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// lease is how long a step is the worker's without a heartbeat.
func (s *stage) lease() time.Duration { return s.tool.AckWait }
