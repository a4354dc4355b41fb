package kv

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Asking again is not giving up: whoever was asked and answers, its answer counts.
func TestLookingAgainWaitsForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		slow := func(ctx context.Context) (int, error) {
			n := int(asked.Add(1))
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-time.After(1800 * time.Millisecond):
				return n, nil
			}
		}
		_, err := look(t.Context(), 0, slow)
		require.ErrorIs(t, err, context.DeadlineExceeded, "the first time it is a look and no more")
		began := time.Now()
		got, err := look(t.Context(), 1, slow)
		require.NoError(t, err)
		require.Equal(t, 2, got, "the first of those asked this time")
		require.Equal(t, 1800*time.Millisecond, time.Since(began))
		require.EqualValues(t, 5, asked.Load())
	})
}

func TestLookingEndsWithAnAnswerOrTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		no := errors.New("no")
		_, err := look(t.Context(), 1, func(context.Context) (int, error) { return 0, no })
		require.ErrorIs(t, err, no)
		require.Zero(t, time.Since(began), "an error is an answer")
		_, err = patiently(t.Context(), func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, firstTimeout+2*requestTimeout, time.Since(began))
	})
}
