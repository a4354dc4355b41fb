package wire_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// Calling a dead letter again reads its arguments and writes a plan of its own; the letter stays or goes as a whole.
func TestDeadLetterForm(t *testing.T) {
	t.Parallel()
	d := &outcome.DeadLetter{
		Run: "order #42", Tenant: "acme", Generation: 7, Step: "b=0", Tool: "get_weather", Attempts: 3, Error: fault.New(fault.Timeout, "late"),
		Key: "k", Approval: true, Worker: "w1", Failed: at, Arguments: []byte(`{"x": 1.0}`),
	}
	h, body := wire.DeadLetterMessage(d)
	golden(t, "dead_letter", h, body, wiretest.Ignored, func(m nats.Msg) nats.Msg {
		read, err := wire.ParseDeadLetter(m.Header, m.Data, "b=0")
		require.NoError(t, err)
		require.Equal(t, d, read)
		h, body := wire.DeadLetterMessage(read)
		return nats.Msg{Header: h, Data: body}
	})
	d.Arguments, d.Blob = nil, &outcome.Handle{Name: "n", Size: 300_000, SHA256: "cd", Bucket: "blobs-acme"}
	h, body = wire.DeadLetterMessage(d)
	require.Equal(t, []string{subjects.BucketVersion}, h[subjects.HeaderVersion], "who does not know of buckets leaves it alone")
	read, err := wire.ParseDeadLetter(h, body, "b=0")
	require.NoError(t, err)
	require.Equal(t, d, read)

	_, err = wire.ParseDeadLetter(nats.Header{subjects.HeaderVersion: {"2"}}, body, "b=0")
	require.Equal(t, fault.NewerVersion, fault.CodeOf(err))
	_, err = wire.ParseDeadLetter(nil, []byte("x"), "b=0")
	require.Equal(t, fault.Internal, fault.CodeOf(err))
	none, err := wire.ParseDeadLetter(nil, []byte("{}"), "b=0")
	require.NoError(t, err)
	require.NotNil(t, none.Error)
}
