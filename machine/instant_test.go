package machine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnInstantIsTheTimeItWasMadeOf(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{{}, time.Date(2026, 11, 21, 1, 2, 3, 456_789_012, time.UTC), time.Date(1969, 1, 1, 0, 0, 0, 1, time.UTC)} {
		require.Equal(t, at, instantOf(at).time())
	}
	far := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(1<<63 - 1)) // a pause of 292 years
	require.True(t, instantOf(far).time().After(time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC)), "late, and not wrapped round")
	require.True(t, instantOf(time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)).time().Before(time.Date(1700, 1, 1, 0, 0, 0, 0, time.UTC)))
}
