package ui

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// A viewer that is too slow holds nobody up: it loses frames, and is told to begin anew.
func TestASlowViewerBeginsAnew(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	h := newHub(ctx, nil, newFollower(nil, nil))
	slow, _ := h.join(topicRuns)
	quick, _ := h.join(topicRuns)
	topic := h.topics[topicRuns]
	for i := range 3 * slowFrames {
		h.tell(topic, topicRuns, i)
		require.Equal(t, uint64(i+1), (<-quick.frames).id)
	}
	require.True(t, slow.lost.Load())
	require.Len(t, slow.frames, slowFrames)
	require.False(t, quick.lost.Load())
	late, last := h.join(topicRuns)
	require.EqualValues(t, 3*slowFrames, last)
	for _, v := range []*viewer{slow, quick, late} {
		h.leave(topicRuns, v)
	}
	require.Empty(t, h.topics, "nobody follows it any more")
	h.wait()
	again, last := h.join(topicRuns)
	require.Zero(t, last)
	require.NotEqual(t, late.epoch, again.epoch, "what a browser saw of the topic before is of no use")
	h.leave(topicRuns, again)
	h.wait()
}
