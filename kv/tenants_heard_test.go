package kv

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/natstest"
)

// Two questions are on their way at once, and the answer to the first comes last: it says nothing of a tenant that was
// declared in between.
func TestATenantIsNotForgotten(t *testing.T) {
	t.Parallel()
	var known tenants
	first, second := known.ask(), known.ask()
	known.hear(second, []string{"acme"})
	known.hear(first, nil)
	require.True(t, known.known["acme"])
	known.hear(known.ask(), nil)
	require.False(t, known.known["acme"], "what is asked later counts")
}

// TestWhatIsKnownOfTenantsCountsWhileTheKeyStands: an answer counts for plans that were stored while the key stood, if
// it was asked for since then.
func TestWhatIsKnownOfTenantsCountsWhileTheKeyStands(t *testing.T) {
	t.Parallel()
	stored := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const gap = 0
	for name, c := range map[string]struct {
		stands []time.Duration // when the key was stored; at a gap in between, it is asked
		plan   time.Duration
		counts bool
	}{
		"no key yet":                           {nil, 0, false},
		"asked before there was a key":         {[]time.Duration{1}, 1, false},
		"asked since there is one":             {[]time.Duration{1, gap}, 1, true},
		"a plan of before the key":             {[]time.Duration{1, gap}, -time.Hour, true},
		"the last that is sure to be in time":  {[]time.Duration{1, gap}, keyStands, true},
		"a plan behind the key's time":         {[]time.Duration{1, gap}, keyStands + 1, false},
		"the same once it was renewed":         {[]time.Duration{1, gap, time.Second}, keyStands + 1, true},
		"renewed as long as it stood":          {[]time.Duration{1, gap, keyStands, 2*keyStands - 1}, 2 * keyStands, true},
		"renewed when it may have expired":     {[]time.Duration{1, gap, keyStands + 1}, keyStands + 1, false},
		"asked since it stands again":          {[]time.Duration{1, gap, keyStands + 1, gap}, keyStands + 1, true},
		"renewed again after it had expired":   {[]time.Duration{1, gap, keyStands + 1, keyStands + time.Second}, keyStands + 1, false},
		"stored by a server that is behind":    {[]time.Duration{time.Second, gap, 1}, 1, false},
		"heard of twice, when it is read anew": {[]time.Duration{1, gap, 1}, 1, true},
	} {
		var known tenants
		known.hear(known.ask(), nil)
		for _, at := range c.stands {
			if at == gap {
				known.hear(known.ask(), nil)
			} else {
				known.stands(stored.Add(at))
			}
		}
		questions := known.questions()
		_, ok := known.of("acme", stored.Add(c.plan), questions)
		require.Equal(t, c.counts, ok, name)
		known.hear(known.ask(), []string{"acme"})
		declared, ok := known.of("acme", stored.Add(c.plan), questions)
		require.True(t, ok && declared, "%s: what was asked since the plan is there always counts", name)
	}
}

// TestWhoStoodStillAsksWhichTenantsAreDeclared: its key expired, so nobody waited for it with a declaration, and what it
// knows is of before.
func TestWhoStoodStillAsksWhichTenantsAreDeclared(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	other, err := Setup(t.Context(), natstest.Connect(t, srv), Config{})
	require.NoError(t, err)
	t.Cleanup(other.Close)
	s, err := Open(t.Context(), natstest.Connect(t, srv)) // which nothing asks for but this test
	require.NoError(t, err)
	t.Cleanup(s.Close)
	stopped, goOn := make(chan struct{}), make(chan struct{})
	stop := sync.OnceFunc(func() { close(stopped) })
	m, err := s.Members.Join(t.Context(), "one", func([]Member) { // on the goroutine that renews the key
		stop()
		<-goOn
	})
	require.NoError(t, err)
	t.Cleanup(m.Leave)
	t.Cleanup(func() { close(goOn) })
	<-stopped
	require.NoError(t, s.Archive.learnTenants(t.Context()))
	over, end := context.WithCancel(t.Context())
	end()
	stored, _ := m.Stored()
	bucket, err := s.Archive.BucketOf(over, "acme", stored)
	require.NoError(t, err, "it need not ask")
	require.Empty(t, bucket)

	_, err = other.Archive.Declare(t.Context(), "acme")
	require.NoError(t, err, "nobody waits for who has no key")
	bucket, err = s.Archive.BucketOf(over, "acme", time.Now())
	require.Error(t, err, "it can't say %q without asking", bucket)
	bucket, err = s.Archive.BucketOf(t.Context(), "acme", time.Now())
	require.NoError(t, err)
	require.Equal(t, "blobs-acme", bucket)
}
