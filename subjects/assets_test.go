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

func TestABucketIsOneTenants(t *testing.T) {
	t.Parallel()
	require.Equal(t, "OBJ_blobs", subjects.BlobsStream(""))
	require.Equal(t, subjects.BlobsStream(""), subjects.BlobsStream(subjects.BlobsBucket))
	require.Equal(t, "OBJ_blobs-acme", subjects.BlobsStream(subjects.BlobsOf("acme")))
	require.Equal(t, []string{"$O.blobs-acme.C.>", "$O.blobs-acme.M.>"}, subjects.BlobsSubjects("blobs-acme"))
	tenant, ok := subjects.TenantOfBlobs("OBJ_blobs-a-b_C1")
	require.True(t, ok)
	require.Equal(t, "a-b_C1", tenant)
	for _, stream := range []string{"OBJ_blobs", "OBJ_blobs-", "OBJ_blobs-a.b", "OBJ_blobs-é", "OBJ_other-acme", "KV_blobs-acme"} {
		_, ok := subjects.TenantOfBlobs(stream)
		require.False(t, ok, stream)
	}
	for bucket, own := range map[string]bool{"": true, "blobs-acme": true, "blobs": false, "blobs-acm": false, "blobs-acme2": false, "blobs-other": false, "blobs-acme.>": false, "acme": false} {
		require.Equal(t, own, subjects.OwnBlobs(bucket, "acme"), bucket)
	}
	require.False(t, subjects.OwnBlobs("blobs-*", "*"), "no tenant has such a name")
}
