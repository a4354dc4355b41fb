// Package cli is the command stepjet: all of it but the wiring in cmd/stepjet.
//
// Data goes to standard output and talk to standard error. A command ends with one of the exit codes of exit.go; what
// went wrong is printed as code, message and hint. Nothing here knows NATS: servers are reached through client and kv,
// and package internal/dev assembles a whole Stepjet in this process where no server is given.
package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/cli/screen"
	"github.com/stepjet/stepjet/internal/config"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/worker"
)

// Env is what the command gets from its process.
type Env struct {
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	// Again gets a value for an interrupt that follows the one which ended Main's context, where somebody waits for that;
	// nil: nobody can.
	Again <-chan struct{}
	// Now is the clock of what is printed; nil: time.Now.
	Now func() time.Time
	// Models opens language models to be hosted here; nil: this program has none.
	Models OpenModels
	// Version is what "stepjet version" prints; empty: what the build information says.
	Version string
}

// app is one execution of the command.
type app struct {
	env            Env
	stdout, stderr io.Writer
	style          style          // of stdout
	errStyle       style          // of stderr
	terminal       bool           // stderr is one that can be redrawn
	screen         *screen.Screen // is stderr
	flags          flags
}

func (a *app) now() time.Time {
	if a.env.Now != nil {
		return a.env.Now()
	}
	return time.Now()
}

// flags are those that every command has.
type flags struct {
	connection
	output  string // text or json
	tenant  string
	secrets config.SecretsKey // what opens secrets, for what runs in this process
	sealTo  string
	timeout seconds
	verbose bool
	quiet   bool
}

// Models are language models that a command hosts as tools while it runs.
type Models interface {
	// Tools are the names of the tools.
	Tools() []string
	// Host adds them to a worker, on its connection.
	Host(nc *nats.Conn, w *worker.Worker, log *slog.Logger) error
	// Close is called once the worker is over.
	Close()
}

// OpenModels opens those of a models file, or without one the model that a word names, under each of the names. It reads
// the keys.
type OpenModels func(file, word string, tools []string, getenv func(string) (string, bool)) (Models, error)

// Interrupted is the cause to cancel Main's context with when a signal asks the command to end.
func Interrupted() error { return errInterrupt }

// failure marks an error of a command's work, to tell it from cobra's own.
type failure struct{ error }

func (f *failure) Unwrap() error { return f.error }

// work wraps what a command does.
func (a *app) work(do func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if a.flags.output != "text" && a.flags.output != "json" {
			return usage(fmt.Errorf("-o %q: text or json", a.flags.output))
		}
		if err := a.flags.resolve(cmd.Flags()); err != nil {
			return usage(err)
		}
		if err := do(cmd, args); err != nil {
			return &failure{why(cmd.Context(), err)}
		}
		return nil
	}
}

// show prints an error to stderr: code and message on one line, the hint below. command is the one whose help says more
// about a mistake on the command line.
func (a *app) show(err error, command string) {
	var e *exit
	if errors.As(err, &e) && e.err == nil {
		return
	}
	var f *fault.Error
	if a.json() {
		a.showJSON(err, codeOf(err))
		return
	}
	switch {
	case errors.Is(err, errInterrupt), errors.Is(err, errWait):
		message := err.Error()
		if errors.As(err, &f) {
			message = oneLine(f.Message)
		}
		_, _ = fmt.Fprintln(a.stderr, a.errStyle.yellow(message))
	case errors.As(err, &f):
		_, _ = fmt.Fprintf(a.stderr, "%s %s\n", a.errStyle.red(string(f.Code)+":"), indented(f.Message))
		if f.Hint != "" {
			_, _ = fmt.Fprintf(a.stderr, "  %s %s\n", a.errStyle.dim("hint:"), oneLine(f.Hint))
		}
	default:
		_, _ = fmt.Fprintf(a.stderr, "%s %s\n", a.errStyle.red("error:"), err)
		if e != nil && e.code == exitInvalid {
			_, _ = fmt.Fprintf(a.stderr, "  %s %s --help\n", a.errStyle.dim("hint:"), command)
		}
	}
}

// showJSON prints an error as one JSON document, where the output is for programs.
func (a *app) showJSON(err error, code int) {
	e := struct {
		Code    string          `json:"code"`
		Message string          `json:"message"`
		Hint    string          `json:"hint,omitempty"`
		Details json.RawMessage `json:"details,omitempty"`
		Exit    int             `json:"exit_code"`
	}{Code: "error", Message: err.Error(), Exit: code}
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		e.Code, e.Message, e.Hint, e.Details = string(f.Code), f.Message, f.Hint, f.Details
	case code == exitInvalid:
		e.Code = "usage"
	}
	switch {
	case errors.Is(err, errInterrupt):
		e.Code = "interrupted"
	case errors.Is(err, errWait):
		e.Code = "wait_ran_out"
	}
	b, err := json.Marshal(e)
	if err != nil { // details of a peer that are no JSON
		e.Details = nil
		b, _ = json.Marshal(e)
	}
	_, _ = fmt.Fprintf(a.stderr, "%s\n", b)
}

// indented keeps the lines of a text and indents all but the first.
func indented(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = oneLine(lines[i])
	}
	return strings.Join(lines, "\n  ")
}

// say prints a line of talk, unless --quiet.
func (a *app) say(format string, args ...any) {
	if !a.flags.quiet {
		_, _ = fmt.Fprintf(a.stderr, format+"\n", args...)
	}
}

// json reports whether the output is for programs.
func (a *app) json() bool { return a.flags.output == "json" }

// printJSON writes one value as one line, without escaping < > &.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// log returns where the parts of Stepjet that run inside the command write to.
func (a *app) log() *slog.Logger {
	if !a.flags.verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// warnings is log, but of a command that somebody sits before: what is wrong is said without --verbose too.
func (a *app) warnings() *slog.Logger {
	if a.flags.verbose || a.flags.quiet {
		return a.log()
	}
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// seconds is a flag that holds a duration and says so in the help.
type seconds = time.Duration

func (a *app) defaultTenant() string {
	if t := a.env.Getenv("STEPJET_TENANT"); t != "" {
		return t
	}
	return subjects.DefaultTenant
}
