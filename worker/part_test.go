package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// A step reads parts of its own run, and nothing else that lies in the same bucket: its result, a part of another run,
// of another generation, of another tenant.
func TestPartsOfTheOwnRunAreRead(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	w.worker(Config{}, func(worker *Worker) {
		Handle(worker, "plan", func(ctx context.Context, in struct {
			Name string `json:"name"`
		}) (int, error) {
			part, err := ReadPart(ctx, in.Name)
			return len(part), err
		})
	})
	put := func(name string, size int) string {
		_, err := w.store.Archive.PutBlob(w.ctx(), "", name, bytes.Repeat([]byte("x"), size))
		require.NoError(t, err)
		return name
	}
	a := w.attempt("plan", "run-of-"+t.Name(), "s0")
	own := func(round int) string { return subjects.PartName(a.Run, a.Generation, "a/=0/b", round) }
	asked := func(name string) (string, *fault.Error) {
		args, _ := json.Marshal(map[string]string{"name": name})
		r := w.run("plan", string(args))
		return string(r.Body), r.Error
	}
	got, err := asked(put(own(0), 1<<20))
	require.Nil(t, err)
	require.Equal(t, "1048576", got)
	got, err = asked(put(own(1), 0))
	require.Nil(t, err)
	require.Equal(t, "0", got)

	_, err = asked(own(2))
	require.Equal(t, fault.ToolFailed, err.Code)
	require.True(t, err.Retryable)
	require.NotEmpty(t, err.Hint)
	other := subjects.NewRun("other", "r")
	for _, name := range []string{
		put(subjects.PartName(a.Run, a.Generation+1, "a", 0), 1), put(subjects.PartName(other, a.Generation, "a", 0), 1),
		put(subjects.PartName(subjects.NewRun("acme", "r"), a.Generation, "a", 0), 1), put(a.BlobName("result"), 1),
		put(subjects.RunBlobName(a.Run, a.Generation, "part.a.0", "x"), 1), "", own(0) + "/../x",
	} {
		_, err = asked(name)
		require.NotNil(t, err, name)
		require.Equal(t, fault.InvalidArguments, err.Code, name)
		require.Contains(t, err.Message, "is no part of this run")
	}

	// what a name is said to stand for is somebody's word
	for round, said := range map[int]string{
		3: `{"name":"x","bucket":"blobs","nuid":"a.b","size":1,"chunks":1}`, 4: `{"nuid":"abc","size":99999999999,"chunks":1}`,
		5: `{"nuid":"abc","size":3,"chunks":9}`, 6: `no JSON`,
	} {
		_, pub := w.js.PublishMsg(&nats.Msg{Subject: subjects.BlobMetaOf("", own(round)), Data: []byte(said)})
		require.NoError(t, pub)
		_, err = asked(own(round))
		require.Equal(t, fault.ToolTerminal, err.Code, said)
		require.NotEmpty(t, err.Hint)
	}
	_, outside := ReadPart(w.ctx(), own(0))
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(outside))
}
