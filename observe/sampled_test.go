package observe_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/observe"
)

// TestWhetherATraceIsKept looks at flags that say so, that do not, and that are none.
func TestWhetherATraceIsKept(t *testing.T) {
	t.Parallel()
	const ids = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"
	for parent, kept := range map[string]bool{
		"00-" + ids + "01": true, "00-" + ids + "0b": true, "cc-" + ids + "01-more": true,
		"00-" + ids + "00": false, "00-" + ids + "02": false, "00-" + ids + "0g": false, "00-" + ids + "0": false, "": false,
	} {
		require.Equal(t, kept, observe.Run{Traceparent: parent}.Sampled(), parent)
	}
}
