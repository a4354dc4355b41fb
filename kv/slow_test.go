package kv

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/subjects"
)

// Of thousands of creates that are not settled by their first answer only some are read back at a time. All at once, they
// would keep the connection so busy that no answer came in time, and then ask again, for ever.
func TestReadingBackIsBounded(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, func(o *embedded.Options) { o.NoJetStream = true })
	slow := natstest.Connect(t, srv)
	const creates = 8 * maxSlow
	record := subjects.PlanRecord(subjects.NewRun("acme", "r"), 1)
	full := fmt.Appendf(nil, `{"error":{"code":503,"err_code":%d,"description":"maximum messages exceeded"}}`, codeStoreFailed)
	_, err := slow.Subscribe(record+".*", func(m *nats.Msg) { _ = m.Respond(full) })
	require.NoError(t, err)
	var mu sync.Mutex
	asked := map[string]bool{}
	many := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(asked)
	}
	release := make(chan struct{})
	_, err = slow.Subscribe(apiPrefix+"STREAM.MSG.GET.>", func(m *nats.Msg) {
		mu.Lock()
		asked[string(m.Data)] = true
		mu.Unlock()
		go func() {
			<-release
			_ = m.Respond([]byte(`{"message":{"subject":"x","seq":7,"data":"","time":"2026-01-02T03:04:05Z"}}`))
		}()
	})
	require.NoError(t, err)
	require.NoError(t, slow.Flush())

	s, err := newAccount(natstest.Connect(t, srv), Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(s.close)
	done := make(chan error, creates)
	for i := range creates {
		s.create(t.Context(), fmt.Sprintf("%s.%d", record, i), nil, []byte("x"), nil, func(_ Decision, _ uint64, err error) { done <- err })
	}
	require.Eventually(t, func() bool { return many() >= maxSlow && s.pub.inflight() == 0 }, time.Minute, time.Millisecond)
	time.Sleep(200 * time.Millisecond) // for those who would not wait for room
	require.Equal(t, maxSlow, many())
	close(release)
	for range creates {
		require.NoError(t, <-done)
	}
	require.Equal(t, creates, many())
}
