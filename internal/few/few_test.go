package few_test

import (
	"math/rand"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/few"
)

// Random puts and drops, beside a map of Go's.
func TestItIsAMap(t *testing.T) {
	t.Parallel()
	for seed := range int64(200) {
		random := rand.New(rand.NewSource(seed))
		var m few.Map[int, int64]
		twin := map[int]int64{}
		keys := 1 + random.Intn(20)
		for range 300 {
			key := random.Intn(keys)
			if random.Intn(5) < 3 {
				value := random.Int63()
				m.Put(key, value)
				twin[key] = value
			} else {
				m.Drop(key)
				delete(twin, key)
			}
			require.Equal(t, len(twin), m.Len(), "seed %d", seed)
			all := map[int]int64{}
			for key, value := range m.All() {
				require.NotContains(t, all, key)
				all[key] = value
			}
			require.Equal(t, twin, all, "seed %d", seed)
			for key := range keys {
				want, there := twin[key]
				got, ok := m.Find(key)
				require.Equal(t, there, ok)
				require.Equal(t, want, got)
				require.Equal(t, want, m.At(key))
			}
		}
	}
}

func TestTheOneThatIsLookedAtMayBeDropped(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 5, 8, 9, 40} {
		var m few.Map[int, int]
		for i := range n {
			m.Put(i, i)
		}
		seen := 0
		for key := range m.All() {
			seen++
			m.Drop(key)
		}
		require.Equal(t, n, seen)
		require.Zero(t, m.Len())
	}
}

func TestAnEmptyOneTakesAWord(t *testing.T) { // alone, since it counts
	var m few.Map[string, [100]byte]
	require.Equal(t, unsafe.Sizeof(uintptr(0)), unsafe.Sizeof(m))
	m.Put("a", [100]byte{})
	m.Drop("a")
	require.Equal(t, few.Map[string, [100]byte]{}, m)
	one := testing.AllocsPerRun(10, func() {
		var m few.Map[string, *int]
		m.Put("a", nil)
	})
	require.LessOrEqual(t, one, 2.0)
}
