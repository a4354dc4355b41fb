package subjects_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/subjects"
)

func TestBeats(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ prefix, worker, subject, user string }{
		{"_INBOX.worker-search", "pod-7.x", "beat.worker-search.pod-7=2Ex", "worker-search"},
		{subjects.InboxPrefix("ann.b"), "w", "beat.ann=2Eb.w", "ann.b"},
		{"", "w", "beat._.w", ""},
		{"_INBOX", "w", "beat._.w", ""},
		{"_INBOX.a.b", "w", "beat._.w", ""},
		{"_INBOX.a=2e", "w", "beat._.w", ""},
		{"_INBOX.*", "ü >", "beat._.=C3=BC=20=3E", ""},
	} {
		require.Equal(t, x.subject, subjects.Beat(x.prefix, x.worker))
		user, worker, ok := subjects.ParseBeat(x.subject)
		require.True(t, ok, x.subject)
		require.Equal(t, []string{x.user, x.worker}, []string{user, worker})
	}
	require.Equal(t, "beat.worker-search.*", subjects.BeatsOf("worker-search"))
}

// A name that no worker has is that of none: one that is too long, or that a terminal would not show.
func TestWhatIsNoBeat(t *testing.T) {
	t.Parallel()
	for _, subject := range []string{
		"", "beat", "beat.ask", "beat.a.", "beat..w", "beat.a.b.c", "event.a.b", "beat.a.=1B=5B31m", "beat.a.=E2=80=AE",
		"beat.a.=FF", "beat.a.=0A", "beat.a=2e.w", "beat.a." + strings.Repeat("w", subjects.MaxWorker+1),
		"beat." + strings.Repeat("u", 200) + ".w",
	} {
		_, _, ok := subjects.ParseBeat(subject)
		require.False(t, ok, subject)
	}
}
