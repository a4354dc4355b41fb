// Package hosting is what the programs that host tools have in common: flags, settings, connection, and how they end.
package hosting

import (
	"context"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/config"
	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/internal/telemetry"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/worker"
)

// Program is what flags and environment say to a program that hosts tools.
type Program struct {
	// Name is the program's, in logs and for the server.
	Name string
	// File is the one that says what is hosted.
	File string

	file    config.Setting
	nats    config.NATS
	logging config.Logging
	worker  worker.Config
	secrets config.SecretsKey
	watch   telemetry.Settings
}

// Words are those in which a program's help differs.
type Words struct {
	Flag, Env string // of Program.File
	File      string // what it is
	Slots     string // what a slot is for
	Calls     string // what a stop waits for
}

// Flags declares the flags.
func (p *Program) Flags(fs *pflag.FlagSet, w Words) {
	p.file = config.Setting{Flag: w.Flag, Env: w.Env}
	p.nats.Flags(fs)
	p.nats.WaitFlag(fs)
	p.logging.Flags(fs)
	p.secrets.Flag(fs)
	fs.StringVar(&p.worker.Name, "name", "",
		"name in logs and records (env STEPJET_NAME; default: the host's and a random part)")
	fs.StringVar(&p.File, w.Flag, "", w.File)
	fs.IntVar(&p.worker.Slots, "slots", worker.DefaultSlots, "most "+w.Slots+" at a time (env STEPJET_SLOTS)")
	fs.DurationVar(&p.worker.DrainTimeout, "drain-timeout", worker.DefaultDrainTimeout,
		"how long a stop waits for "+w.Calls+" (env STEPJET_DRAIN_TIMEOUT)")
	p.watch.Flags(fs)
}

// FromEnvironment takes what no flag says from the environment, and returns what the program logs to.
func (p *Program) FromEnvironment(cmd *cobra.Command) (*slog.Logger, error) {
	fs := cmd.Flags()
	if err := p.nats.FromEnvironment(fs, nil); err != nil {
		return nil, err
	}
	if err := p.logging.FromEnvironment(fs, nil); err != nil {
		return nil, err
	}
	err := config.FromEnvironment(fs, nil, []config.Setting{
		{Flag: "name", Env: "STEPJET_NAME"}, p.file, {Flag: "slots", Env: "STEPJET_SLOTS"},
		{Flag: "drain-timeout", Env: "STEPJET_DRAIN_TIMEOUT"}, config.SecretsKeySetting,
	}...)
	if err != nil {
		return nil, err
	}
	if err := p.watch.FromEnvironment(fs, nil); err != nil {
		return nil, err
	}
	if p.worker.Slots < 1 { // the zero of worker.Config means its default
		return nil, fault.New(fault.InvalidConfig, "--slots is %d", p.worker.Slots).
			WithHint("a worker has at least one slot for each tool")
	}
	return daemon.Logger(cmd.ErrOrStderr(), p.logging.Format, p.logging.Level), nil
}

// Run hosts, until the command's context ends, what host registers with a worker. host returns what is to run: mostly
// that worker itself.
func (p *Program) Run(
	cmd *cobra.Command, log *slog.Logger, host func(*nats.Conn, *worker.Worker) (daemon.Service, error),
) error {
	keys, err := p.secrets.Load()
	if err != nil {
		return err
	}
	p.worker.SecretsKey, p.worker.Logger = keys, log
	if p.worker.Observer, err = p.watch.Start(cmd.Context(), p.Name, log); err != nil {
		return err
	}
	defer p.watch.Close()
	s := daemon.NewRemote(
		func(ctx context.Context) (*nats.Conn, error) {
			return kv.Connect(ctx, p.nats.Options("stepjet "+p.Name, log))
		},
		func(nc *nats.Conn) (daemon.Service, error) {
			w, err := worker.New(nc, p.worker)
			if err != nil {
				return nil, err
			}
			p.watch.Worker(w)
			return host(nc, w)
		})
	return daemon.Run(cmd.Context(), p.watch.Daemon(p.Name, s.Check, log), s)
}
