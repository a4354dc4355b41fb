package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/mcp/content"
	"github.com/stepjet/stepjet/mcp/servers"
	"github.com/stepjet/stepjet/mcp/session"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// bridged is a tool of a server, hosted here.
type bridged struct {
	up   *upstream
	name string // that its server has for it
	def  *tool.Definition
	once bool // a call whose end nobody has seen must not be made again
	gate worker.Gate
	// mirrors says that arguments go into headers too, which takes the server's list.
	mirrors bool
	pinned  string                 // SHA-256 of the definition that was agreed to
	holds   atomic.Pointer[string] // why no steps are taken; nil: nothing is wrong
}

// held says why no steps of the tool are taken; "" where they are.
func (t *bridged) held() string {
	if why := t.holds.Load(); why != nil {
		return *why
	}
	return ""
}

// call executes one step.
func (t *bridged) call(ctx context.Context, args json.RawMessage) (worker.Output, error) {
	info, _ := worker.InfoFrom(ctx)
	if why := t.held(); why != "" { // it had been handed out before
		return worker.Output{}, fault.New(fault.ToolFailed, "the tool %s is held: %s", t.def.Name, why).
			WithHint("look at it with stepjet mcp diff, agree to it with stepjet mcp accept %s", t.def.Name)
	}
	own, err := t.up.entry.HeadersFor(info.Context)
	if err != nil {
		return worker.Output{}, err
	}
	ctx = session.WithHeaders(ctx, own)
	l := &line{up: t.up, tenant: info.Tenant, own: own}
	if err := l.take(ctx); err != nil {
		return worker.Output{}, err
	}
	defer func() { l.release() }()      // which may be another one by then
	if t.mirrors && t.up.entry.Lazy() { // of any other the list was compared over this connection
		if err := l.Listed(ctx); err != nil {
			t.up.log.Debug("an MCP server can't be asked for its tools; the call tells why", "tool", t.def.Name, "error", err)
		}
	}
	told, err := answered(ctx)
	if err != nil {
		return worker.Output{}, err
	}
	if l.Tasks {
		if id := t.noted(ctx); id != "" { // by a worker that was handed this attempt before
			return t.follow(ctx, l, id, nil)
		}
		if told != nil && told.Task != "" {
			if out, over, err := t.resume(ctx, l, told); over {
				return out, err
			}
			told = nil
		}
	}
	raw, head, asked, err := t.tell(ctx, l, args, info, told)
	if err != nil {
		return worker.Output{}, t.broken(ctx, l, err)
	}
	if head.Task != "" {
		return t.follow(ctx, l, t.note(ctx, l, head.Task), nil)
	}
	return t.output(ctx, raw, asked)
}

// tell makes the call, with the answers to what the server has asked; told is nil for none. Where the server knows nothing
// any more of having asked, it is called anew, and asks again. One that asks nothing, and gives a state, wants to be called
// again with that: so it spreads its load.
func (t *bridged) tell(
	ctx context.Context, l *line, args json.RawMessage, info worker.Info, told *inquiry,
) (raw json.RawMessage, head content.Head, asked []content.Question, err error) {
	for again := 0; ; {
		p := t.request(args, info)
		declare(ctx, l, p)
		if told != nil {
			p.InputResponses = told.Answers
			if told.Request != nil {
				p.RequestState = *told.Request
			}
		}
		raw, asked, err = l.Call(ctx, p, func(p *session.Progress) { report(ctx, p) })
		if err == nil {
			head = content.HeadOf(raw)
		}
		switch {
		case told != nil && !t.once && forgotten(err):
			told = nil
		case err == nil && head.Again != nil && again < mostAgain:
			told = &inquiry{Request: head.Again}
			pause(ctx, again)
			again++
		default:
			return raw, head, asked, err
		}
	}
}

// mostAgain is how often a server may want to be called again before it says something.
const mostAgain = 8

// pause waits before a server is called again for the n-th time: not at first, and then for twice as long each time.
func pause(ctx context.Context, n int) {
	if n == 0 {
		return
	}
	t := time.NewTimer(min(25*time.Millisecond<<n, 2*time.Second))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// line is a connection that a call has room at.
type line struct {
	*session.Session
	up      *upstream
	tenant  string
	own     map[string][]string
	pool    *pool
	release func()
}

// take waits for room at a connection.
func (l *line) take(ctx context.Context) (err error) {
	l.Session, l.pool, l.release, err = l.up.take(ctx, l.tenant, l.own)
	if err != nil {
		l.release = func() {}
	}
	return err
}

// again takes another connection in the place of one that may have ended.
func (l *line) again(ctx context.Context) error {
	l.release()
	return l.take(ctx)
}

// broken is the error of a step whose request brought no result.
func (t *bridged) broken(ctx context.Context, l *line, err error) error {
	var f *session.Failure
	if !errors.As(err, &f) {
		return err
	}
	if session.Refusal(f.Status) && t.up.entry.Lazy() {
		t.up.discard(l.pool)
	}
	return t.failed(ctx, l.Session, f)
}

// report tells whoever watches the run what the server says of how far the call is.
func report(ctx context.Context, p *session.Progress) {
	worker.Report(ctx, worker.Progress{Done: p.Progress, Total: p.Total, Message: servers.Clean(p.Message)})
}

// take returns a connection with room for a tenant's call.
func (u *upstream) take(
	ctx context.Context, tenant string, own map[string][]string,
) (s *session.Session, p *pool, release func(), err error) {
	for {
		p = u.pool(tenant, own)
		s, release, err = p.take(ctx)
		if !errors.Is(err, errClosed) || ctx.Err() != nil || u.ctx.Err() != nil {
			return s, p, release, err
		}
	}
}

// What a request says beside the arguments.
const (
	parentMeta = "traceparent"
	stateMeta  = "tracestate"
)

// request makes the parameters of tools/call. A key of the context whose name the protocol uses stays out.
func (t *bridged) request(args json.RawMessage, info worker.Info) *mcp.CallToolParams {
	meta := mcp.Meta{}
	told := t.up.entry.Context(info.Context)
	for _, key := range told.Keys() {
		if v, ok := told.Get(key); ok && !slices.Contains(ownMeta, key) {
			meta[key] = v
		}
	}
	if info.Key != "" {
		sum := sha256.Sum256([]byte(info.Key)) // which tells what others need not know
		meta[content.KeyMeta] = hex.EncodeToString(sum[:])
	}
	if trace := info.Trace.Valid(); trace.Parent != "" {
		meta[parentMeta] = trace.Parent
		if trace.State != "" {
			meta[stateMeta] = trace.State
		}
	}
	return &mcp.CallToolParams{Name: t.name, Arguments: args, Meta: meta}
}

var ownMeta = []string{"progressToken", parentMeta, stateMeta, "baggage"}

// output makes the result of a step of what the server answered, after it had asked some questions in vain.
func (t *bridged) output(ctx context.Context, raw json.RawMessage, asked []content.Question) (worker.Output, error) {
	r, err := content.Read(raw, func(data []byte) (json.RawMessage, error) {
		h, err := worker.Keep(ctx, data)
		if err != nil {
			return nil, err
		}
		return json.Marshal(h)
	})
	switch {
	case err != nil:
		return worker.Output{}, err
	case r.Kind == content.InputRequired:
		if content.HeadOf(raw).Again != nil {
			return worker.Output{}, fault.New(fault.ToolFailed,
				"the tool %s wanted to be called again %d times in a row, and said nothing else", t.def.Name, mostAgain).
				WithHint("its server spreads its load: try later, or look there")
		}
		return worker.Output{}, t.ask(ctx, raw, "")
	case r.Kind != content.Complete:
		return worker.Output{}, fault.New(fault.ToolTerminal,
			"the tool %s answered in a way that is not known here: resultType %q", t.def.Name, r.Kind)
	case r.Failed:
		return worker.Output{}, t.isError(r, asked)
	}
	return worker.Output{Body: r.Body, Text: r.Text}, nil
}
