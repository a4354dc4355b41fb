package metrics_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/telemetry/metrics"
	"github.com/stepjet/stepjet/observe"
	"github.com/stepjet/stepjet/outcome"
)

var t0 = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"

// scrape reads a page of metrics as a server that wants OpenMetrics, or the older text.
func scrape(t *testing.T, m *metrics.Metrics, accept string) string {
	t.Helper()
	srv := httptest.NewServer(m.Handler())
	defer srv.Close()
	r, err := http.NewRequest(http.MethodGet, srv.URL, nil)
	require.NoError(t, err)
	r.Header.Set("Accept", accept)
	resp, err := srv.Client().Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	page, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(page)
}

// counted requires lines of a page that hold a value: histograms by their sums and counts.
func counted(t *testing.T, m *metrics.Metrics, lines ...string) {
	t.Helper()
	page := "\n" + scrape(t, m, "text/plain")
	for _, line := range lines {
		require.Contains(t, page, "\n"+line+"\n")
	}
}

func attempt(tool string, number int) observe.Attempt {
	return observe.Attempt{Run: observe.Run{Tenant: "acme", ID: "r"}, Step: "s", Tool: tool, Number: number}
}

func events(m *metrics.Metrics) {
	ran := observe.Record{
		Attempt: attempt("weather", 1), Ready: t0, Started: t0.Add(20 * time.Millisecond), Ended: t0.Add(520 * time.Millisecond),
	}
	m.OnRecord(ran)
	m.OnSink(observe.Sink{Subject: "sink.acme.found", Kept: true})
	m.OnSink(observe.Sink{Bucket: true, Err: fault.New(fault.NotFound, "x")})
	again := ran
	again.Err, again.Again = fault.New(fault.ToolFailed, "x"), true
	m.OnRecord(again)
	last := ran
	last.Number, last.Err, last.DeadLetter = 2, fault.New(fault.Timeout, "x"), true
	m.OnRecord(last)
	m.OnRecord(observe.Record{Attempt: attempt("weather", 1), ByOwner: true, Err: fault.New(fault.Cancelled, "x")})
	m.OnDispatch(observe.Dispatch{Attempt: attempt("weather", 1)})
	m.OnDispatch(observe.Dispatch{Attempt: attempt("weather", 1), Repair: 1})
	m.OnDispatch(observe.Dispatch{Attempt: attempt("weather", 1), Repair: 1, Err: fault.New(fault.StoreFull, "x")})
	m.OnExecute(observe.Execute{Attempt: attempt("weather", 1), Delivery: 1})
	m.OnExecute(observe.Execute{Attempt: attempt("weather", 1), Delivery: 2, Left: true})
	m.OnFinish(observe.Finish{
		Run: observe.Run{Tenant: "acme"}, Status: outcome.Failed,
		Document: &outcome.Run{Submitted: t0, Finished: t0.Add(1500 * time.Millisecond)},
	})
	m.OnFinish(observe.Finish{Run: observe.Run{Tenant: "acme"}, Status: outcome.Rejected, Document: &outcome.Run{Submitted: t0}})
}

func TestWhatHappensIsCounted(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Options{Version: "v1.2.3"})
	events(m)
	counted(
		t, m,
		`stepjet_steps_total{code="",status="succeeded",tool="weather"} 1`,
		`stepjet_steps_total{code="timeout",status="failed",tool="weather"} 1`,
		`stepjet_steps_total{code="cancelled",status="cancelled",tool="weather"} 1`,
		`stepjet_retries_total{code="tool_failed",tool="weather"} 1`,
		`stepjet_redeliveries_total{tool="weather"} 1`,
		`stepjet_dead_letters_total{code="timeout",tool="weather"} 1`,
		`stepjet_sweep_repairs_total 1`,
		`stepjet_store_full_total 1`,
		`stepjet_step_wait_seconds_count{tool="weather"} 2`,
		`stepjet_step_wait_seconds_sum{tool="weather"} 0.04`,
		`stepjet_step_run_seconds_count{tool="weather"} 3`,
		`stepjet_step_run_seconds_sum{tool="weather"} 1.5`,
		`stepjet_runs_total{status="failed"} 1`,
		`stepjet_runs_total{status="rejected"} 1`,
		`stepjet_runs_total{status="succeeded"} 0`,
		`stepjet_run_duration_seconds_sum{status="failed"} 1.5`,
	)
	page := scrape(t, m, "text/plain")
	require.NotContains(t, page, `stepjet_run_duration_seconds_count{status="rejected"}`, "it never ran")
	require.Regexp(t, `stepjet_build_info\{go_version="go[^"]+",version="v1.2.3"\} 1`, page)
}

func TestTenantsAreToldApartWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Options{Tenants: true})
	events(m)
	counted(
		t, m,
		`stepjet_steps_total{code="",status="succeeded",tenant="acme",tool="weather"} 1`,
		`stepjet_steps_total{code="timeout",status="failed",tenant="acme",tool="weather"} 1`,
		`stepjet_runs_total{status="failed",tenant="acme"} 1`,
	)
	other := metrics.New(metrics.Options{})
	events(other)
	require.NotContains(t, scrape(t, other, "text/plain"), "acme")
}

// TestLabelsHaveAnEnd: whoever names tools or tenants without end can't fill the memory of those who count.
func TestLabelsHaveAnEnd(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Options{Tenants: true})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 1500 {
				e := observe.Record{Attempt: attempt(fmt.Sprint("tool", i), 1)}
				e.Tenant = fmt.Sprint("tenant", i)
				m.OnRecord(e)
			}
		})
	}
	all.Wait()
	page := scrape(t, m, "text/plain")
	require.Equal(t, 1001, strings.Count(page, "stepjet_step_run_seconds_count{"))
	require.Contains(t, page, `stepjet_steps_total{code="",status="succeeded",tenant="other",tool="other"} 2000`)
}

func TestASampledTraceIsTheExample(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Options{})
	for _, flags := range []string{"00", "02", "x", "zz", "0b"} { // 0b is the only one of them that is sampled
		e := observe.Record{Attempt: attempt("weather", 1), Started: t0, Ended: t0.Add(time.Second)}
		e.Traceparent = trace + flags
		m.OnRecord(e)
		e.Traceparent = "00-" + flags
		m.OnRecord(e)
	}
	page := scrape(t, m, "application/openmetrics-text; version=1.0.0")
	require.Equal(t, 1, strings.Count(page, `# {trace_id="0af7651916cd43dd8448eb211c80319c"} 1.0`), page)
}

// A clock that is behind another makes no time go backwards.
func TestNoTimeIsBelowZero(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Options{})
	m.OnRecord(observe.Record{Attempt: attempt("weather", 1), Ready: t0.Add(time.Second), Started: t0, Ended: t0.Add(-time.Second)})
	counted(t, m, `stepjet_step_wait_seconds_sum{tool="weather"} 0`, `stepjet_step_run_seconds_sum{tool="weather"} 0`)
}

func TestMetricsAreWellFormed(t *testing.T) {
	t.Parallel()
	for _, tenants := range []bool{false, true} {
		m := metrics.New(metrics.Options{Tenants: tenants})
		events(m)
		problems, err := promlint.New(strings.NewReader(scrape(t, m, "text/plain"))).Lint()
		require.NoError(t, err)
		require.Empty(t, problems)
	}
}

func BenchmarkRecord(b *testing.B) {
	m := metrics.New(metrics.Options{})
	e := observe.Record{Attempt: attempt("weather", 1), Ready: t0, Started: t0.Add(time.Millisecond), Ended: t0.Add(2 * time.Millisecond)}
	b.ReportAllocs()
	for b.Loop() {
		m.OnRecord(e)
	}
}
