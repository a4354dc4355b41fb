package kv_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// TestWhatIsRewrittenIsMissingNowhere: whoever reads a bucket while its keys are written anew, as workers do that come
// and members that renew their keys, knows all of them when told that the reading is complete.
func TestWhatIsRewrittenIsMissingNowhere(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	s := setupOn(t, srv, kv.Config{})
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	tools, err := js.KeyValue(within(t, 2*time.Minute), subjects.ToolsBucket)
	require.NoError(t, err)
	members, err := js.KeyValue(within(t, 2*time.Minute), subjects.MembersBucket)
	require.NoError(t, err)
	const many = 20
	var entries [many][]byte
	for i := range many {
		name := "t" + strconv.Itoa(i)
		register(t, s, name, 1)
		e, err := tools.Get(within(t, 2*time.Minute), subjects.ToolKey(name))
		require.NoError(t, err)
		entries[i] = e.Value()
		_, err = members.Put(within(t, 2*time.Minute), name, []byte("{}"))
		require.NoError(t, err)
	}

	writing, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; writing.Err() == nil; i = (i + 1) % many {
			name := "t" + strconv.Itoa(i)
			_, _ = tools.Put(writing, subjects.ToolKey(name), entries[i]) // fails only once the test is over
			_, _ = members.Put(writing, name, []byte("{}"))
		}
	}()
	defer func() { stop(); <-ended }()
	in, err := kv.Inspect(s.Conn(), kv.Config{})
	require.NoError(t, err)
	for range 200 {
		ctx, cancel := context.WithCancel(within(t, 2*time.Minute))
		seen, complete := map[string]bool{}, 0
		err := s.Registry.WatchTools(ctx, func(t tool.Registered, deleted bool) { seen[t.Name] = !deleted }, func() {
			complete = len(seen)
			cancel()
		})
		require.Error(t, err, "it ended")
		require.Equal(t, many, complete, "%v", seen)
		alive, err := in.Store().Members.Said(within(t, 2*time.Minute))
		require.NoError(t, err)
		require.Len(t, alive, many)
	}
}
