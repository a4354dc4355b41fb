// Package metrics makes Prometheus metrics of what a program of Stepjet is told as an observer, and serves them.
//
// Names begin with "stepjet_". Labels are tool, status and code, and tenant where it is asked for: never a run, a step
// or a worker, of which there is no end. Of tools, and of tenants, the first 1,000 have series of their own; the others
// share the one named "other".
//
// Counters and histograms count what this process saw; add them up over processes. Of a run's end only the process
// whose document stands is told, and of a record only the owner of the run, so sums count each once, but for what a
// process that died had not been scraped for. Exact numbers are read from the history.
package metrics

import (
	"net/http"
	"runtime"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/stepjet/stepjet/observe"
)

// Other is the value of the label tool, or tenant, for all that come after the first 1,000.
const Other = "other"

const (
	namespace   = "stepjet"
	mostOfLabel = 1000
)

// Options are those of New.
type Options struct {
	// Version is the program's, for build_info.
	Version string
	// Tenants has runs and steps counted by tenant, too.
	Tenants bool
}

// Metrics are those of one process. It is an observe.Observer, which an orchestrator, a worker and a client may share.
type Metrics struct {
	observe.None
	registry *prometheus.Registry
	runs     *runs
	steps    *steps
	sinks    *prometheus.CounterVec
}

// New makes the metrics of a process.
func New(o Options) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), runs: newRuns(o.Tenants), steps: newSteps(o.Tenants)}
	m.sinks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Name: "sink_objects_total", Help: "Objects of agents that went to a sink, or are given up; code is empty for those that went.",
	}, []string{"sink", "kept", "code"})
	m.Add(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: namespace, Name: "build_info", Help: "1, with what this program is built from.",
			ConstLabels: prometheus.Labels{"version": o.Version, "go_version": runtime.Version()},
		}, func() float64 { return 1 }),
	)
	m.Add(m.runs.all()...)
	m.Add(m.steps.all()...)
	m.Add(m.sinks)
	return m
}

// Add adds what else this process counts. Two of one name are a mistake of the program, which panics.
func (m *Metrics) Add(more ...prometheus.Collector) { m.registry.MustRegister(more...) }

// Handler serves the metrics, in the format that is asked for.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, // the form that carries exemplars
		// What can't be told now must not hide what can.
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4,
	})
}

// OnFinish counts a run that is over.
func (m *Metrics) OnFinish(e observe.Finish) { m.runs.finish(&e) }

// OnDispatch counts what was sent again, and what found no room.
func (m *Metrics) OnDispatch(e observe.Dispatch) { m.steps.dispatch(&e) }

// OnExecute counts what was handed out again.
func (m *Metrics) OnExecute(e observe.Execute) { m.steps.execute(&e) }

// OnRecord counts an attempt that is decided.
func (m *Metrics) OnRecord(e observe.Record) { m.steps.record(&e) }

// OnSink counts an object that went to a sink, or is given up.
func (m *Metrics) OnSink(e observe.Sink) {
	sink := "subject"
	if e.Bucket {
		sink = "bucket"
	}
	m.sinks.WithLabelValues(sink, strconv.FormatBool(e.Kept), code(e.Err)).Inc()
}
