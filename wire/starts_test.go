package wire_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// Whoever reads starts through Starts has what ParseStart returns, and one of those that have the same bytes.
func TestStartsOfTheSameBytesAreOne(t *testing.T) {
	t.Parallel()
	of := func(digest string) *wire.Start {
		return &wire.Start{Tools: map[string]*wire.FrozenTool{"t": {Digest: digest, Contract: tool.Contract{Limit: 3}}}, Needs: []string{wire.Agents}}
	}
	again := of("a")
	again.Reuse = &wire.Reuse{Of: "r"}
	var all wire.Starts
	for n, s := range []*wire.Start{of("a"), of("b"), again, {Problems: []fault.Problem{{Code: fault.EmptyPlan}}}} {
		h, body, err := s.Message()
		require.NoError(t, err)
		want, _, err := wire.ParseStart(h, body)
		require.NoError(t, err)
		first, blob, err := all.Parse(h, body)
		require.NoError(t, err)
		require.Nil(t, blob)
		require.Equal(t, want, first)
		second, _, err := all.Parse(h, body)
		require.NoError(t, err)
		require.Equal(t, want, second)
		require.Equal(t, n < 2, first == second, "one that is like no other is not kept")
	}
	_, _, err := all.Parse(nil, []byte("{"))
	require.Error(t, err)
}

func TestManyMayReadStartsAtOnce(t *testing.T) {
	t.Parallel()
	var all wire.Starts
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for n := range 3000 { // more than are remembered
				s, _, err := all.Parse(nil, fmt.Appendf(nil, `{"needs":["n%d"]}`, n))
				if err != nil || s.Needs[0] != fmt.Sprint("n", n) {
					t.Error(n, s, err)
				}
			}
		})
	}
	wait.Wait()
}
