package telemetry

import "github.com/stepjet/stepjet/observe"

// several tells one after the other.
type several []observe.Observer

func (all several) OnSubmit(e observe.Submit) {
	for _, o := range all {
		o.OnSubmit(e)
	}
}

func (all several) OnOpen(e observe.Open) {
	for _, o := range all {
		o.OnOpen(e)
	}
}

func (all several) OnDispatch(e observe.Dispatch) {
	for _, o := range all {
		o.OnDispatch(e)
	}
}

func (all several) OnExecute(e observe.Execute) {
	for _, o := range all {
		o.OnExecute(e)
	}
}

func (all several) OnRecord(e observe.Record) {
	for _, o := range all {
		o.OnRecord(e)
	}
}

func (all several) OnFinish(e observe.Finish) {
	for _, o := range all {
		o.OnFinish(e)
	}
}

func (all several) OnSink(e observe.Sink) {
	for _, o := range all {
		o.OnSink(e)
	}
}
