// Package fault holds the one error type of Stepjet and its closed set of codes.
//
// Three audiences read a fault: a model that has to repair its plan, a person at a terminal, and a program that decides
// whether to try again. So each carries a code (for programs), a message (what happened), and a hint (what to do next).
// Every package may import fault; fault imports nothing of Stepjet.
package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Error is what went wrong: in a tool, in a plan, or on the way between them. Its JSON form is the error envelope of
// records and outcomes: {"code","message","hint"?,"retryable"?,"retry_after_ms"?,"details"?}.
type Error struct {
	// Code says what kind of error it is; it is one of the constants of this package.
	Code Code
	// Message says what happened, in one sentence, for a person or a model.
	Message string
	// Hint says what to do next; it may be empty.
	Hint string
	// Retryable is whether the same call may be tried again with a chance of success.
	Retryable bool
	// RetryAfter is the least time to wait before the next attempt; zero leaves it to the backoff.
	RetryAfter time.Duration
	// ToolCode is what the tool itself called it, such as card_declined; empty where it named a code of this package. A
	// handler sets it beside ToolFailed or ToolTerminal, and plans refer to it as "$error:<step>.tool_code". It is kept
	// in runs of the plan language 2 alone, and at most 128 bytes of it.
	ToolCode string
	// Details is any further JSON value that the tool gave; nil for none.
	Details json.RawMessage
	// Cause is the error beneath, for errors.Is and errors.As; it is never sent.
	Cause error
}

// New returns an error with a code and a formatted message. It is retryable if its code usually is.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Retryable: code.Retryable()}
}

// Wrap returns an error with a code whose message is the cause's, prefixed by what was being done.
func Wrap(code Code, cause error, doing string) *Error {
	return &Error{Code: code, Message: doing + ": " + cause.Error(), Retryable: code.Retryable(), Cause: cause}
}

// WithHint sets the hint and returns the error itself.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// Error returns code, message and hint in one line.
func (e *Error) Error() string {
	if e.Hint == "" {
		return string(e.Code) + ": " + e.Message
	}
	return string(e.Code) + ": " + e.Message + " (" + e.Hint + ")"
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is reports whether target is an *Error of the same code, so that errors.Is(err, &fault.Error{Code: c}) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// As finds the first *Error in err's chain; an error of any other kind becomes one with code Internal. It returns nil
// for nil.
func As(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: Internal, Message: err.Error(), Cause: err}
}

// CodeOf returns the code of err, Internal for an error of another kind, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	return As(err).Code
}

type envelope struct {
	Code         Code            `json:"code"`
	ToolCode     string          `json:"tool_code,omitempty"`
	Message      string          `json:"message"`
	Hint         string          `json:"hint,omitempty"`
	Retryable    bool            `json:"retryable"`
	RetryAfterMS int64           `json:"retry_after_ms,omitempty"`
	Details      json.RawMessage `json:"details,omitempty"`
}

// MarshalJSON writes the error envelope.
func (e *Error) MarshalJSON() ([]byte, error) {
	return json.Marshal(envelope{
		e.Code, e.ToolCode, e.Message, e.Hint, e.Retryable, e.RetryAfter.Milliseconds(), e.Details,
	})
}

// UnmarshalJSON reads the error envelope. A missing "retryable" takes the code's own default, so that a worker in
// another language may leave it out.
func (e *Error) UnmarshalJSON(b []byte) error {
	var in struct {
		envelope
		Retryable *bool `json:"retryable"`
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*e = Error{
		Code: in.Code, ToolCode: in.ToolCode, Message: in.Message, Hint: in.Hint, Details: in.Details,
		Retryable: in.Code.Retryable(),
	}
	if in.Retryable != nil {
		e.Retryable = *in.Retryable
	}
	if in.RetryAfterMS > 0 {
		e.RetryAfter = time.Duration(min(in.RetryAfterMS, maxRetryAfter.Milliseconds())) * time.Millisecond
	}
	return nil
}

// maxRetryAfter bounds what a tool may ask for: a run's longest time.
const maxRetryAfter = 168 * time.Hour
