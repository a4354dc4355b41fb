package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/worker"
)

// lookWithin bounds a look at an orchestrator; it is shorter than the time after which a scrape is given up.
const lookWithin = 5 * time.Second

func gauge(of, name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, of, name), help, labels, nil)
}

// owner tells what an orchestrator holds, whenever it is scraped.
type owner struct {
	now func(context.Context) (*orchestrator.Now, error)

	partitions, runs, behind      *prometheus.Desc
	demand, limit, leased, oldest *prometheus.Desc
}

// Orchestrator adds what an orchestrator holds at the moment of a scrape. Where it can't tell, because it has not begun
// or the server does not answer, its series are missing.
func (m *Metrics) Orchestrator(now func(context.Context) (*orchestrator.Now, error)) {
	m.Add(&owner{
		now:        now,
		partitions: gauge("partitions", "owned", "Partitions, of 64, that this orchestrator owns."),
		runs:       gauge("runs", "active", "Runs that go on, of those that this orchestrator owns."),
		behind: gauge("cursor", "lag_seconds",
			"How long what has come from the ledger waits until its owner takes it: the longest of the process's loops."),
		demand: gauge("tool", "demand", "Calls of a tool that are ready and not done with: add up over orchestrators.", "tool"),
		limit:  gauge("tool", "limit", "How many calls of a tool may be with workers at once.", "tool"),
		leased: gauge("tool", "leased", "Calls of a tool that workers have: add up over orchestrators.", "tool"),
		oldest: gauge("tool", "oldest_ready_seconds",
			"For how long the oldest call of a tool has been ready that no worker has: the largest of all orchestrators counts.", "tool"),
	})
}

// Describe names the series.
func (o *owner) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{o.partitions, o.runs, o.behind, o.demand, o.limit, o.leased, o.oldest} {
		to <- d
	}
}

// Collect looks.
func (o *owner) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), lookWithin)
	defer cancel()
	n, err := o.now(ctx)
	if err != nil {
		return
	}
	set := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	set(o.partitions, float64(n.Partitions))
	set(o.runs, float64(n.Runs))
	set(o.behind, n.Behind.Seconds())
	// All beyond the first have no series: the sum of many tools' demand is nobody's to scale by. Those that a scaler
	// asks for must not go because others came, so the order is that of the names.
	for _, d := range n.Tools[:min(len(n.Tools), mostOfLabel)] {
		set(o.demand, float64(d.Steps), d.Tool)
		set(o.limit, float64(d.Limit), d.Tool)
		set(o.leased, float64(d.Leased), d.Tool)
		set(o.oldest, d.Oldest().Seconds(), d.Tool)
	}
}

// host tells how much the tools of a worker have to do.
type host struct {
	load        func() []worker.Load
	slots, busy *prometheus.Desc
}

// Worker adds how much the tools of a worker have to do at the moment of a scrape.
func (m *Metrics) Worker(load func() []worker.Load) {
	m.Add(&host{
		load:  load,
		slots: gauge("worker", "slots", "Executions of a tool that this worker takes at once.", "tool"),
		busy:  gauge("worker", "busy", "Of them, those that are taken.", "tool"),
	})
}

// Describe names the series.
func (h *host) Describe(to chan<- *prometheus.Desc) { to <- h.slots; to <- h.busy }

// Collect looks.
func (h *host) Collect(to chan<- prometheus.Metric) {
	for _, l := range h.load() {
		to <- prometheus.MustNewConstMetric(h.slots, prometheus.GaugeValue, float64(l.Slots), l.Tool)
		to <- prometheus.MustNewConstMetric(h.busy, prometheus.GaugeValue, float64(l.Busy), l.Tool)
	}
}
