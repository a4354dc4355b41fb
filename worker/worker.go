package worker

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// Output is what a tool returned, as bytes.
type Output struct {
	// Body is JSON, or any text. Where it isn't valid JSON it stands for a string; empty it stands for null.
	Body []byte
	// Text says that Body is plain text even where it could be read as JSON.
	Text bool
	// Type and Planner are Type and Text of a Result: what kind of object Body is, and what a planner reads in its place.
	Type, Planner string
}

// Handler is a tool with its types erased: arguments as JSON that fits the input schema, the result as bytes. The
// arguments must not be changed or kept.
type Handler func(ctx context.Context, args json.RawMessage) (Output, error)

// Worker hosts tools. Make it with New, give it tools with Handle and HandleRaw, then Run it once.
type Worker struct {
	nc     *nats.Conn
	config Config

	mu         sync.Mutex
	tools      map[string]*hosted
	middleware []func(next Handler) Handler
	mistakes   []error // of Handle, which returns none: Run does
	begun      bool

	refresh   time.Duration // refreshEvery, but in tests
	beatEvery time.Duration // wire.BeatEvery, but in tests
	ready     chan struct{}
	abandoned atomic.Int64
}

// hosted is one tool of a worker.
type hosted struct {
	def     *tool.Definition
	digest  string // of def
	schema  *tool.Schema
	handler Handler
	slots   int
	batch   *tool.Batch // nil: one step at a time

	propagation tool.Propagation
	together    func(Info) string                // see Together; may be nil
	gate        *Gate                            // see Gated; may be nil
	readable    func(item json.RawMessage) error // whether the handler can read an item; may be nil

	cancels   *nats.Subscription
	feed      atomic.Pointer[feed] // nil until it is registered
	mending   atomic.Bool          // it is being registered again
	restoring atomic.Bool          // its consumer is being made again
	stuck     atomic.Int32         // abandoned executions
	done      atomic.Int64         // executions that succeeded since the worker came up
	failed    atomic.Int64         // and those that did not

	reported atomic.Pointer[subjects.Attempt] // the last whose progress was told
	untold   atomic.Uint64                    // the connection by which it may not be told, counted from 1; 0: none
}

// New makes a worker on a connection, which stays the caller's. Run puts itself before the connection's error handler,
// which goes on being called, in order to say what the server refuses; so set handlers before. Errors have code
// invalid_config.
func New(nc *nats.Conn, c Config) (*Worker, error) {
	if nc == nil {
		return nil, fault.New(fault.InvalidConfig, "a worker needs a connection")
	}
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Worker{nc: nc, config: c, tools: map[string]*hosted{}, refresh: refreshEvery, beatEvery: wire.BeatEvery, ready: make(chan struct{})}, nil
}

// Name returns the worker's name, as it stands in records.
func (w *Worker) Name() string { return w.config.Name }

// Ready is closed once every tool is registered and its steps are being taken.
func (w *Worker) Ready() <-chan struct{} { return w.ready }

// Abandoned returns the number of executions that were given up and whose handlers still have not returned. Each keeps
// a slot.
func (w *Worker) Abandoned() int { return int(w.abandoned.Load()) }

// Use wraps every tool of the worker, whether it is added before or after; the first one given is the outermost. A
// middleware sees arguments that fit the tool's schema, and may change them.
func (w *Worker) Use(m ...func(next Handler) Handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.middleware = append(w.middleware, m...)
}

// HandleRaw hosts a tool whose definition comes from elsewhere. Errors: invalid_tool where the definition contradicts
// itself or the worker has a tool of that name, invalid_config where the worker runs already.
func (w *Worker) HandleRaw(
	def *tool.Definition, fn func(ctx context.Context, args json.RawMessage) (Output, error), opts ...Option,
) error {
	if def == nil || fn == nil {
		return fault.New(fault.InvalidTool, "a tool needs a definition and a function")
	}
	s := settings{def: *def, slots: w.config.Slots}
	if err := s.apply(opts); err != nil {
		return err
	}
	h, err := host(s, fn)
	if err != nil {
		return err
	}
	return w.add(h)
}

// host checks a tool and compiles its schema.
func host(s settings, fn Handler) (*hosted, error) {
	name := s.def.Name
	if !subjects.ValidTool(name) {
		return nil, fault.New(fault.InvalidTool, "the tool name %q is not 1 to %d of [A-Za-z0-9_.:/-]", name,
			subjects.MaxToolName)
	}
	if s.slots < 1 || s.slots > maxSlots {
		return nil, fault.New(fault.InvalidTool, "tool %q: it has 1 to %d slots, not %d", name, maxSlots, s.slots)
	}
	contract, err := s.def.Contract()
	if err != nil {
		return nil, inTool(name, err)
	}
	schema, err := s.def.Input()
	if err != nil {
		return nil, inTool(name, err)
	}
	if s.gate != nil && contract.Batch != nil {
		return nil, inTool(name, fault.New(fault.InvalidTool, "its contract has a batch, and a gate is for single steps"))
	}
	def := s.def
	return &hosted{
		def: &def, digest: def.Digest(), schema: schema, handler: fn, slots: s.slots, together: s.together,
		gate:  s.gate,
		batch: contract.Batch, propagation: contract.ErrorPropagation,
	}, nil
}

func inTool(name string, err error) error {
	return fault.Wrap(fault.InvalidTool, err, "tool \""+name+"\"")
}

func (w *Worker) add(h *hosted) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun {
		return fault.New(fault.InvalidConfig, "tool %q was added after the worker had been started", h.def.Name)
	}
	if _, there := w.tools[h.def.Name]; there {
		return fault.New(fault.InvalidTool, "tool %q is hosted twice by one worker", h.def.Name)
	}
	w.tools[h.def.Name] = h
	return nil
}

// mistake keeps an error of Handle for Run.
func (w *Worker) mistake(err error) {
	if err == nil {
		return
	}
	w.config.Logger.Error("a tool can't be hosted", "error", err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mistakes = append(w.mistakes, err)
}

// begin closes the list of tools, wraps them in the middleware, and gives them by name.
func (w *Worker) begin() ([]*hosted, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun {
		return nil, fault.New(fault.InvalidConfig, "a worker runs only once")
	}
	w.begun = true
	if len(w.mistakes) > 0 {
		return nil, errors.Join(w.mistakes...)
	}
	if len(w.tools) == 0 {
		return nil, fault.New(fault.InvalidConfig, "a worker without tools has nothing to do")
	}
	tools := make([]*hosted, 0, len(w.tools))
	for _, h := range w.tools {
		for _, m := range slices.Backward(w.middleware) {
			h.handler = m(h.handler)
		}
		tools = append(tools, h)
	}
	slices.SortFunc(tools, func(a, b *hosted) int {
		if a.def.Name < b.def.Name {
			return -1
		}
		return 1
	})
	return tools, nil
}

// Load is how much one tool of a worker has to do.
type Load struct {
	Tool string
	// Slots is how many executions, or calls of a batch tool, the worker takes at once; Busy is how many of them are
	// taken now, those among them whose handlers were given up and have not returned.
	Slots, Busy int
}

// Load returns how much each tool has to do now, in the order of their names.
func (w *Worker) Load() []Load {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]Load, 0, len(w.tools))
	for name, h := range w.tools {
		x := Load{Tool: name, Slots: h.slots}
		if f := h.feed.Load(); f != nil {
			x.Busy = f.taken(h.slots)
		}
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b Load) int { return strings.Compare(a.Tool, b.Tool) })
	return all
}
