package cli

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/doctor"
)

// provision runs the command against the ward's server.
func (w *ward) provision(args ...string) (diagnosis, int) {
	w.t.Helper()
	return w.examined("provision", args...)
}

// TestAnAccountIsProvisionedBeforeAnyProcess: nobody is there, all is made, and what comes then finds nothing to do.
func TestAnAccountIsProvisionedBeforeAnyProcess(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	d, code := w.provision("--retention", "24h")
	require.Zero(t, code, "%+v", d.Left)
	mended := 0
	for _, f := range d.Findings {
		if f.Mended {
			mended++
		}
	}
	require.Greater(t, mended, 8, "streams and buckets")
	d, code = w.provision()
	require.Zero(t, code)
	for _, f := range d.Findings {
		require.False(t, f.Mended, "%+v", f)
	}
	config := func(name string) jetstream.StreamConfig {
		s, err := w.js.Stream(w.within(), name)
		require.NoError(t, err)
		return s.CachedInfo().Config
	}
	before := config("KV_history")
	require.Equal(t, 24*time.Hour, before.MaxAge)
	w.orchestrator()
	require.Equal(t, before, config("KV_history"))
}

// TestProvisioningLeavesWhatVersionsOfBeforeNeed: before the first process is upgraded it mends what costs something now,
// and leaves to "doctor --fix" what the programs that are still there rely on.
func TestProvisioningLeavesWhatVersionsOfBeforeNeed(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.orchestrator()
	edit := func(name string, change func(*jetstream.StreamConfig)) {
		s, err := w.js.Stream(w.within(), name)
		require.NoError(t, err)
		c := s.CachedInfo().Config
		change(&c)
		_, err = w.js.UpdateStream(w.within(), c)
		require.NoError(t, err)
	}
	edit("OBJ_blobs", func(c *jetstream.StreamConfig) { c.AllowRollup, c.MaxAge = true, time.Hour })
	require.NoError(t, w.js.DeleteStream(w.within(), "KV_groups"))
	d, code := w.provision()
	require.Zero(t, code, "%+v", d.Left)
	blobs, err := w.js.Stream(w.within(), "OBJ_blobs")
	require.NoError(t, err)
	require.True(t, blobs.CachedInfo().Config.AllowRollup)
	require.Greater(t, blobs.CachedInfo().Config.MaxAge, time.Hour)
	_, err = w.js.Stream(w.within(), "KV_groups")
	require.NoError(t, err)
	var left []doctor.Finding
	for _, f := range d.Findings {
		if f.About == "OBJ_blobs" && f.Health == doctor.Notable {
			left = append(left, f)
		}
	}
	require.Len(t, left, 1)
	require.Contains(t, left[0].Fix, "doctor --fix")
	_, code = w.doctor("--fix")
	require.Zero(t, code)
	blobs, err = w.js.Stream(w.within(), "OBJ_blobs")
	require.NoError(t, err)
	require.False(t, blobs.CachedInfo().Config.AllowRollup)
}

// TestWhatAPersonHasToDoIsLeft: a stream that can't be changed is no success.
func TestWhatAPersonHasToDoIsLeft(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	_, err := w.js.CreateStream(w.within(), jetstream.StreamConfig{Name: "KV_dead", Subjects: []string{"$KV.dead.>"}, Storage: jetstream.MemoryStorage, MaxMsgsPerSubject: 1, DenyDelete: true})
	require.NoError(t, err)
	d, code := w.provision()
	require.Equal(t, exitFailed, code)
	require.Len(t, d.Left, 1)
	require.Equal(t, "KV_dead", d.Left[0].About)
}
