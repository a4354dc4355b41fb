package acl_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// TestSinksAreOfTheirTenantAlone: an orchestrator sends objects to a stream, to the bucket and to who listens. Who may look at the
// tenant's runs hears and reads them, and nobody of another tenant.
func TestSinksAreOfTheirTenantAlone(t *testing.T) {
	t.Parallel()
	inEach(t, map[string]shape{"accounts": {witness: true}, "one account": {oneAccount: true, witness: true}}, func(t *testing.T, s *system) {
		s.orchestrate(1)
		js, err := jetstream.New(s.witness())
		require.NoError(t, err)
		_, err = js.CreateKeyValue(s.ctx(), jetstream.KeyValueConfig{Bucket: subjects.SinksBucket})
		require.NoError(t, err)
		_, err = js.CreateStream(s.ctx(), jetstream.StreamConfig{Name: "KEPT", Subjects: []string{subjects.SinkSubject("acme", "kept")}})
		require.NoError(t, err)
		store, err := kv.Open(s.ctx(), s.trespass("orchestrator"))
		require.NoError(t, err)
		defer store.Close()
		heard := map[string]chan *nats.Msg{}
		readers := map[string]*nats.Conn{}
		for _, user := range []string{"viewer-acme", "agent-acme", "approver-acme", "operator-acme", "agent-other"} {
			tenant := user[len(user)-5:]
			if tenant == "-acme" {
				tenant = "acme"
			}
			nc, all := s.trespass(user), make(chan *nats.Msg, 8)
			_, err := nc.ChanSubscribe(subjects.TenantSinksFilter(tenant), all)
			require.NoError(t, err)
			require.NoError(t, nc.Flush())
			heard[user], readers[user] = all, nc
		}
		asDoctor, err := jetstream.New(s.trespass("doctor"))
		require.NoError(t, err)
		_, err = asDoctor.Stream(s.ctx(), subjects.BucketStream(subjects.SinksBucket))
		require.NoError(t, err, "the doctor looks whether it is there")
		send := func(to string) bool {
			h, body := (&wire.Sunk{Run: "r", Tenant: "acme", Value: []byte("1")}).Message(to)
			kept, err := store.Archive.Send(s.ctx(), to, h, body)
			require.NoError(t, err)
			return kept
		}
		key := subjects.BucketSubject(subjects.SinksBucket, subjects.SinkKey(ours, 1, "docs", "a/=0/b"))
		require.True(t, send(subjects.SinkSubject("acme", "kept")))
		require.False(t, send(subjects.SinkSubject("acme", "heard")))
		require.True(t, send(key))
		require.True(t, send(key), "what lies there stays")
		for user, all := range heard {
			if user == "agent-other" {
				require.Empty(t, all)
				continue
			}
			for range 2 {
				select {
				case <-all:
				case <-time.After(time.Minute):
					require.FailNow(t, "it heard nothing", user)
				}
			}
			m, err := readers[user].Request(subjects.DirectGet(subjects.BucketStream(subjects.SinksBucket), key), nil, time.Minute)
			require.NoError(t, err)
			require.Contains(t, string(m.Data), `"value":1`, user)
		}
	})
}
