package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
)

// maxMessage bounds an error's message in a record, in bytes; readers clip there too.
const maxMessage = 16 << 10

// cause is why an execution's context ended.
type cause struct {
	text string
	is   error
}

func (c *cause) Error() string        { return c.text }
func (c *cause) Is(target error) bool { return target == c.is }

// The causes with which a handler's context ends, to be compared with context.Cause(ctx).
var (
	// ErrTimeout: the execution took longer than its timeout, or its step or run expired. errors.Is it with
	// context.DeadlineExceeded holds too.
	ErrTimeout error = &cause{"the execution ran out of time", context.DeadlineExceeded}
	// ErrCancelled: the run was cancelled, or failed fast.
	ErrCancelled error = &cause{"the step was cancelled", context.Canceled}
	// ErrLeaseLost: this worker could not renew its lease in time; another one may have the step.
	ErrLeaseLost error = &cause{"the lease on the step ran out", context.Canceled}
	// ErrDraining: the worker is shutting down and has waited long enough.
	ErrDraining error = &cause{"the worker is shutting down", context.Canceled}
	// errDone ends the context of an execution that has returned, so that nothing it started outlives it.
	errDone error = &cause{"the execution is over", context.Canceled}
)

type terminalError struct{ err error }

func (e *terminalError) Error() string { return e.err.Error() }
func (e *terminalError) Unwrap() error { return e.err }

// Terminal marks an error that can't be helped by trying again: the step fails with tool_terminal and is never retried.
// It keeps err for errors.Is and errors.As; nil stays nil.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return &terminalError{err}
}

type retryAfterError struct {
	err   error
	after time.Duration
}

func (e *retryAfterError) Error() string { return e.err.Error() }
func (e *retryAfterError) Unwrap() error { return e.err }

// RetryAfter marks an error that is worth another attempt, but not before d has passed (an upstream's Retry-After). The
// step fails with tool_failed; whether there is another attempt is up to its contract. nil stays nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryAfterError{err, max(d, 0)}
}

// Replan is the error of a call that could be made, and is of no use any more as things stand: the offer has changed, the
// file is not what was expected. In a round of an agent nothing more begins, and its planner is asked anew and reads the
// reason; anywhere else the call has failed. It is never made again by itself.
func Replan(reason string) error { return fault.New(fault.Replan, "%s", reason) }

// toolCodes are the codes that a handler may choose by returning a *fault.Error. The others are Stepjet's own to give.
var toolCodes = map[fault.Code]bool{
	fault.ToolFailed: true, fault.ToolTerminal: true, fault.Timeout: true, fault.InvalidArguments: true,
	fault.TooLarge: true, fault.OutcomeUnknown: true, fault.Replan: true,
}

// failure makes the record's error of what a handler returned. It never returns nil for an error.
func failure(err error) *fault.Error {
	out := fault.Error{Code: fault.ToolFailed, Message: err.Error(), Retryable: true, Cause: err}
	var given *fault.Error
	if errors.As(err, &given) {
		fromFault(&out, given, err)
	}
	var after *retryAfterError
	if errors.As(err, &after) {
		out.Code, out.Retryable, out.RetryAfter = fault.ToolFailed, true, after.after
	}
	var terminal *terminalError
	if errors.As(err, &terminal) {
		out.Code, out.Retryable, out.RetryAfter = fault.ToolTerminal, false, 0
	}
	if out.Message == "" {
		out.Message = fmt.Sprintf("the tool failed without saying why (%T)", err)
	}
	return &out
}

// clipped returns an error with bounded texts.
func clipped(f *fault.Error) *fault.Error {
	short := *f
	short.Message, short.Hint = text.Clip(f.Message, maxMessage), text.Clip(f.Hint, 4096)
	return &short
}

// fromFault takes over a fault that a handler returned, itself or wrapped.
func fromFault(out, given *fault.Error, err error) {
	out.Hint, out.Details, out.RetryAfter, out.ToolCode = given.Hint, given.Details, given.RetryAfter, given.ToolCode
	whole := error(given) == err //nolint:errorlint // what wraps a fault says more than that
	if whole {
		out.Message = given.Message
	}
	if !toolCodes[given.Code] {
		if whole && given.Code != "" {
			out.Message = string(given.Code) + ": " + given.Message // the code is kept where the set has no place for it
		}
		out.Retryable = given.Retryable
		return
	}
	out.Code = given.Code
	out.Retryable = given.Retryable && given.Code.Retryable()
}
