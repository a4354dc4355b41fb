package cli

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/cli/screen"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// The exit codes of the command.
const (
	exitOK        = 0
	exitFailed    = 1   // the run failed, was cancelled or expired; or the command itself failed
	exitInvalid   = 2   // wrong usage, or an invalid plan
	exitPartial   = 3   // some outputs are there, some are not
	exitNoServer  = 4   // no connection
	exitWait      = 124 // --wait ran out; the run goes on, unless its plan was still being written
	ExitInterrupt = 130 // Ctrl-C; for main, which ends at once when it is pressed twice
)

// AtOnce puts the terminal back in order, and returns the exit code, for a main that doesn't wait for the command to end.
func AtOnce() int {
	screen.Restore()
	return ExitInterrupt
}

// errInterrupt is the cause of a context that a signal ended.
var errInterrupt = errors.New("interrupted")

// errWait is the cause of a context that --wait ended.
var errWait = errors.New("the wait ran out")

// exit is a command's own exit code. Its error, if any, has not been shown yet.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// quietly ends the command with a code; what there was to say has been said.
func quietly(code int) error {
	if code == exitOK {
		return nil
	}
	return &exit{code: code}
}

// usage is a mistake on the command line.
func usage(err error) error { return &exit{exitInvalid, err} }

// codeOf returns the exit code of an error.
func codeOf(err error) int {
	var e *exit
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &e):
		return e.code
	case errors.Is(err, errInterrupt):
		return ExitInterrupt
	case errors.Is(err, errWait):
		return exitWait
	}
	switch code := fault.CodeOf(err); code {
	case fault.NoConnection:
		return exitNoServer
	case fault.InvalidConfig, fault.InvalidTool, fault.MessageTooLarge:
		return exitInvalid
	default:
		if slices.Contains(ofPlans, code) {
			return exitInvalid
		}
	}
	return exitFailed
}

// ofPlans are the codes of what is wrong with a plan. One is the error of a command where the plan is refused before it is
// a run that was rejected: in an amendment, and in a stream, which amends.
var ofPlans = []fault.Code{
	fault.MalformedJSON, fault.InvalidUTF8, fault.DuplicateKey, fault.UnknownField, fault.InvalidValue, fault.EmptyPlan, fault.InvalidID,
	fault.DuplicateStep, fault.UnknownTool, fault.RecursivePlan, fault.InvalidArguments, fault.InvalidRef, fault.UnknownRef, fault.Cycle,
	fault.UnknownOutputStep, fault.DuplicateOutputStep, fault.ImpossibleRef, fault.MissingDependency, fault.InvalidCondition,
	fault.StateMismatch, fault.LimitExceeded, fault.Conflict, fault.NotPermitted,
}

// codeOfRun returns the exit code of a run's status.
func codeOfRun(s outcome.RunStatus) int {
	switch s {
	case outcome.Succeeded, outcome.Running:
		return exitOK
	case outcome.Partial:
		return exitPartial
	case outcome.Rejected:
		return exitInvalid
	default:
		return exitFailed
	}
}

// settled is an error that says what became of a run: the end of a context while the command tidies up takes nothing of that.
type settled struct{ error }

func (s *settled) Unwrap() error { return s.error }

// why returns the cause of a context's end where an error says no more than that it ended.
func why(ctx context.Context, err error) error {
	var says *settled
	if err == nil || ctx.Err() == nil || errors.As(err, &says) {
		return err
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, errInterrupt) || errors.Is(cause, errWait) {
		return cause
	}
	var f *fault.Error
	if errors.As(err, &f) && f.Code != fault.Timeout && f.Code != fault.Cancelled {
		return err // why it took so long
	}
	return cause
}

// knownCommand refuses what is no command, with those that are nearly it.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	message := "there is no command " + strconv.Quote(args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		message += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usage(errors.New(message))
}

// exactly is cobra.ExactArgs with words that name what is missing.
func exactly(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usage(errors.New("missing " + names[len(args)]))
		case len(args) > len(names):
			return usage(errors.New("one argument too many: " + args[len(names)]))
		}
		return nil
	}
}

func atLeast(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(errors.New("missing " + name))
		}
		return nil
	}
}

// quote makes a word fit for a shell.
func quote(s string) string {
	if subjects.ValidStepID(s) || subjects.ValidTool(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
