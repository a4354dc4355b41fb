package kv

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/natstest"
	"github.com/stepjet/stepjet/outcome"
)

// A worker that speaks NATS by itself may store more than its handle says. Whoever reads it takes no more than that.
func TestABlobIsReadNoFurtherThanItsHandleSays(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	s, err := Setup(t.Context(), nc, Config{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	const name = "t/r/1/s/1/forged"
	h, err := s.PutBlob(t.Context(), name, make([]byte, 8<<20))
	require.NoError(t, err)

	js, err := jetstream.New(nc)
	require.NoError(t, err)
	subject := "$O.blobs.M." + base64.URLEncoding.EncodeToString([]byte(name))
	stored, err := s.blobs.GetInfo(t.Context(), name)
	require.NoError(t, err)
	stored.Size = 10
	body, err := json.Marshal(stored)
	require.NoError(t, err)
	_, err = js.PublishMsg(t.Context(), &nats.Msg{Subject: subject, Data: body, Header: nats.Header{"Nats-Rollup": {"sub"}}})
	require.NoError(t, err)

	for _, s.limited = range []bool{false, true} {
		_, err := s.Blob(t.Context(), h)
		require.ErrorContains(t, err, "its handle says", "the meta data contradicts the handle")
		_, err = s.Blob(t.Context(), &outcome.Handle{Name: name, Size: 10, SHA256: h.SHA256})
		require.ErrorContains(t, err, "more than the 10 bytes", "the chunks contradict both")
		require.Equal(t, fault.Internal, fault.CodeOf(err))
	}
}
