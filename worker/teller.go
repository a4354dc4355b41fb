package worker

import (
	"time"

	"github.com/stepjet/stepjet/internal/observer"
	"github.com/stepjet/stepjet/observe"
)

// teller tells an observer of executions. Where there is none it does nothing, and allocates nothing.
type teller struct{ to *observer.Queue }

// execute tells of an execution that is decided here, or left to others, by whoever decided so.
func (t teller) execute(x *execution, left bool) {
	if t.to == nil {
		return
	}
	e := observe.Execute{
		Attempt: observe.Attempt{
			Run: observe.Run{
				Tenant: x.info.Tenant, ID: x.info.Run, Generation: x.info.Generation,
				Traceparent: x.step.Trace.Parent, Tracestate: x.step.Trace.State,
			},
			Step: x.info.Step, Tool: x.info.Tool, Number: x.info.Attempt,
		},
		Worker: x.info.Worker, Delivery: x.info.Delivery, Delivered: x.taken, Ended: time.Now(),
		Err: x.result.Error, Asked: x.result.Asks != nil, Left: left,
	}
	if at := x.began.Load(); at != 0 {
		e.Began = e.Ended.Add(-time.Duration(x.e.clock.since(e.Ended) - at))
	}
	t.to.Tell(observer.Event, func(o observe.Observer) { o.OnExecute(e) })
}
