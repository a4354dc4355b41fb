package server

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/mcp/task"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// watchAfter is how long a call waits before it looks at its run: most are over by then, and are not looked at.
const watchAfter = 100 * time.Millisecond

// ended is what the wait for a run came to.
type ended struct {
	out *outcome.Outcome
	err error
}

// await waits for a run until it is over, the call has waited long enough, a question is to be asked, or the client is
// gone.
func (c *call) await(ctx context.Context, r *client.Run) (*mcp.CallToolResult, error) {
	handle := c.mode != taskNever && knowsTasks(c.req)
	patience := c.hold
	if handle && c.mode != taskLate {
		return c.handOut(ctx)
	}
	if handle {
		patience = min(c.cfg.TaskAfter, c.hold)
	}
	w := newWaiting(ctx, c, r)
	defer w.stop()
	enough := time.NewTimer(patience)
	defer enough.Stop()
	for {
		select {
		case e := <-w.over:
			if e.err == nil && w.form != nil {
				w.form.end() // nobody is asked any more
			}
			w.rest()
			return c.finish(ctx, e)
		case e := <-w.events:
			w.take(e)
			w.progress.soon(ctx)
		case <-w.look.C:
			w.watch()
		case <-w.beat.C:
			if res := w.tick(handle); res != nil {
				return res, nil
			}
		case err := <-w.answered:
			w.asking, w.form = "", nil
			if refused(err) {
				return c.stillRunning(ctx, err)
			} else if err != nil {
				return failed(err)
			}
		case <-enough.C:
			if handle {
				return c.handOut(ctx)
			}
			return c.stillRunning(ctx, nil)
		case <-ctx.Done():
			c.leave()
			return failed(context.Cause(ctx))
		}
	}
}

// finish is the result of a run that is over, or of a wait that failed.
func (c *call) finish(ctx context.Context, e ended) (*mcp.CallToolResult, error) {
	if e.err == nil {
		return c.runs.result(ctx, e.out, c.kind, c.req.ProtocolVersion())
	}
	if ctx.Err() != nil {
		c.leave()
	}
	return failed(e.err)
}

// stillRunning is what a caller gets who can't wait any longer, with why the last answer to what the run asks was
// refused; nil: it is not asked again for that.
func (c *call) stillRunning(ctx context.Context, why error) (*mcp.CallToolResult, error) {
	doc := map[string]any{
		"run": c.run, "status": outcome.Running,
		"next": `call ` + getResult + ` with {"run": "` + c.run + `"} for the rest`,
	}
	if why != nil {
		doc["refused"] = reason(why)
	}
	if run, err := c.runs.document(ctx, c.run); err == nil {
		if run.Status != outcome.Running && run.Outcome != nil {
			return c.finish(ctx, ended{out: run.Outcome})
		}
		if said := task.Progress(run); said != "" {
			doc["progress"] = said
		}
	}
	if asked, err := c.runs.client.Questions(ctx, c.run); err == nil && len(asked) > 0 {
		doc["waiting"] = waitingFor(asked)
	}
	raw, _ := json.Marshal(doc) // it can be written
	return structured(raw), nil
}

// waiting is one wait of a call.
type waiting struct {
	c   *call
	ctx context.Context
	run *client.Run

	over     chan ended
	events   chan client.Event
	watched  chan struct{} // closed when the run is watched no more; nil: it was not
	answered chan error    // the client's user answered, or could not
	look     *time.Timer
	beat     *time.Ticker
	end      context.CancelFunc

	progress progress
	asks     bool              // a step waits for a person
	asking   string            // the question that the client's user has before them
	form     *form             // its form
	own      []*form           // those that this call has opened
	put      map[string]string // the questions that were put, and left open
}

// beatEvery bounds the notices of progress to four a second.
const beatEvery = 250 * time.Millisecond

func newWaiting(ctx context.Context, c *call, r *client.Run) *waiting {
	inner, end := context.WithCancel(ctx)
	w := &waiting{
		c: c, ctx: inner, run: r, over: make(chan ended, 1), events: make(chan client.Event),
		answered: make(chan error, 1), look: time.NewTimer(watchAfter), beat: time.NewTicker(beatEvery), end: end,
		progress: newProgress(c.req, c.kind, c.cfg.quiet), put: map[string]string{},
	}
	if w.progress.token != nil {
		w.progress.tell(inner) // at once, so that the client sees that it was taken
		w.look.Stop()
		w.watch() // what is said of how far it is may come soon
	}
	go func() {
		out, err := r.Wait(inner)
		w.over <- ended{out, err}
	}()
	return w
}

func (w *waiting) stop() {
	if w.ctx.Err() != nil { // the client cancelled the call
		for _, f := range w.own {
			f.end()
		}
	}
	if w.form != nil {
		w.form.carrier.CompareAndSwap(&w.ctx, nil) // it stays open
	}
	w.end()
	w.look.Stop()
	w.beat.Stop()
}

// watch follows the run, for its progress and for what it asks.
func (w *waiting) watch() {
	w.watched = make(chan struct{})
	go func() {
		defer close(w.watched)
		err := w.c.runs.client.Watch(w.ctx, w.c.run, func(e client.Event) {
			select {
			case w.events <- e:
			case <-w.ctx.Done():
			}
		})
		if err != nil && w.ctx.Err() == nil {
			w.c.cfg.Logger.Debug("a run can't be watched; its end will be told all the same", "tenant", w.c.caller.Tenant, "run", w.c.run, "error", err)
		}
	}()
}

// restWithin bounds the wait for what was said of a run that is over.
const restWithin = 100 * time.Millisecond

// rest tells a client that wants to know what was said of the run before its end, which may have come by another way.
func (w *waiting) rest() {
	if w.progress.token == nil || w.watched == nil {
		return
	}
	enough := time.NewTimer(restWithin)
	defer enough.Stop()
	for {
		select {
		case e := <-w.events:
			w.take(e)
			w.progress.soon(w.ctx)
		case <-w.watched:
			return
		case <-enough.C:
			return
		}
	}
}

// take takes what happened to the run.
func (w *waiting) take(e client.Event) {
	switch e.Kind {
	case subjects.EventStart:
		w.progress.total = e.Steps
	case subjects.EventStep:
		if _, _, item := subjects.SplitItem(e.Step); !item && !strings.Contains(e.Step, "/") && e.Status.Terminal() {
			w.progress.over++
			delete(w.progress.parts, e.Step)
		}
		w.progress.happened(e)
		w.asks = w.asks || e.Status == outcome.StepAsking
	case subjects.EventProgress:
		w.progress.heard(e)
	case subjects.EventMessage:
		e.Progress = &outcome.Progress{Message: e.Message.Text}
		w.progress.heard(e)
	case subjects.EventQuestion:
		w.asks = true
	case subjects.EventAmend:
		if e.Step == subjects.RootScope && e.Steps > 0 {
			w.progress.total = e.Steps
		}
	}
}

// tick is what is done four times a second: tell of progress, and put what the run asks. handle says that the client
// polls for what is asked.
func (w *waiting) tick(handle bool) *mcp.CallToolResult {
	w.progress.beat(w.ctx)
	if !w.asks || handle || w.asking != "" {
		return nil
	}
	asked, err := w.c.mine(w.ctx)
	if err != nil || len(asked) == 0 {
		return nil // another look will tell; the wait has its bound
	}
	if w.c.req.ProtocolVersion() >= stateless {
		return w.c.inputRequired(asked, nil)
	}
	for _, q := range asked {
		if w.c.forms.has(w.c, q) { // another call has shown it, or it was shown before
			w.ask(q)
			return nil
		}
	}
	for _, q := range asked {
		if _, there := w.put[keyOf(q)]; !there {
			w.ask(q)
			break
		}
	}
	return nil
}

// ask puts a question to the client's user, as versions with sessions do, or waits for the form that is before them.
func (w *waiting) ask(q *outcome.Question) {
	f, fresh := w.c.forms.open(&w.ctx, w.c, q)
	if f == nil {
		return // another look may find room
	}
	if fresh {
		w.own = append(w.own, f)
	}
	w.asking, w.form = keyOf(q), f
	w.put[w.asking] = ""
	go func() {
		select {
		case <-f.done:
			w.answered <- f.err
		case <-w.ctx.Done():
		}
	}()
}

// handOut answers a call with a task.
func (c *call) handOut(ctx context.Context) (*mcp.CallToolResult, error) {
	if h := holderOf(ctx); h != nil {
		t, err := c.shared.tasks.taskOf(ctx, c.cfg.Keys.Sign(task.ID{Run: c.run, Kind: c.kind}, c.caller.owner()), c.run)
		if fault.CodeOf(err) != "" {
			return failed(err)
		}
		h.task = t
	}
	return &mcp.CallToolResult{}, nil
}
