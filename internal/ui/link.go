package ui

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
)

// link knows whether the page's connection to NATS stands. It ends nothing and mends nothing, which is the connection's
// own matter: it has those told who look, and those answered who would wait in vain.
type link struct {
	nc *nats.Conn

	mu    sync.Mutex
	life  context.Context // of the connection as it stands; what was lost is its cause once it is over
	end   context.CancelCauseFunc
	there chan struct{} // closed while it stands
	since time.Time     // when it was lost; zero while it stands
}

func newLink(ctx context.Context, nc *nats.Conn) *link {
	l := &link{nc: nc, there: make(chan struct{})}
	close(l.there)
	l.life, l.end = context.WithCancelCause(ctx)
	return l
}

// run tells when the connection is lost, with the time, and when it stands again, with none, until ctx ends.
func (l *link) run(ctx context.Context, tell func(away time.Time)) {
	statuses := l.nc.StatusChanged()
	defer l.nc.RemoveStatusListener(statuses)
	stands := l.nc.IsConnected()
	for {
		if away, changed := l.turn(ctx, stands); changed {
			tell(away)
		}
		select {
		case s := <-statuses:
			stands = s == nats.CONNECTED
			if len(statuses) == 0 { // some are dropped where many come at once
				stands = stands && l.nc.IsConnected()
			}
		case <-ctx.Done():
			l.end(context.Cause(ctx))
			return
		}
	}
}

// turn notes whether the connection stands.
func (l *link) turn(ctx context.Context, stands bool) (away time.Time, changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case stands == l.since.IsZero():
		return l.since, false
	case stands:
		l.since = time.Time{}
		l.life, l.end = context.WithCancelCause(ctx)
		close(l.there)
	default:
		l.since = time.Now().UTC()
		l.there = make(chan struct{})
		l.end(lostSince(l.since))
	}
	return l.since, true
}

func lostSince(t time.Time) *fault.Error {
	return fault.New(fault.NoConnection, "the page has had no connection to NATS since %s", t.UTC().Format(time.TimeOnly+"Z")).
		WithHint("it goes on by itself once a server answers; is one running at the address of --server?")
}

// now returns a context that ends when the connection is lost, with that as its cause.
func (l *link) now() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.life
}

// away says that there is no connection; nil where there is one.
func (l *link) away() *fault.Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.since.IsZero():
		return lostSince(l.since)
	case !l.nc.IsConnected(): // it has not been told yet
		return lostSince(time.Now())
	}
	return nil
}

// wait waits for a connection; it returns false where ctx ended first.
func (l *link) wait(ctx context.Context) bool {
	l.mu.Lock()
	there := l.there
	l.mu.Unlock()
	select {
	case <-there:
		return true
	case <-ctx.Done():
		return false
	}
}

// reading has a request refused at once where there is no connection, and given up when it is lost meanwhile: it changes
// nothing, so whoever asks again loses nothing.
func (l *link) reading(do endpoint) endpoint {
	return l.changing(func(w http.ResponseWriter, r *http.Request) (any, error) {
		ctx, end := context.WithCancelCause(r.Context())
		defer end(nil)
		life := l.now()
		defer context.AfterFunc(life, func() { end(context.Cause(life)) })()
		answer, err := do(w, r.WithContext(ctx))
		answered := answer == nil && err == nil // by itself
		if !answered && ctx.Err() != nil && r.Context().Err() == nil {
			return nil, context.Cause(life)
		}
		return answer, err
	})
}

// changing has a request refused at once where there is no connection. What is under way when that is lost has its own
// time: it may have been done.
func (l *link) changing(do endpoint) endpoint {
	return func(w http.ResponseWriter, r *http.Request) (any, error) {
		if e := l.away(); e != nil {
			return nil, e
		}
		return do(w, r)
	}
}
