package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/embedded"
)

// counting has a loop that counts to 30, each time from what it counted to before, and one for each of two items.
const counting = `{"steps":[
	{"id":"count","tool":"add","arguments":{"a":"$last.result || 0","b":1},"repeat":{"until":"$last.result == 30","max":40,"every":"150ms"}},
	{"id":"each","for_each":{"in":[1,2]},"arguments":{"from":"$last.sum.result || 0","step":"$ref:item"},
		"repeat":{"until":"$last.sum.result >= 8","collect":true,"every":"300ms"},
		"plan":{"steps":[{"id":"sum","tool":"add","arguments":{"a":"$input.from","b":"$input.step"}}]}}],
	"output":{"count":"$ref:count.result","each":"$ref:each[*].data[*].sum.result"}}`

// TestLoopsOutliveEverything: server, orchestrators and worker are killed in the midst of loops, twice. They go on with the
// next iteration, execute none twice, and come to what they come to when nobody dies.
func TestLoopsOutliveEverything(t *testing.T) {
	t.Parallel()
	h := &house{t: t, options: embedded.Options{Dir: t.TempDir(), Listen: freeAddress(t)}}
	h.start()
	_, c := h.client()
	for _, run := range []string{"calm", "hit"} {
		_, err := c.Submit(within(t, time.Minute), []byte(counting), client.SubmitOptions{Run: run})
		require.NoError(t, err)
	}
	for _, iterations := range []int{5, 12} {
		require.Eventually(t, func() bool {
			doc, err := c.Get(within(t, time.Minute), "hit")
			return err == nil && len(doc.Steps) > 0 && len(doc.Steps[0].Steps) >= iterations
		}, 2*time.Minute, 10*time.Millisecond)
		h.fall()
		h.start()
		_, c = h.client()
	}
	_, err := c.Submit(within(t, time.Minute), []byte(counting), client.SubmitOptions{Run: "after"})
	require.NoError(t, err)
	want := told(t, c, "after")
	require.Contains(t, want, `"output":{"count":30,"each":[1,2,3,4,5,6,7,8,2,4,6,8]}`)
	for _, run := range []string{"calm", "hit"} {
		require.Equal(t, want, told(t, c, run), run)
	}
	doc, err := c.Get(within(t, time.Minute), "hit")
	require.NoError(t, err)
	turns := doc.Steps[0].Steps
	require.Len(t, turns, 30)
	for i := range turns {
		require.Equal(t, fmt.Sprintf("count/=%d", i), turns[i].ID)
		require.Equal(t, 1, turns[i].Attempts)
		if i > 0 {
			require.False(t, turns[i].Started.Before(turns[i-1].Ended), "an iteration begins only after the one before")
		}
	}
}
