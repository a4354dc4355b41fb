package kv

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Of each partition the most counts that was told in a life of the ledger, whoever told it, and of a few lives alone.
func TestMarksThatWereHeard(t *testing.T) {
	t.Parallel()
	h := &heardMarks{}
	h.hear([]Mark{{Life: "a", Partitions: 0b111, Below: 5, Over: 9}, {Shard: -1, Life: "a", Partitions: 1, Below: 1}, {Shard: 64, Life: "a", Partitions: 1, Below: 1}})
	h.hear([]Mark{{Life: "a", Partitions: 0b010, Over: 12}})
	h.hear([]Mark{{Life: "a", Partitions: 0b110, Below: 3, Over: 7}})
	require.Equal(t, []Mark{{Life: "a", Partitions: 0b101, Below: 5, Over: 9}, {Life: "a", Partitions: 0b010, Below: 5, Over: 12}}, h.all())

	h.hear([]Mark{{Shard: 1, Life: "z", Partitions: 2, Over: 1}})
	for i := range 2 * livesKept {
		h.hear([]Mark{{Life: fmt.Sprint(i), Partitions: 1, Over: 1}})
		h.hear([]Mark{{Life: "a", Partitions: 1, Over: 1}}) // who slept tells it still
	}
	all := h.all()
	require.Equal(t, "a", all[len(all)-1].Life, "that heard of last")
	lives := map[string]bool{}
	for _, m := range all {
		lives[m.Life] = true
	}
	require.Len(t, lives, livesKept+1)
	require.True(t, lives["z"], "of another shard")
}
