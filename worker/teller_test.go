package worker

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWithoutAnObserverNothingIsAllocated(t *testing.T) {
	x := &execution{e: &engine{}}
	require.Zero(t, testing.AllocsPerRun(100, func() { x.e.tell.execute(x, false) }))
}
