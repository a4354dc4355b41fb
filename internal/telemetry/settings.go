// Package telemetry is how the programs that serve are watched from outside: health, metrics, traces.
package telemetry

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/stepjet/stepjet/internal/config"
	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/internal/telemetry/metrics"
	"github.com/stepjet/stepjet/internal/telemetry/traces"
	"github.com/stepjet/stepjet/internal/version"
	"github.com/stepjet/stepjet/observe"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/worker"
)

// Settings are what flags and environment say of it. What is not asked for is not counted, and costs nothing.
type Settings struct {
	health  string
	tenants bool
	metrics *metrics.Metrics // nil: there is no endpoint to read them from
	traces  *traces.Traces   // nil: nobody takes them
}

// Flags declares the flags.
func (s *Settings) Flags(fs *pflag.FlagSet) {
	fs.StringVar(&s.health, "health", "",
		"address of /healthz, /readyz and /metrics (env STEPJET_HEALTH; default: none)")
	fs.BoolVar(&s.tenants, "metrics-by-tenant", false,
		"count runs and steps of each tenant by itself (env STEPJET_METRICS_BY_TENANT)")
}

// FromEnvironment takes what no flag says from the environment; env is nil for the process's own.
func (s *Settings) FromEnvironment(fs *pflag.FlagSet, env config.Lookup) error {
	return config.FromEnvironment(fs, env,
		config.Setting{Flag: "health", Env: "STEPJET_HEALTH"},
		config.Setting{Flag: "metrics-by-tenant", Env: "STEPJET_METRICS_BY_TENANT"})
}

// collectors are the variables, of OpenTelemetry's own, that say where spans go.
var collectors = []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"}

// Start begins to watch a program of this name, and returns what it is to tell; nil where nobody listens. Spans go to
// where OpenTelemetry's own variables say (OTEL_EXPORTER_OTLP_ENDPOINT and its like), over HTTP. Close it.
func (s *Settings) Start(ctx context.Context, name string, log *slog.Logger) (observe.Observer, error) {
	var all several
	if s.health != "" {
		s.metrics = metrics.New(metrics.Options{Version: version.Stepjet(), Tenants: s.tenants})
		all = append(all, s.metrics)
	}
	if os.Getenv(collectors[0]) != "" || os.Getenv(collectors[1]) != "" {
		to, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, err
		}
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("spans were not sent", "error", err) }))
		s.traces = traces.New(to, sdk.WithResource(about(name)))
		all = append(all, s.traces)
	}
	switch len(all) {
	case 0:
		return nil, nil
	case 1:
		return all[0], nil
	}
	return all, nil
}

// about says whose spans they are. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say otherwise.
func about(name string) *resource.Resource {
	own := resource.NewSchemaless(
		attribute.String("service.name", "stepjet-"+name), attribute.String("service.version", version.Stepjet()))
	said, err := resource.Merge(own, resource.Environment())
	if err != nil { // of schemas that differ: what is merged is there all the same
		return own
	}
	return said
}

// Orchestrator has what an orchestrator holds on the page of metrics.
func (s *Settings) Orchestrator(o *orchestrator.Orchestrator) {
	if s.metrics != nil {
		s.metrics.Orchestrator(o.Now)
	}
}

// Worker has how much the tools of a worker have to do on the page of metrics.
func (s *Settings) Worker(w *worker.Worker) {
	if s.metrics != nil {
		s.metrics.Worker(w.Load)
	}
}

// Daemon returns how a program of this name is run. check is daemon.Options.Check.
func (s *Settings) Daemon(name string, check func() error, log *slog.Logger) daemon.Options {
	o := daemon.Options{Name: name, Health: s.health, Check: check, Logger: log}
	if s.metrics != nil {
		o.Metrics = s.metrics.Handler()
	}
	return o
}

// farewell is how long the end of a program waits for spans that were not sent yet.
const farewell = 5 * time.Second

// Close sends what waits to be sent.
func (s *Settings) Close() {
	if s.traces == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	_ = s.traces.Close(ctx) // the error handler was told
}
