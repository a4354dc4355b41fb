package fault_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
)

func TestEnvelopeRoundTrip(t *testing.T) {
	e := fault.New(fault.ToolFailed, "503 from %s", "upstream").WithHint("try later")
	e.RetryAfter, e.Details = 1500*time.Millisecond, json.RawMessage(`{"status":503}`)
	b, err := json.Marshal(e)
	require.NoError(t, err)
	require.Equal(t, `{"code":"tool_failed","message":"503 from upstream","hint":"try later","retryable":true,"retry_after_ms":1500,"details":{"status":503}}`, string(b))
	var back fault.Error
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, *e, back)
}

func TestEnvelopeDefaults(t *testing.T) {
	read := func(s string) (e fault.Error) {
		require.NoError(t, json.Unmarshal([]byte(s), &e))
		return e
	}
	require.True(t, read(`{"code":"timeout","message":"m"}`).Retryable)
	require.False(t, read(`{"code":"tool_terminal","message":"m"}`).Retryable)
	require.False(t, read(`{"code":"tool_failed","message":"m","retryable":false}`).Retryable)
	require.Equal(t, 168*time.Hour, read(`{"code":"tool_failed","message":"m","retry_after_ms":9223372036854775807}`).RetryAfter)
	require.Zero(t, read(`{"code":"tool_failed","message":"m","retry_after_ms":-5}`).RetryAfter)
}

func TestAsAndIs(t *testing.T) {
	require.Nil(t, fault.As(nil))
	cause := errors.New("boom")
	e := fault.Wrap(fault.StoreFull, cause, "creating a record")
	wrapped := fmt.Errorf("outer: %w", e)
	require.Same(t, e, fault.As(wrapped))
	require.ErrorIs(t, wrapped, cause)
	require.ErrorIs(t, wrapped, &fault.Error{Code: fault.StoreFull})
	require.NotErrorIs(t, wrapped, &fault.Error{Code: fault.NotFound})
	require.Equal(t, fault.Internal, fault.CodeOf(cause))
	require.Equal(t, fault.Code(""), fault.CodeOf(nil))
	require.Equal(t, "store_full: creating a record: boom (make room)", e.WithHint("make room").Error())
}

func TestOnlyFailuresAndTimeoutsAreRetryable(t *testing.T) {
	for _, c := range []fault.Code{fault.ToolTerminal, fault.WorkerLost, fault.OutcomeUnknown, fault.InvalidArguments, fault.UnresolvedRef, fault.TooLarge, fault.Cancelled} {
		require.False(t, c.Retryable(), c)
		require.True(t, c.OfStep(), c)
	}
	require.True(t, fault.ToolFailed.Retryable())
	require.True(t, fault.Timeout.Retryable())
	require.False(t, fault.EmptyPlan.OfStep())
}
