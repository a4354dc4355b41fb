package client

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWithoutAnObserverNothingIsAllocated(t *testing.T) {
	c, r := &Client{}, &Run{}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		var o SubmitOptions
		c.tell.submit("acme", 10, &o, c.tell.began(), r, nil)
	}))
}
