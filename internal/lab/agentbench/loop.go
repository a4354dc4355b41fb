package agentbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/agent/parts"
	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/bench"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// The tools of the worker: a planner, what it calls, and what waits until a message comes on the gate's subject.
const (
	plannerTool = "planner"
	factTool    = "fact"
	gateTool    = "gate"
	gate        = "stepjet.lab.agents.gate"
	toolLimit   = 4096
)

// loop is what an agent's rounds are like. It stands in the definition as the planner's model, which every request has.
type loop struct {
	// Rounds are those that call tools; one more has the output.
	Rounds int `json:"rounds"`
	// Calls of each round, side by side, with results of Bytes bytes.
	Calls int `json:"calls"`
	Bytes int `json:"bytes"`
	// Whole has the planner put its requests together, as a language model needs them; it counts bytes and prefixes then.
	Whole bool `json:"whole,omitempty"`
	// Waits has the calls wait at the gate.
	Waits bool `json:"waits,omitempty"`
}

// name of the agent.
func (l loop) name() string {
	name := fmt.Sprintf("loop-%d-%d-%d", l.Rounds, l.Calls, l.Bytes)
	if l.Whole {
		name += "-whole"
	}
	if l.Waits {
		name += "-waits"
	}
	return name
}

// definition is the agent's. Results are shown as they are, up to 16 KiB.
func (l loop) definition() []byte {
	model, err := json.Marshal(l)
	must(err)
	body, err := json.Marshal(map[string]any{
		"name": l.name(), "description": "Asks for facts.",
		"agent": map[string]any{
			"planner": map[string]any{"tool": plannerTool, "model": string(model), "mode": "plan"},
			"tools":   []string{factTool, gateTool}, "max_rounds": l.Rounds + 1,
			"context": map[string]any{"result_bytes": 16 << 10, "total_bytes": 4 << 20},
		},
	})
	must(err)
	return body
}

func must(err error) {
	if err != nil {
		panic(err) // of values that can be marshalled
	}
}

// asked is what the planner reads of every request.
type asked struct {
	Round int    `json:"round"`
	Model string `json:"model"`
}

// seen is what the planner tells of a loop: its output.
type seen struct {
	// Micros are the times from one call of the planner to the next.
	Micros []int64 `json:"us"`
	// Input are the bytes of all requests, and Prefix those of them that the request before began with.
	Input  int64 `json:"input_bytes"`
	Prefix int64 `json:"prefix_bytes"`

	at   []time.Time
	last []byte
}

// planner plays loops. It is asked in one process alone, which keeps what it has seen.
type planner struct {
	parts *parts.Keeper
	mu    sync.Mutex
	runs  map[string]*seen
}

func newPlanner() *planner {
	return &planner{parts: parts.NewKeeper(parts.DefaultKept), runs: map[string]*seen{}}
}

func (p *planner) answer(ctx context.Context, args json.RawMessage) (worker.Output, error) {
	now := time.Now()
	var in asked
	var l loop
	if err := errors.Join(json.Unmarshal(args, &in), json.Unmarshal([]byte(in.Model), &l)); err != nil {
		return worker.Output{}, worker.Terminal(err)
	}
	info, _ := worker.InfoFrom(ctx)
	var whole []byte
	if l.Whole {
		var err error
		if whole, err = p.parts.Whole(ctx, args, worker.ReadPart); err != nil {
			return worker.Output{}, err
		}
	}
	s := p.note(info.Run, in.Round, now, whole)
	if in.Round < l.Rounds {
		return worker.Output{Body: calls(l, in.Round)}, nil
	}
	body, err := json.Marshal(map[string]any{"output": s})
	return worker.Output{Body: body}, err
}

// note keeps that a round was asked about.
func (p *planner) note(run string, round int, at time.Time, whole []byte) *seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.runs[run]
	if s == nil {
		s = &seen{}
		p.runs[run] = s
	}
	if round == len(s.at) { // a request that comes again is no round
		if round > 0 {
			s.Micros = append(s.Micros, at.Sub(s.at[round-1]).Microseconds())
		}
		s.at = append(s.at, at)
		s.Input += int64(len(whole))
		s.Prefix += int64(common(s.last, whole))
		s.last = whole
	}
	return s
}

// common is the length of what two texts begin with.
func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// calls is the answer of a round.
func calls(l loop, round int) json.RawMessage {
	called := factTool
	if l.Waits {
		called = gateTool
	}
	var b strings.Builder
	b.WriteString(`{"steps":[`)
	for i := range l.Calls {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"c%d","tool":%q,"arguments":{"round":%d,"bytes":%d}}`, i, called, round, l.Bytes)
	}
	b.WriteString("]}")
	return json.RawMessage(b.String())
}

// fact returns a text of so many bytes, another one each time, as results are.
func fact(_ context.Context, args json.RawMessage) (worker.Output, error) {
	var in struct{ Round, Bytes int }
	if err := json.Unmarshal(args, &in); err != nil {
		return worker.Output{}, worker.Terminal(err)
	}
	text := make([]byte, 0, in.Bytes+16)
	for n := uint32(in.Round + 1); len(text) < in.Bytes-2; {
		n = n*1664525 + 1013904223
		text = fmt.Appendf(text, "%08x ", n)
	}
	return worker.Output{Body: fmt.Appendf(nil, `"%s"`, text[:max(0, in.Bytes-2)])}, nil
}

// host registers the tools.
func host(w *worker.Worker, nc *nats.Conn) error {
	open := make(chan struct{})
	var once sync.Once
	if _, err := nc.Subscribe(gate, func(*nats.Msg) { once.Do(func() { close(open) }) }); err != nil {
		return err
	}
	plans := definition(plannerTool)
	plans.Orchestration.PartContent = true
	waits := definition(gateTool)
	waits.Orchestration = &tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: 64, TimeoutMS: time.Hour.Milliseconds()}
	return errors.Join(
		w.HandleRaw(plans, newPlanner().answer),
		w.HandleRaw(definition(factTool), fact),
		w.HandleRaw(waits, func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
			select {
			case <-open:
				return fact(ctx, args)
			case <-ctx.Done():
				return worker.Output{}, context.Cause(ctx)
			}
		}))
}

func definition(name string) *tool.Definition {
	return &tool.Definition{Name: name, Orchestration: &tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: toolLimit}}
}

// Extra is what the worker's process hosts.
func Extra() bench.Extra { return bench.Extra{Host: host, Tools: 3, Slots: 64} }

// world is a Stepjet for one part.
type world struct {
	*bench.World
	progress func(string)
	applied  map[string]bool
}

func newWorld(ctx context.Context, env Env, l bench.Layout) (*world, error) {
	env.Extra = Extra()
	w := &world{progress: env.Progress, applied: map[string]bool{}}
	var err error
	if w.World, err = bench.NewWorld(ctx, env.Env, l); err != nil {
		return nil, err
	}
	if err := w.Start(); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// begin starts an agent, which is registered first.
func (w *world) begin(ctx context.Context, l loop) (*client.Run, error) {
	if !w.applied[l.name()] {
		if _, err := w.Client.ApplyTemplate(ctx, l.definition()); err != nil {
			return nil, err
		}
		w.applied[l.name()] = true
	}
	return client.AgentOf(w.Client, l.name()).Submit(ctx, nil, client.SubmitOptions{})
}

// came waits for an agent and returns what its planner has seen.
func came(ctx context.Context, r *client.Run) (*seen, error) {
	out, err := r.Wait(ctx)
	if err != nil {
		return nil, err
	}
	if out.Status != outcome.Succeeded {
		return nil, fault.New(fault.Internal, "an agent came to %s: %.500s", out.Status, out.JSON())
	}
	raw, _ := out.Results.Get(client.AgentStep)
	s := &seen{}
	return s, json.Unmarshal(raw, s)
}

// play runs one agent.
func (w *world) play(ctx context.Context, l loop) (*seen, error) {
	r, err := w.begin(ctx, l)
	if err != nil {
		return nil, err
	}
	return came(ctx, r)
}
