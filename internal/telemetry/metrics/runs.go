package metrics

import (
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stepjet/stepjet/observe"
	"github.com/stepjet/stepjet/outcome"
)

// runs counts runs that are over.
type runs struct {
	tenants *few // nil: they are not told apart
	ended   *prometheus.CounterVec
	took    *prometheus.HistogramVec
}

func newRuns(tenants bool) *runs {
	r := &runs{
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: "runs", Name: "total", Help: "Runs that are over, by how they ended.",
		}, labels(tenants, "status")),
		took: prometheus.NewHistogramVec(seconds(
			"run_duration_seconds", "From the submission of a run to its end.", 0.001, 2.5, 18), []string{"status"}),
	}
	if tenants {
		r.tenants = newFew()
		return r
	}
	for _, s := range []outcome.RunStatus{
		outcome.Succeeded, outcome.Partial, outcome.Failed, outcome.Rejected, outcome.Expired, outcome.Cancelled,
	} {
		r.ended.WithLabelValues(string(s)) // a rate over what is absent is no alert
	}
	return r
}

func (r *runs) all() []prometheus.Collector { return []prometheus.Collector{r.ended, r.took} }

func (r *runs) finish(e *observe.Finish) {
	status := string(e.Status)
	if r.tenants != nil {
		r.ended.WithLabelValues(r.tenants.of(e.Tenant), status).Inc()
	} else {
		r.ended.WithLabelValues(status).Inc()
	}
	if e.Document != nil && !e.Document.Finished.IsZero() {
		observeTraced(r.took.WithLabelValues(status), e.Document.Finished.Sub(e.Document.Submitted), e.Traceparent)
	}
}

// seconds are the options of a histogram of durations: native buckets for who can read them, n others that begin with
// first and grow by factor for all.
func seconds(name, help string, first, factor float64, n int) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Namespace: namespace, Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(first, factor, n),
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
	}
}

// observeTraced notes a duration, with the trace as its example where the trace is sampled. Between clocks that differ
// a duration can come out below zero: it was too short to tell.
func observeTraced(h prometheus.Observer, d time.Duration, traceparent string) {
	took := max(d, 0).Seconds()
	if id, sampled := sampledTrace(traceparent); sampled {
		h.(prometheus.ExemplarObserver).ObserveWithExemplar(took, prometheus.Labels{"trace_id": id})
		return
	}
	h.Observe(took)
}

// sampledTrace returns the trace of a W3C traceparent "00-<trace>-<span>-<flags>", and whether its flags say that it is
// kept. What isn't one is of no trace.
func sampledTrace(traceparent string) (id string, sampled bool) {
	parts := strings.Split(traceparent, "-")
	if len(parts) < 4 || len(parts[1]) != 32 {
		return "", false
	}
	flags, err := strconv.ParseUint(parts[3], 16, 8)
	return parts[1], err == nil && flags&1 == 1
}
