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

// TestAnEntryOfANewerVersionIsLeftAlone: it is noted, its consumer is nobody's orphan, and mending does not touch it.
func TestAnEntryOfANewerVersionIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := setupOn(t, natstest.Start(t), kv.Config{})
	tool := register(t, s, "get_weather", 8)
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	key := subjects.ToolKey(tool.Name)
	subject := subjects.BucketSubject(subjects.ToolsBucket, key)
	newer := []byte(`{"entirely":"different"}`)
	_, err = js.PublishMsg(ctx(t), &nats.Msg{Subject: subject, Header: nats.Header{subjects.HeaderVersion: {"2"}}, Data: newer})
	require.NoError(t, err)

	report, err := doctor.Examine(ctx(t), s.Conn(), doctor.Options{Mend: true})
	require.NoError(t, err)
	noted := 0
	for _, f := range report.Findings {
		if f.About == key {
			require.Equal(t, doctor.Notable, f.Health, "%+v", f)
			noted++
		}
		if f.Check == "orphan-consumer" {
			require.Equal(t, doctor.Healthy, f.Health, "%+v", f)
		}
	}
	require.Equal(t, 1, noted)
	e, err := s.Ledger.Read(ctx(t), subject)
	require.NoError(t, err)
	require.Equal(t, string(newer), string(e.Data), "nor does the doctor touch it")
}
