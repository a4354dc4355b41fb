package serve

import (
	"context"

	natsgo "github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/config"
	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/internal/doctor"
	"github.com/stepjet/stepjet/internal/telemetry"
	"github.com/stepjet/stepjet/internal/version"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/orchestrator"
)

// orchestratorSettings are those that have an environment variable beside their flag.
var orchestratorSettings = []config.Setting{
	{Flag: "name", Env: "STEPJET_NAME"},
	{Flag: "replicas", Env: "STEPJET_REPLICAS"},
	{Flag: "shards", Env: "STEPJET_SHARDS"},
	{Flag: "retention", Env: "STEPJET_RETENTION"},
	{Flag: "grace", Env: "STEPJET_GRACE"},
	{Flag: "sweep-every", Env: "STEPJET_SWEEP_EVERY"},
	{Flag: "weight", Env: "STEPJET_WEIGHT"},
	{Flag: "ack-wait", Env: "STEPJET_ACK_WAIT"},
	{Flag: "trace-share", Env: "STEPJET_TRACE_SHARE"},
	{Flag: "ledger-max-bytes", Env: "STEPJET_LEDGER_MAX_BYTES"},
	{Flag: "nats-cluster", Env: "STEPJET_NATS_CLUSTER"},
	config.SecretsKeySetting,
}

// Orchestrator returns the command that runs an orchestrator until a signal ends it. program is what a user types to
// start it: "orchestrator", "stepjet orchestrator".
func Orchestrator(program string) *cobra.Command {
	var nats config.NATS
	var logging config.Logging
	var store config.Store
	var cfg orchestrator.Config
	var secrets config.SecretsKey
	var watch telemetry.Settings
	cmd := &cobra.Command{
		Use:         "orchestrator",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: program},
		Short:       "Run the tool plans that lie in JetStream",
		Long: `Reads plans from JetStream, dispatches each step as soon as its inputs are there, and stores outcomes.

Start as many as you like against one NATS server or cluster: they share the runs among themselves, and when one dies the
others go on with its runs. The first start creates streams and buckets; what exists is never changed.`,
		Example: "  " + program + ` --url nats://127.0.0.1:4222
  ` + program + ` --context prod --durability replicated --health :8081`,
		Args:    cobra.NoArgs,
		Version: version.String(),
	}
	fs := cmd.Flags()
	nats.Flags(fs)
	nats.WaitFlag(fs)
	logging.Flags(fs)
	fs.StringVar(&cfg.Name, "name", "", "name in logs and records (env STEPJET_NAME; default: the host's)")
	watch.Flags(fs)
	store.Flags(fs)
	secrets.Flag(fs)
	fs.DurationVar(&cfg.Grace, "grace", orchestrator.DefaultGrace,
		"how long a finished run's records stay in the ledger (env STEPJET_GRACE)")
	fs.DurationVar(&cfg.SweepEvery, "sweep-every", orchestrator.DefaultSweepEvery,
		"how often what should be on its way is compared with what is, and what is gone is mended (env STEPJET_SWEEP_EVERY; 100ms or more)")
	fs.Float64Var(&cfg.TraceShare, "trace-share", 0,
		"share of the runs, from 0 to 1, that are traced though their plans say nothing of it (env STEPJET_TRACE_SHARE)")
	fs.StringToIntVar(&cfg.Weights, "weight", nil,
		"shares of tenants where a tool has more to do than fits, as in acme=3,beta=2 (env STEPJET_WEIGHT; default 1 each)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := nats.FromEnvironment(fs, nil); err != nil {
			return err
		}
		if err := logging.FromEnvironment(fs, nil); err != nil {
			return err
		}
		if err := config.FromEnvironment(fs, nil, orchestratorSettings...); err != nil {
			return err
		}
		if err := watch.FromEnvironment(fs, nil); err != nil {
			return err
		}
		if err := store.FromEnvironment(fs, nil); err != nil {
			return err
		}
		log := daemon.Logger(cmd.ErrOrStderr(), logging.Format, logging.Level)
		keys, err := secrets.Load()
		if err != nil {
			return err
		}
		cfg.SecretsKey = keys
		cfg.Logger, cfg.Store = log, store.Config()
		if cfg.Observer, err = watch.Start(cmd.Context(), "orchestrator", log); err != nil {
			return err
		}
		defer watch.Close()
		if _, err := orchestrator.New(nil, cfg); err != nil { // before a server is waited for
			return err
		}
		if store.Sync() == doctor.SyncAlways {
			log.Info("durability always rests on sync_interval: always in the NATS server; stepjet doctor --monitor checks it")
		}
		s := daemon.NewRemote(
			func(ctx context.Context) (*natsgo.Conn, error) {
				return kv.Connect(ctx, nats.Options("stepjet orchestrator", log))
			},
			func(nc *natsgo.Conn) (daemon.Service, error) {
				o, err := orchestrator.New(nc, cfg)
				if err != nil {
					return nil, err
				}
				watch.Orchestrator(o)
				return o, nil
			},
		)
		return daemon.Run(cmd.Context(), watch.Daemon("orchestrator", s.Check, log), s)
	}
	return cmd
}
