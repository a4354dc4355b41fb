package kv

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
)

// A server tells about a refused publish or subscription only asynchronously, so that to the caller it looks like a
// timeout. violations remembers what was refused on a connection, so that the timeout can be explained, and wakes those
// that are waiting in vain.
type violations struct {
	mu           sync.Mutex
	refused      map[string]*refusal
	waiting      map[*guard]struct{}
	notify       map[int]func(subject string)
	next         int
	inbox        string       // what the connection's own inboxes begin with
	inboxRefused *fault.Error // it may not listen to its own inboxes, so that it hears no answers
	stopped      bool
}

type refusal struct {
	fault *fault.Error
	at    time.Time
}

// A refusal is taken for the reason of a timeout for so long: permissions may change while a connection lives.
const refusalMemory = 30 * time.Second

// maxRefusals bounds the memory for a connection that publishes to thousands of forbidden subjects.
const maxRefusals = 1024

// chaining keeps two from putting themselves before the same handler at once.
var chaining sync.Mutex

// watchViolations puts itself before nc's error handler, which hears everything as before: nats.go has one such
// handler for a connection, and no other way to hear of a refusal. A handler that somebody sets later takes its
// place, and then a refusal looks like a timeout. Nothing else of the connection is changed.
func watchViolations(nc *nats.Conn) *violations {
	v := &violations{
		refused: map[string]*refusal{}, waiting: map[*guard]struct{}{}, notify: map[int]func(string){},
		inbox: strings.TrimSuffix(cmp.Or(nc.Opts.InboxPrefix, nats.InboxPrefix), ".") + ".",
	}
	chaining.Lock()
	defer chaining.Unlock()
	next := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		v.note(err)
		if next != nil {
			next(nc, sub, err)
		}
	})
	return v
}

// stop forgets what was refused, and from now on notes nothing. Its place before the connection's handler it keeps,
// since another may stand before it.
func (v *violations) stop() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stopped = true
	clear(v.refused)
}

func (v *violations) note(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	subject, kind := violated(err)
	f := Fault(err)
	unheard := strings.EqualFold(kind, "subscription") && strings.HasPrefix(subject, v.inbox)
	v.mu.Lock()
	if v.stopped {
		v.mu.Unlock()
		return
	}
	if unheard {
		v.inboxRefused = f.WithHint("it hears no answers; give it the prefix of inboxes that its user has (--inbox-prefix)")
	}
	if len(v.refused) >= maxRefusals {
		clear(v.refused)
	}
	v.refused[subject] = &refusal{f, time.Now()}
	for g := range v.waiting {
		if unheard || g.concerns(subject) {
			g.cancel(f)
		}
	}
	var tell []func(string)
	for _, f := range v.notify {
		tell = append(tell, f)
	}
	v.mu.Unlock()
	for _, f := range tell {
		f(subject)
	}
}

// of returns why a subject was refused lately, or why nothing is heard of it; nil if it was not.
func (v *violations) of(subject string) *fault.Error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.inboxRefused != nil {
		return v.inboxRefused
	}
	r, ok := v.refused[subject]
	if !ok || time.Since(r.at) > refusalMemory {
		return nil
	}
	return r.fault
}

// inboxRefusal returns why the connection hears no answers; nil if it does.
func (v *violations) inboxRefusal() *fault.Error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.inboxRefused
}

// onRefusal calls f for every subject that is refused from now on, until the function it returns is called.
func (v *violations) onRefusal(f func(subject string)) (stop func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	id := v.next
	v.next++
	v.notify[id] = f
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.notify, id)
	}
}

// guard is a request whose context ends, with the refusal as its cause, when the server refuses what it needs.
type guard struct {
	subject string // a subject, or a prefix that ends in a dot
	cancel  context.CancelCauseFunc
}

func (g *guard) concerns(subject string) bool {
	return subject == g.subject || strings.HasSuffix(g.subject, ".") && strings.HasPrefix(subject, g.subject)
}

// guarded runs one request whose subject (or prefix, ending in a dot) is given, and explains its failure.
func (v *violations) guarded(ctx context.Context, subject string, request func(context.Context) error) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g := &guard{subject, cancel}
	v.mu.Lock()
	v.waiting[g] = struct{}{}
	v.mu.Unlock()
	defer func() {
		v.mu.Lock()
		delete(v.waiting, g)
		v.mu.Unlock()
	}()
	if f := v.inboxRefusal(); f != nil {
		return f
	}
	err := request(inner)
	if err == nil {
		return nil
	}
	var f *fault.Error
	if errors.As(context.Cause(inner), &f) && ctx.Err() == nil {
		return f
	}
	return err
}

// heard is Store.Heard, which more than one facet makes use of.
func heard(ctx context.Context, s *account, filters []string) error {
	for {
		err := s.nc.FlushWithContext(ctx)
		if err == nil {
			break
		}
		if ctx.Err() != nil || s.nc.IsClosed() || !errors.Is(err, nats.ErrConnectionClosed) {
			return Fault(err)
		}
		// So nats.go says as well that it lost a server, and looks for the next.
		if !s.pause(ctx, connectPause) {
			return s.explain(ctx, context.Cause(ctx))
		}
	}
	// The refusal came before the answer to the flush, but it is handed on beside it.
	last := s.nc.LastError()
	for _, filter := range filters {
		if f := s.denied.of(filter); f != nil {
			return f
		}
		if last != nil && errors.Is(last, nats.ErrPermissionViolation) {
			if subject, _ := violated(last); subject == filter {
				return Fault(last)
			}
		}
	}
	return nil
}
