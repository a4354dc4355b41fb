package client

import (
	"time"

	"github.com/stepjet/stepjet/internal/observer"
	"github.com/stepjet/stepjet/observe"
	"github.com/stepjet/stepjet/wire"
)

// teller tells an observer of plans that are submitted. Where there is none it does nothing, and allocates nothing.
type teller struct{ to *observer.Queue }

// began returns the time, where somebody will be told of it.
func (t teller) began() (at time.Time) {
	if t.to != nil {
		at = time.Now()
	}
	return at
}

// submit tells what became of a plan of so many bytes. r is nil where there is an error.
func (t teller) submit(tenant string, bytes int, o *SubmitOptions, began time.Time, r *Run, err error) {
	if t.to == nil {
		return
	}
	trace := wire.TraceOf(o.Header)
	e := observe.Submit{
		Run:   observe.Run{Tenant: tenant, ID: o.Run, Traceparent: trace.Parent, Tracestate: trace.State},
		Bytes: bytes, Began: began, Ended: time.Now(), Err: err,
	}
	if r != nil {
		e.ID, e.Generation, e.Attached = r.id, r.Generation(), r.attached
	}
	t.to.Tell(observer.Event, func(to observe.Observer) { to.OnSubmit(e) })
}
