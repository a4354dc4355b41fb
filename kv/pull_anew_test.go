package kv_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/kv"
)

// Who no longer trusts what is on its way asks anew, and can tell what came of which request.
func TestAnewTellsOldDeliveriesFromNewOnes(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{AckWait: unhurried})
	tool := register(t, s, "tool", 10)
	before := time.Now()
	p, got := pull(t, s, tool, 1)
	p.More(2, time.Minute)
	dispatch(t, s, kv.Dispatch{Attempt: attempt(tool.Name, "1")})
	dispatch(t, s, kv.Dispatch{Attempt: attempt(tool.Name, "2")})
	old := p.Since()
	for range 2 {
		d := receive(t, got, "a step")
		require.True(t, d.Asked.After(before))
		require.True(t, d.Held.IsZero())
	}
	p.Anew()
	require.True(t, p.Since().After(old))
	p.Release()
	p.More(2, time.Minute)
	now := p.Since()
	dispatch(t, s, kv.Dispatch{Attempt: attempt(tool.Name, "3")})
	dispatch(t, s, kv.Dispatch{Attempt: attempt(tool.Name, "4")})
	for range 2 {
		require.False(t, receive(t, got, "a step").Asked.Before(now), "of a request that was sent since, of More as well")
	}
}

func TestAStepThatWaitedForASlotSaysSo(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{AckWait: unhurried})
	tool := register(t, s, "tool", 10)
	p, got := pull(t, s, tool, 1)
	for i := range 50 {
		require.Eventually(t, p.Take, 2*time.Minute, time.Millisecond) // the slot that a step is asked for already
		dispatch(t, s, kv.Dispatch{Attempt: attempt(tool.Name, fmt.Sprint(i))})
		require.Eventually(t, func() bool { return pendingAcks(t, s, tool) == 1 }, 2*time.Minute, time.Millisecond)
		time.Sleep(time.Duration(i) * time.Millisecond) // no condition tells that it has come
		p.Release()
		d := receive(t, got, "the step")
		require.NoError(t, d.Ack())
		if !d.Held.IsZero() {
			return
		}
		p.Release()
	}
	require.Fail(t, "no step was held")
}
