// Command orchestrator reads plans from JetStream and has them run.
package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/config"
	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/orchestrator"
)

func main() { os.Exit(daemon.Execute(command())) }

// settings are those of an orchestrator that have an environment variable beside their flag.
var settings = []config.Setting{
	{Flag: "name", Env: "STEPJET_NAME"}, {Flag: "health", Env: "STEPJET_HEALTH"}, {Flag: "replicas", Env: "STEPJET_REPLICAS"},
	{Flag: "shards", Env: "STEPJET_SHARDS"}, {Flag: "retention", Env: "STEPJET_RETENTION"}, {Flag: "grace", Env: "STEPJET_GRACE"},
	{Flag: "weight", Env: "STEPJET_WEIGHT"}, {Flag: "ack-wait", Env: "STEPJET_ACK_WAIT"}, {Flag: "ledger-max-bytes", Env: "STEPJET_LEDGER_MAX_BYTES"},
}

func command() *cobra.Command {
	var nats config.NATS
	var logging config.Logging
	var store config.Store
	var cfg orchestrator.Config
	var health string
	cmd := &cobra.Command{
		Use:   "orchestrator",
		Short: "Runs the tool plans that lie in JetStream",
		Long: `Reads plans from JetStream, dispatches each step as soon as its inputs are there, and stores outcomes.

Start as many as you like against one NATS server or cluster: they share the runs among themselves, and when one dies the
others go on with its runs. The first start creates streams and buckets; what exists is never changed.`,
		Example: `  orchestrator --url nats://127.0.0.1:4222
  orchestrator --context prod --durability replicated --health :8081`,
		Args:    cobra.NoArgs,
		Version: daemon.Version(),
	}
	fs := cmd.Flags()
	nats.Flags(fs)
	logging.Flags(fs)
	fs.StringVar(&cfg.Name, "name", "", "name in logs and records (env STEPJET_NAME; default: the host's)")
	fs.StringVar(&health, "health", "", "address of /healthz and /readyz (env STEPJET_HEALTH; default: none)")
	store.Flags(fs)
	fs.DurationVar(&cfg.Grace, "grace", time.Minute, "how long a finished run's records stay in the ledger (env STEPJET_GRACE)")
	fs.StringToIntVar(&cfg.Weights, "weight", nil, "shares of tenants where a tool has more to do than fits, as in acme=3,beta=2 (env STEPJET_WEIGHT; default 1 each)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := nats.FromEnvironment(fs, nil); err != nil {
			return err
		}
		if err := logging.FromEnvironment(fs, nil); err != nil {
			return err
		}
		if err := config.FromEnvironment(fs, nil, settings...); err != nil {
			return err
		}
		if err := store.FromEnvironment(fs, nil); err != nil {
			return err
		}
		log := daemon.Logger(cmd.ErrOrStderr(), logging.Format, logging.Level)
		nc, err := kv.Connect(cmd.Context(), nats.Options("stepjet orchestrator", log))
		if err != nil {
			return err
		}
		defer nc.Close()
		cfg.Logger, cfg.Version, cfg.Store = log, daemon.Version(), store.Config()
		if store.Sync() == kv.SyncAlways {
			log.Info("durability always rests on sync_interval: always in the NATS server; stepjet doctor --monitor checks it")
		}
		o, err := orchestrator.New(nc, cfg)
		if err != nil {
			return err
		}
		return daemon.Run(cmd.Context(), daemon.Options{Name: "orchestrator", Health: health, Check: daemon.Connected(nc), Logger: log}, o)
	}
	return cmd
}
