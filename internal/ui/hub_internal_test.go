package ui

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A viewer that is too slow holds nobody up: it loses frames, and is told to begin anew.
func TestASlowViewerBeginsAnew(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	h := newHub(ctx, nil, newFollower(nil, nil), nil)
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

// A stream that has nothing to say says so, so that no proxy on its way takes it for dead.
func TestASilentStreamIsKeptOpen(t *testing.T) {
	t.Parallel()
	require.Equal(t, 15*time.Second, commentEvery, "proxies close what is silent for a minute, some for half of one")
	h := newHub(t.Context(), nil, newFollower(nil, nil), nil)
	require.Equal(t, commentEvery, h.silent)
	h.silent = time.Millisecond
	front := httptest.NewServer(endpoint(h.stream))
	answer, err := front.Client().Get(front.URL)
	require.NoError(t, err)
	lines, comments := bufio.NewScanner(answer.Body), 0
	for comments < 5 {
		require.True(t, lines.Scan(), "the stream ended")
		if lines.Text() == ": " {
			comments++
		}
	}
	require.NoError(t, answer.Body.Close())
	front.CloseClientConnections()
	front.Close()
	h.wait() // nobody is there any more, and so nothing is followed
	require.Empty(t, h.topics)
}

func (do endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) { do.serve(w, r) }
