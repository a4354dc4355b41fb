// Package telemetry is how the programs that serve are watched from outside: their health endpoint and its metrics.
package telemetry

import (
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/stepjet/stepjet/internal/config"
	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/internal/telemetry/metrics"
	"github.com/stepjet/stepjet/internal/version"
	"github.com/stepjet/stepjet/observe"
)

// Settings are what flags and environment say of it. Without an address nothing is watched, and nothing is counted.
type Settings struct {
	health  string
	tenants bool
	metrics *metrics.Metrics
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
	err := config.FromEnvironment(fs, env,
		config.Setting{Flag: "health", Env: "STEPJET_HEALTH"},
		config.Setting{Flag: "metrics-by-tenant", Env: "STEPJET_METRICS_BY_TENANT"})
	if err != nil {
		return err
	}
	if s.health != "" {
		s.metrics = metrics.New(metrics.Options{Version: version.String(), Tenants: s.tenants})
	}
	return nil
}

// Observer returns what counts, and nil where nobody asks.
func (s *Settings) Observer() observe.Observer {
	if s.metrics == nil {
		return nil // a nil *Metrics in the interface would be one that is told
	}
	return s.metrics
}

// Daemon returns how a program of this name is run. check is daemon.Options.Check.
func (s *Settings) Daemon(name string, check func() error, log *slog.Logger) daemon.Options {
	o := daemon.Options{Name: name, Health: s.health, Check: check, Logger: log}
	if s.metrics != nil {
		o.Metrics = s.metrics.Handler()
	}
	return o
}
