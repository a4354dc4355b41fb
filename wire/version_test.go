package wire_test

import (
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// Each kind has versions of its own. A change here is a change of the protocol: who raises one reads docs/protocol.md,
// "Old and new together", first.
func TestVersionsAreOfAKind(t *testing.T) {
	t.Parallel()
	for kind, want := range map[wire.Kind][]int{
		wire.KindPlan: {0, 1, 2, 3, 4}, wire.KindStart: {0, 1, 2, 3, 4}, wire.KindStop: {0, 1}, wire.KindStep: {0, 1, 2, 3, 4}, wire.KindRequest: {0, 1},
		wire.KindAnswer: {0, 1, 3}, wire.KindEvent: {0, 1}, wire.KindOutcome: {0, 1, 3}, wire.KindDeadLetter: {0, 1, 3}, wire.KindBlob: {0, 1},
		wire.KindGathering: {0, 1}, wire.KindSealingKey: {0, 1, 2},
	} {
		var known []int
		for n := range 130 {
			h := nats.Header{subjects.HeaderVersion: {strconv.Itoa(n)}}
			if kind.Known(h) {
				known = append(known, n)
			}
			require.NotEqual(t, kind.Known(h), kind.Newer(h))
		}
		require.Equal(t, want, known, "kind %d", kind)
		for _, junk := range []string{"junk", "-1", "99999999999"} {
			h := nats.Header{subjects.HeaderVersion: {junk}}
			require.False(t, kind.Known(h) || kind.Newer(h), junk)
		}
		require.True(t, kind.Known(nil))
	}
}
