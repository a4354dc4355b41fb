package bridge

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What is told of a list is gathered for a second from the first on, however much more is told: a changed tool is held
// within 2 s, half of which are left to the server's answer.
func TestNewsAreGatheredForASecond(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{0, 30 * time.Millisecond, 700 * time.Millisecond, 1300 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			news := make(chan struct{}, 1)
			var looked []time.Time
			go gather(ctx, news, func() bool { looked = append(looked, time.Now()); return true })
			told := time.Now()
			news <- struct{}{}
			for every > 0 && time.Since(told) < 10*time.Second {
				time.Sleep(every)
				select {
				case news <- struct{}{}:
				default:
				}
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			require.Equal(t, settling, looked[0].Sub(told), "%s", every)
			for i, at := range looked[1:] {
				require.GreaterOrEqual(t, at.Sub(looked[i]), settling, "%s", every)
				require.LessOrEqual(t, at.Sub(looked[i]), settling+every, "%s", every)
			}
			if every > 0 {
				require.Greater(t, looked[len(looked)-1].Sub(told), 10*time.Second, "the last news are looked at too")
				return
			}
			require.Len(t, looked, 1)
		})
	}
}

// A server that can't be listed just when it has told of a change is asked again, at growing intervals.
func TestALookThatFailedIsHadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		news := make(chan struct{}, 1)
		var looked []time.Duration
		told := time.Now()
		go gather(ctx, news, func() bool { looked = append(looked, time.Since(told)); return len(looked)%8 == 0 })
		news <- struct{}{}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Len(t, looked, 8, "and no more once it was listed")
		require.LessOrEqual(t, looked[1]-looked[0], settling)
		require.Greater(t, looked[7]-looked[6], mostBetween/3)
		require.LessOrEqual(t, looked[7]-looked[6], mostBetween)
		news <- struct{}{}
		time.Sleep(settling)
		synctest.Wait()
		require.Len(t, looked, 9, "news come as soon as ever")
	})
}
