package doctor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/doctor"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// TestTheDoctorMissesTheBucketOfSinks where an agent has objects put into it, and only there.
func TestTheDoctorMissesTheBucketOfSinks(t *testing.T) {
	t.Parallel()
	p := admit(t, kv.Config{Knows: wire.Ours()})
	sends := func(name, sink string) {
		def, err := tool.ParseDefinition([]byte(`{"name":"` + name + `","agent":{"planner":{"tool":"echo","mode":"plan"},"tools":["echo",{"unfold":"f","description":"F.","tools":[{"tool":"echo","as":"deep","artifact":{"type":"T","sink":` + sink + `}}]}]}}`))
		require.NoError(t, err)
		_, err = p.Registry.ApplyTemplate(ctx(t), def)
		require.NoError(t, err)
	}
	well := func() bool {
		return !slices.ContainsFunc(unwell(p.examine(doctor.Options{})), func(s string) bool { return strings.HasPrefix(s, "sinks:") })
	}
	sends("hears", `{"subject":"notes"}`)
	require.True(t, well(), "who listens to a subject needs no bucket")
	sends("puts", `[{"subject":"notes"},{"bucket":"docs"}]`)
	f := finding(t, p.examine(doctor.Options{}), "sinks", "")
	require.Equal(t, doctor.Notable, f.Health)
	require.Contains(t, f.Found, "objects of 1 agent go there: puts")
	require.Equal(t, "nats kv add sinks", f.Fix)
	_, err := p.js.CreateKeyValue(ctx(t), jetstream.KeyValueConfig{Bucket: subjects.SinksBucket})
	require.NoError(t, err)
	require.True(t, well())
}
