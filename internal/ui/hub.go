package ui

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/subjects"
)

const (
	// listEvery is the least time between two frames of the list.
	listEvery = 500 * time.Millisecond
	// slowFrames is how many frames wait for a viewer before it has to begin anew.
	slowFrames = 16
)

// topicRuns is what those follow who look at lists.
const topicRuns = "runs"

// hub tells viewers what happens. A topic is followed once, however many look, as long as anybody does.
type hub struct {
	ctx    context.Context
	client func(ctx context.Context, tenant string) (*client.Client, error)
	lines  *follower
	link   *link
	silent time.Duration // commentEvery, but in tests

	mu     sync.Mutex
	away   time.Time // since when there has been no connection; zero where there is one
	topics map[string]*topic
	done   sync.WaitGroup
}

// frame is one message of a stream.
type frame struct {
	id   uint64
	kind string // steps, tokens, end, runs, lost, reset
	data any
}

// topic is something that is followed.
type topic struct {
	epoch   string // differs from that of an earlier topic of the same name
	stop    context.CancelFunc
	viewers map[*viewer]bool
	last    uint64 // id of the last frame
}

// viewer is one stream of a browser.
type viewer struct {
	frames chan frame
	epoch  string
	lost   atomic.Bool // frames that it was too slow for: it has to read anew
}

func newHub(
	ctx context.Context, open func(context.Context, string) (*client.Client, error), lines *follower, l *link,
) *hub {
	return &hub{ctx: ctx, client: open, lines: lines, link: l, silent: commentEvery, topics: map[string]*topic{}}
}

func (h *hub) wait() { h.done.Wait() }

// join adds a viewer to a topic, which begins with its first one. last is the id of the topic's last frame.
func (h *hub) join(name string) (v *viewer, last uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[name]
	if t == nil {
		ctx, stop := context.WithCancel(h.ctx)
		t = &topic{epoch: nuid.Next(), stop: stop, viewers: map[*viewer]bool{}}
		h.topics[name] = t
		h.done.Go(func() { h.follow(ctx, name, t) })
	}
	v = &viewer{frames: make(chan frame, slowFrames), epoch: t.epoch}
	t.viewers[v] = true
	return v, t.last
}

// leave takes a viewer out of a topic, which ends with its last one.
func (h *hub) leave(name string, v *viewer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[name]
	if t == nil || !t.viewers[v] {
		return // the topic ended before
	}
	delete(t.viewers, v)
	if len(t.viewers) == 0 {
		t.stop()
		delete(h.topics, name)
	}
}

// tell sends a frame to all viewers of a topic. It never waits: a viewer whose frames are full is told to begin anew.
func (h *hub) tell(t *topic, kind string, data any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.tell(kind, data)
}

func (t *topic) tell(kind string, data any) {
	t.last++
	for v := range t.viewers {
		select {
		case v.frames <- frame{t.last, kind, data}:
		default:
			v.lost.Store(true)
		}
	}
}

// standing is what a reset says beside that one has to read anew: since when what is read is of before.
type standing struct {
	Away time.Time `json:"away,omitzero"`
}

func (h *hub) standing() standing {
	h.mu.Lock()
	defer h.mu.Unlock()
	return standing{h.away}
}

// stand tells all who look that there has been no connection since a time, or, where that is zero, that there is one
// again: what happened meanwhile nobody was told.
func (h *hub) stand(away time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.away = away
	kind := "reset"
	if !away.IsZero() {
		kind = "lost"
	}
	for _, t := range h.topics {
		t.tell(kind, standing{away})
	}
}

// end ends a topic that nothing comes of any more, and the streams of its viewers with it.
func (h *hub) end(name string, t *topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for v := range t.viewers {
		close(v.frames)
	}
	clear(t.viewers)
	if h.topics[name] == t {
		t.stop()
		delete(h.topics, name)
	}
}

func (h *hub) follow(ctx context.Context, name string, t *topic) {
	defer h.end(name, t)
	if name == topicRuns {
		h.followList(ctx, t)
		return
	}
	r, _ := subjects.ParseHistoryKey(name) // every other topic is one
	if !h.link.wait(ctx) {                 // who looks is told that it is away
		return
	}
	c, err := h.client(ctx, r.Tenant)
	if err != nil {
		return
	}
	of := func(ctx context.Context, each func(client.Event)) error { return c.Watch(ctx, r.Plain(), each) }
	watch(ctx, of, func(kind string, data any) { h.tell(t, kind, data) })
}

// followList tells viewers of lists that lines have changed; they ask for the page that they show.
func (h *hub) followList(ctx context.Context, t *topic) {
	for {
		select {
		case <-h.lines.index().Changed():
		case <-ctx.Done():
			return
		}
		h.tell(t, topicRuns, map[string]uint64{"version": h.lines.index().Version()})
		select {
		case <-time.After(listEvery):
		case <-ctx.Done():
			return
		}
	}
}
