package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
)

func TestFailure(t *testing.T) {
	t.Parallel()
	plain := errors.New("503 from upstream")
	given := &fault.Error{Code: fault.TooLarge, Message: "too much", Hint: "ask for less", Details: json.RawMessage(`{"n":1}`), Retryable: true}
	for name, c := range map[string]struct {
		err   error
		code  fault.Code
		msg   string
		retry bool
		after time.Duration
	}{
		"plain":               {plain, fault.ToolFailed, "503 from upstream", true, 0},
		"terminal":            {Terminal(plain), fault.ToolTerminal, "503 from upstream", false, 0},
		"terminal, wrapped":   {fmt.Errorf("call: %w", Terminal(plain)), fault.ToolTerminal, "call: 503 from upstream", false, 0},
		"retry after":         {RetryAfter(plain, time.Minute), fault.ToolFailed, "503 from upstream", true, time.Minute},
		"retry in the past":   {RetryAfter(plain, -time.Minute), fault.ToolFailed, "503 from upstream", true, 0},
		"terminal wins":       {RetryAfter(Terminal(plain), time.Minute), fault.ToolTerminal, "503 from upstream", false, 0},
		"own timeout":         {context.DeadlineExceeded, fault.ToolFailed, "context deadline exceeded", true, 0},
		"fault":               {given, fault.TooLarge, "too much", false, 0},
		"fault, wrapped":      {fmt.Errorf("page 2: %w", fault.New(fault.InvalidArguments, "no")), fault.InvalidArguments, "page 2: invalid_arguments: no", false, 0},
		"fault, not a tool's": {&fault.Error{Code: fault.Skipped, Message: "x"}, fault.ToolFailed, "skipped: x", false, 0},
		"fault of the way":    {fault.New(fault.NotFound, "no city"), fault.ToolFailed, "not_found: no city", false, 0},
		"replan":              {Replan("the price has changed"), fault.Replan, "the price has changed", false, 0},
		"replan, wrapped":     {fmt.Errorf("offer 3: %w", Replan("gone")), fault.Replan, "offer 3: replan: gone", false, 0},
		"says nothing":        {errors.New(""), fault.ToolFailed, "the tool failed without saying why (*errors.errorString)", true, 0},
	} {
		f := failure(c.err)
		require.Equal(t, c.code, f.Code, name)
		require.Equal(t, c.msg, f.Message, name)
		require.Equal(t, c.retry, f.Retryable, name)
		require.Equal(t, c.after, f.RetryAfter, name)
	}
	require.Equal(t, "ask for less", failure(given).Hint)
	require.JSONEq(t, `{"n":1}`, string(failure(given).Details))
	require.Equal(t, "too much", given.Message, "the tool's own error is not changed")
	require.True(t, given.Retryable)
}

func TestFailureIsBounded(t *testing.T) {
	t.Parallel()
	f := clipped(failure(errors.New(strings.Repeat("x", 10<<20))))
	require.Less(t, len(f.Message), maxMessage+8)
}

func TestMarksKeepTheCause(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, Terminal(io.EOF), io.EOF)
	require.ErrorIs(t, RetryAfter(io.EOF, 1), io.EOF)
	require.NoError(t, Terminal(nil))
	require.NoError(t, RetryAfter(nil, 1))
}

func TestCauses(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, ErrTimeout, context.DeadlineExceeded)
	require.NotErrorIs(t, ErrTimeout, context.Canceled)
	for _, err := range []error{ErrCancelled, ErrLeaseLost, ErrDraining, errDone} {
		require.ErrorIs(t, err, context.Canceled)
	}
	require.NotErrorIs(t, ErrCancelled, ErrDraining)
}

type unprintable struct{}

func (unprintable) Error() string { panic("no words") }

func TestErrorsThatCannotBePrinted(t *testing.T) {
	t.Parallel()
	f := describe(unprintable{})
	require.Equal(t, fault.ToolFailed, f.Code)
	require.Contains(t, f.Message, "unprintable")
	require.Contains(t, panicked(unprintable{}).Error(), "PANIC")
}

func TestStepContext(t *testing.T) {
	t.Parallel()
	base, cancel := context.WithCancelCause(context.WithValue(context.Background(), infoKeyOfTest{}, "kept"))
	deadline := time.Now().Add(time.Hour)
	ctx := &stepContext{base, &Info{Step: "s1", Deadline: deadline}, nil}
	got, ok := ctx.Deadline()
	require.True(t, ok)
	require.Equal(t, deadline, got)
	info, ok := InfoFrom(ctx)
	require.True(t, ok)
	require.Equal(t, "s1", info.Step)
	require.Equal(t, "kept", ctx.Value(infoKeyOfTest{}))
	_, ok = InfoFrom(context.Background())
	require.False(t, ok)

	child, stop := context.WithTimeout(ctx, 2*time.Hour)
	defer stop()
	got, _ = child.Deadline()
	require.Equal(t, deadline, got, "what a handler derives is bounded as well")
	require.NoError(t, ctx.Err())
	cancel(ErrTimeout)
	require.Equal(t, context.DeadlineExceeded, ctx.Err())
	<-child.Done()
	require.ErrorIs(t, context.Cause(child), context.DeadlineExceeded)
}

func TestStepContextCancelled(t *testing.T) {
	t.Parallel()
	base, cancel := context.WithCancelCause(context.Background())
	ctx := &stepContext{base, &Info{}, nil}
	_, ok := ctx.Deadline()
	require.False(t, ok)
	cancel(ErrCancelled)
	require.Equal(t, context.Canceled, ctx.Err())
	require.Equal(t, ErrCancelled, context.Cause(ctx))
}

type infoKeyOfTest struct{}

// What a tool calls its failure goes beside the code, wrapped or not.
func TestFailureKeepsTheToolsCode(t *testing.T) {
	t.Parallel()
	declined := &fault.Error{Code: fault.ToolFailed, ToolCode: "card_declined", Message: "no"}
	require.Equal(t, "card_declined", failure(declined).ToolCode)
	require.Equal(t, "card_declined", failure(fmt.Errorf("pay: %w", declined)).ToolCode)
	f := failure(Terminal(declined))
	require.Equal(t, "card_declined", f.ToolCode)
	require.Equal(t, fault.ToolTerminal, f.Code)
}
