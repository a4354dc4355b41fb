package agents

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlacesOfCalls: calls of a round have the order of the answer, items of one that of their list, however long it is, iterations
// and what is within them too; a call that began while the answer was written has the place that it has there.
func TestPlacesOfCalls(t *testing.T) {
	t.Parallel()
	of := func(round, call int, token string) []int {
		o := outcome{call: call, token: token}
		return o.place(round)
	}
	inOrder := [][]int{
		of(0, 7, ""), of(1, 0, "a/=1/x"), of(1, 1, "a/=1/l=2"), of(1, 1, "a/=1/l=9"), of(1, 1, "a/=1/l=10"), of(1, 1, "a/=1/l=10/=0/y=3"),
		of(1, 1, "a/=1/l=10/=2/y=1"), of(1, 2, "a/=1/=stream/z"), of(1, 3, ""), of(10, 0, "a/=10/x"),
	}
	for i := range inOrder[1:] {
		require.Negative(t, slices.Compare(inOrder[i], inOrder[i+1]), "%v", inOrder[i])
	}
	require.Less(t, slices.Compare(of(1, 2, "a/=1/=stream/z"), of(1, 3, "a/=1/z")), 0)
}
