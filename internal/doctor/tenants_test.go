package doctor_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/doctor"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// TestABucketThatARunNeedsIsMissed: what is declared is told by the buckets alone, what is needed by the runs.
func TestABucketThatARunNeedsIsMissed(t *testing.T) {
	t.Parallel()
	s := setupOn(t, natstest.Start(t), kv.Config{})
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	r := subjects.NewRun("acme", "r")
	ack, err := js.Publish(t.Context(), subjects.Submit("acme", "r"), []byte(`{"steps":[]}`))
	require.NoError(t, err)
	start := &nats.Msg{
		Subject: subjects.StartRecord(r, ack.Sequence, 1), Data: []byte(`{"tools":{},"bucket":"blobs-acme"}`),
		Header: nats.Header{subjects.HeaderVersion: {subjects.BucketVersion}},
	}
	_, err = js.PublishMsg(t.Context(), start)
	require.NoError(t, err)
	about := func() (all []doctor.Finding) {
		report, err := doctor.Examine(t.Context(), s.Conn(), doctor.Options{})
		require.NoError(t, err)
		for _, f := range report.Findings {
			if f.Check == "tenant" {
				all = append(all, f)
			}
		}
		return all
	}
	found := about()
	require.Len(t, found, 1)
	require.Equal(t, doctor.Broken, found[0].Health, "%+v", found)
	require.Equal(t, "stepjet tenant add acme", found[0].Fix)
	_, err = s.Archive.Declare(t.Context(), "acme")
	require.NoError(t, err)
	found = about()
	require.Len(t, found, 1)
	require.Equal(t, doctor.Healthy, found[0].Health, "%+v", found)
}
