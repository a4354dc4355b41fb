// Package daemon holds what Stepjet's daemons share around their one job: signals, the log, the health endpoint, and
// exit codes.
//
// Safety: a signal never ends a daemon by force; it ends the context that its service runs with, and the service
// drains. Liveness: a second signal ends the process at once, for a person who won't wait.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/version"
)

// The exit codes of a daemon.
const (
	ExitOK           = 0
	ExitFailed       = 1
	ExitUsage        = 2 // wrong flags, environment or files
	ExitNoConnection = 4 // no NATS server; the message names the URL tried
	ExitForced       = 130
)

// Service is the one job of a daemon.
type Service interface {
	// Run works until ctx ends, then drains and returns nil.
	Run(ctx context.Context) error
	// Ready is closed once the service does its work.
	Ready() <-chan struct{}
}

// Options are those of Run.
type Options struct {
	// Name is the program's.
	Name string
	// Health is the address "host:port" of the health endpoint; empty: none.
	Health string
	// Metrics is what the health endpoint answers at /metrics; nil: nothing.
	Metrics http.Handler
	// Check says why the service can't work at the moment, though it is ready; nil: never.
	Check func() error
	// Logger takes what the daemon says.
	Logger *slog.Logger
}

// Run runs the service until ctx ends or the service does, with the health endpoint beside it. Errors: invalid_config
// where the endpoint's address can't be used, and those of the service.
func Run(ctx context.Context, o Options, s Service) error {
	h, err := startHealth(ctx, o, s)
	if err != nil {
		return err
	}
	defer h.stop()
	log := o.Logger
	log.Info("starting", "program", o.Name, "version", version.String())
	ended := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		announce(ctx, log, s, ended)
	}()
	err = s.Run(ctx)
	close(ended)
	<-watched
	if err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// announce logs when the service is ready and when it begins to stop.
func announce(ctx context.Context, log *slog.Logger, s Service, ended <-chan struct{}) {
	select {
	case <-s.Ready():
		log.Info("ready")
	case <-ctx.Done():
	case <-ended:
		return
	}
	select {
	case <-ctx.Done():
		log.Info("stopping", "reason", context.Cause(ctx))
	case <-ended:
	}
}

// Signal is the cause of a context that a signal ended.
type Signal struct{ os.Signal }

// Error names the signal.
func (s Signal) Error() string { return "signal: " + s.String() }

// Signals returns a context that ends, with a Signal as its cause, at the first SIGINT or SIGTERM. The second calls
// force. stop gives the signals back.
func Signals(parent context.Context, force func()) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	received := make(chan os.Signal, 2)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM)
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case sig := <-received:
			cancel(Signal{sig})
		case <-over:
			return
		}
		select {
		case <-received:
			force()
		case <-over:
		}
	}()
	return ctx, func() {
		signal.Stop(received)
		close(over)
		<-done
		cancel(nil)
	}
}

// Execute runs a daemon's command with a context that signals end, prints its error, and gives the exit code.
func Execute(cmd *cobra.Command) int {
	TuneGC()
	ctx, stop := Signals(context.Background(), func() { os.Exit(ExitForced) })
	defer stop()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetFlagErrorFunc(usage)
	if args := cmd.Args; args != nil {
		cmd.Args = func(c *cobra.Command, given []string) error { return usage(c, args(c, given)) }
	}
	err := cmd.ExecuteContext(ctx)
	var sig Signal
	if err == nil || errors.As(context.Cause(ctx), &sig) && (errors.As(err, &sig) || errors.Is(err, context.Canceled)) {
		return ExitOK
	}
	Print(cmd.ErrOrStderr(), cmd.DisplayName(), err)
	return ExitCode(err)
}

func usage(c *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.InvalidConfig, err, "wrong usage").WithHint("see %s --help", c.CommandPath())
}

// Print writes an error for a person: its code and what happened, and below it what to do.
func Print(w io.Writer, program string, err error) {
	var e *fault.Error
	if !errors.As(err, &e) || error(e) != err { //nolint:errorlint // what wraps a fault says more than that
		fmt.Fprintf(w, "%s: %v\n", program, err)
		return
	}
	fmt.Fprintf(w, "%s: %s: %s\n", program, e.Code, e.Message)
	if e.Hint != "" {
		fmt.Fprintf(w, "  hint: %s\n", e.Hint)
	}
}

// ExitCode returns the exit code of an error.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	switch fault.CodeOf(err) {
	case fault.InvalidConfig, fault.InvalidTool:
		return ExitUsage
	case fault.NoConnection:
		return ExitNoConnection
	}
	return ExitFailed
}

// Logger makes the daemon's log. format is "text" or "json", level "debug", "info", "warn" or "error"; anything else is
// read as text and info (package config checks them).
func Logger(w io.Writer, format, level string) *slog.Logger {
	var l slog.Level
	if l.UnmarshalText([]byte(level)) != nil {
		l = slog.LevelInfo
	}
	o := &slog.HandlerOptions{Level: l}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
