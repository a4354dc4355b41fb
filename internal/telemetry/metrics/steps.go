package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/observe"
	"github.com/stepjet/stepjet/outcome"
)

// steps counts what happens to the calls of tools: steps, and items of a for_each.
type steps struct {
	tenants *few // nil: they are not told apart

	done         *prometheus.CounterVec
	waited       *prometheus.HistogramVec
	ran          *prometheus.HistogramVec
	retries      *prometheus.CounterVec
	redeliveries *prometheus.CounterVec
	letters      *prometheus.CounterVec
	repairs      prometheus.Counter
	full         prometheus.Counter

	mu   sync.RWMutex
	held map[string]*perTool // by tool, and by Other
}

// perTool are the series of one tool that most records touch: looking them up anew takes longer than counting.
type perTool struct {
	label       string // its name, or Other
	waited, ran prometheus.Observer
	succeeded   prometheus.Counter // nil where tenants are told apart
}

// The values of the label status.
const (
	succeeded = string(outcome.StepSucceeded)
	failed    = string(outcome.StepFailed)
	cancelled = string(outcome.StepCancelled)
)

func newSteps(tenants bool) *steps {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	plain := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
	}
	s := &steps{
		held: map[string]*perTool{},
		done: counter("steps_total", "Calls of tools that are decided for good, by how; code is empty for successes.",
			labels(tenants, "tool", "status", "code")...),
		waited: prometheus.NewHistogramVec(seconds("step_wait_seconds",
			"From when the inputs of a call were there to the beginning of its first execution.", 0.0005, 2.5, 18), []string{"tool"}),
		ran: prometheus.NewHistogramVec(seconds("step_run_seconds",
			"How long an execution of a tool took, whatever came of it.", 0.0005, 2.5, 18), []string{"tool"}),
		retries:      counter("retries_total", "Attempts that failed and are followed by another.", "tool", "code"),
		redeliveries: counter("redeliveries_total", "Attempts that a worker was handed though one had been before.", "tool"),
		letters:      counter("dead_letters_total", "Calls that were executed, failed for good and are kept as dead letters.", "tool", "code"),
		repairs:      plain("sweep_repairs_total", "Attempts sent again because they seemed to be lost."),
		full:         plain("store_full_total", "Attempts that could not be sent for want of room in the server's store."),
	}
	if tenants {
		s.tenants = newFew()
	}
	return s
}

func (s *steps) all() []prometheus.Collector {
	return []prometheus.Collector{s.done, s.waited, s.ran, s.retries, s.redeliveries, s.letters, s.repairs, s.full}
}

// of returns the series of a tool.
func (s *steps) of(tool string) *perTool {
	s.mu.RLock()
	t := s.held[tool]
	s.mu.RUnlock()
	if t != nil {
		return t
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.held) >= mostOfLabel && s.held[tool] == nil {
		tool = Other
	}
	if t = s.held[tool]; t == nil {
		t = s.newTool(tool)
		s.held[tool] = t
	}
	return t
}

func (s *steps) newTool(label string) *perTool {
	t := &perTool{label: label, waited: s.waited.WithLabelValues(label), ran: s.ran.WithLabelValues(label)}
	if s.tenants == nil {
		t.succeeded = s.done.WithLabelValues(label, succeeded, "")
	}
	return t
}

func (s *steps) record(e *observe.Record) {
	t := s.of(e.Tool)
	if !e.Started.IsZero() && !e.Ended.IsZero() {
		observeTraced(t.ran, e.Ended.Sub(e.Started), e.Traceparent)
		if e.Number == 1 && !e.Ready.IsZero() {
			observeTraced(t.waited, e.Started.Sub(e.Ready), e.Traceparent)
		}
	}
	if e.DeadLetter {
		s.letters.WithLabelValues(t.label, code(e.Err)).Inc()
	}
	switch {
	case e.Asked: // it goes on with the answer
	case e.Again:
		s.retries.WithLabelValues(t.label, code(e.Err)).Inc()
	case e.Err == nil && t.succeeded != nil:
		t.succeeded.Inc()
	default:
		values := []string{t.label, statusOf(e.Err), code(e.Err)}
		if s.tenants != nil {
			values = append([]string{s.tenants.of(e.Tenant)}, values...)
		}
		s.done.WithLabelValues(values...).Inc()
	}
}

func (s *steps) dispatch(e *observe.Dispatch) {
	switch {
	case e.Err == nil && e.Repair > 0:
		s.repairs.Inc()
	case fault.CodeOf(e.Err) == fault.StoreFull:
		s.full.Inc()
	}
}

func (s *steps) execute(e *observe.Execute) {
	if e.Delivery > 1 {
		s.redeliveries.WithLabelValues(s.of(e.Tool).label).Inc()
	}
}

// code returns that of an error. There is a closed list: what a worker calls an error beyond it is not in its code.
func code(err *fault.Error) string {
	if err == nil {
		return ""
	}
	return string(err.Code)
}

func statusOf(err *fault.Error) string {
	switch {
	case err == nil:
		return succeeded
	case err.Code == fault.Cancelled:
		return cancelled
	}
	return failed
}
