package subjects_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/subjects"
)

func TestNamesOfAssetsParseBack(t *testing.T) {
	t.Parallel()
	for _, shard := range []int{0, 7, 12} {
		got, ok := subjects.ParseStepsStream(subjects.StepsStream(shard))
		require.True(t, ok)
		require.Equal(t, shard, got)
	}
	for _, name := range []string{"STEPS_", "STEPS_x", "STEPS_01", "STEPS_-1", "KV_runs_0"} {
		_, ok := subjects.ParseStepsStream(name)
		require.False(t, ok, name)
	}
	name, ok := subjects.ToolOfDurable(subjects.Durable("crm/get.user"))
	require.True(t, ok)
	require.Equal(t, "crm/get.user", name)
	_, ok = subjects.ToolOfDurable("h=00")
	require.False(t, ok)
	require.Equal(t, "OBJ_blobs", subjects.BlobsStream(""))
}

func TestRegistryKeysParseBack(t *testing.T) {
	t.Parallel()
	name, digest, override, ok := subjects.ParseToolsKey(subjects.ToolKey("crm/get"))
	require.True(t, ok)
	require.Equal(t, []string{"crm/get", "", ""}, []string{name, digest, override})
	name, digest, override, ok = subjects.ParseToolsKey(subjects.DefinitionKey("abc"))
	require.True(t, ok)
	require.Equal(t, []string{"", "abc", ""}, []string{name, digest, override})
	name, digest, override, ok = subjects.ParseToolsKey(subjects.OverrideKey("crm/get"))
	require.True(t, ok)
	require.Equal(t, []string{"", "", "crm/get"}, []string{name, digest, override})
	_, _, _, ok = subjects.ParseToolsKey("a=41")
	require.False(t, ok)
}

func TestAPlanComesOutWhereItsShardTakesIt(t *testing.T) {
	t.Parallel()
	r := subjects.NewRun("acme", "order-42")
	published, arrives := subjects.IntakeProbe(r, 1)
	require.Equal(t, published, arrives)
	published, arrives = subjects.IntakeProbe(r, 8)
	require.NotEqual(t, published, arrives)
	got, ok := subjects.ParseSubmit(arrives)
	require.True(t, ok)
	require.Equal(t, r, got)
}
