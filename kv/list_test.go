package kv

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/tool"
)

// A cursor that was lost in the middle begins anew, and what it told before comes again or is gone.
func TestAListingNeverHoldsAToolTwice(t *testing.T) {
	t.Parallel()
	got, err := listTools(t.Context(), func(ctx context.Context, each func(tool.Registered, bool), ready func()) error {
		for _, name := range []string{"b", "c", "gone"} { // then the cursor is lost
			each(tool.Registered{Name: name, Revision: 1}, false)
		}
		for _, name := range []string{"a", "b", "c"} {
			each(tool.Registered{Name: name, Revision: 2}, false)
		}
		each(tool.Registered{Name: "gone"}, true)
		ready()
		return context.Cause(ctx)
	})
	require.NoError(t, err)
	require.Equal(t, []tool.Registered{{Name: "a", Revision: 2}, {Name: "b", Revision: 2}, {Name: "c", Revision: 2}}, got)
}
