package kv

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// shelf is a store, and a client library beside it.
type shelf struct {
	*Store
	t  *testing.T
	js jetstream.JetStream
}

func newShelf(t *testing.T) shelf {
	t.Helper()
	nc := natstest.Connect(t, natstest.Start(t))
	s, err := Setup(t.Context(), nc, Config{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return shelf{s, t, js}
}

func (s shelf) put(name string, data []byte) *outcome.Handle {
	s.t.Helper()
	h, err := s.Archive.PutBlob(s.t.Context(), "", name, data)
	require.NoError(s.t, err)
	return h
}

func (s shelf) publish(subject string, body []byte, h nats.Header) error {
	_, err := s.js.PublishMsg(s.t.Context(), &nats.Msg{Subject: subject, Data: body, Header: h})
	return err
}

// counted returns how many messages of the object store a filter matches.
func (s shelf) counted(filter string) (n uint64) {
	s.t.Helper()
	info, err := s.streamInfo(s.t.Context(), subjects.BlobsStream(""), filter)
	require.NoError(s.t, err)
	for _, of := range info.State.Subjects {
		n += of
	}
	return n
}

// A worker that speaks NATS by itself may store more than its handle says. Whoever reads it takes no more than that.
func TestABlobIsReadNoFurtherThanItsHandleSays(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	const name = "t/r/1/s/1/forged"
	h := s.put(name, make([]byte, 8<<20))
	require.Greater(t, h.Chunks, 1)

	short := *h
	short.Size = 10
	_, err := s.Archive.Blob(t.Context(), &short)
	require.Equal(t, fault.Internal, fault.CodeOf(err), "it names more chunks than bytes: %v", err)
	short.Chunks = 1
	_, err = s.Archive.Blob(t.Context(), &short)
	require.ErrorContains(t, err, "more than the 10 bytes")
	require.Equal(t, fault.Internal, fault.CodeOf(err))
	for _, nuid := range []string{"*", ">", "x.*", "x y", "x.y"} {
		wild := *h
		wild.NUID = nuid
		_, err = s.Archive.Blob(t.Context(), &wild)
		require.ErrorContains(t, err, "names no chunks", nuid)
	}

	before := *h
	before.NUID, before.Chunks = "", 0
	stored, err := s.Archive.blobInfo(t.Context(), "", name)
	require.NoError(t, err)
	stored.Size = 10
	body, err := json.Marshal(stored)
	require.NoError(t, err)
	require.NoError(t, s.publish(subjects.BlobMetaOf("", name), body, nil))
	_, err = s.Archive.Blob(t.Context(), &before)
	require.ErrorContains(t, err, "its handle says", "the description contradicts a handle of before")
}

// What anybody says of a name afterwards, or adds to its chunks, changes nothing for those who have the handle.
func TestAHandleIsReadWhateverIsSaidOfItsName(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	data := bytes.Repeat([]byte("genuine "), 200<<10)
	h := s.put("t/r/1/s/1/x", data)
	other := s.put("t/r/1/s/2/x", []byte("forged"))
	forged, err := s.Archive.blobInfo(t.Context(), "", other.Name)
	require.NoError(t, err)
	forged.Name = h.Name
	body, err := json.Marshal(forged)
	require.NoError(t, err)
	require.NoError(t, s.publish(subjects.BlobMetaOf("", h.Name), body, nil), "the server takes a second description")
	require.NoError(t, s.publish(subjects.BlobChunksOf("", h.NUID), []byte("more"), nil))
	got, err := s.Archive.Blob(t.Context(), h)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
}

// Handles that a Stepjet of before, or a client library, left have neither nuid nor chunks.
func TestAHandleOfBeforeIsRead(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	data := bytes.Repeat([]byte("x"), 700<<10)
	h := s.put("t/r/1/s/1/x", data)
	got, err := s.Archive.Blob(t.Context(), &outcome.Handle{Name: h.Name, Size: h.Size, SHA256: h.SHA256})
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
	stock, err := s.js.ObjectStore(t.Context(), subjects.BlobsBucket)
	require.NoError(t, err)
	got, err = stock.GetBytes(t.Context(), h.Name)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got), "a client library reads it by its name")
	_, err = stock.PutBytes(t.Context(), "other", []byte("x"))
	require.Equal(t, codeRollupDenied, apiCode(err), "%v", err)
	require.Zero(t, s.counted("$O.blobs.M."+"b3RoZXI="))
}

// TestALostAnswerLeavesNoChunkTwice has an object go on as after the answer to each of its chunks was lost.
func TestALostAnswerLeavesNoChunkTwice(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	data := make([]byte, 3*chunkSize+5)
	for i := range data {
		data[i] = byte(i >> 16)
	}
	o := newObject(s.account, "", "t/r/1/s/1/x", data)
	for range 5 {
		sent, chunks, last := o.sent, o.chunks, o.last
		if end := min(sent+chunkSize, len(data)); end > sent {
			_, err := o.chunk(t.Context(), data[sent:end])
			require.NoError(t, err)
		}
		require.Equal(t, []any{sent, chunks, last}, []any{o.sent, o.chunks, o.last}, "it knows nothing of the answer")
		require.NoError(t, o.put(t.Context()))
		require.EqualValues(t, 4, s.counted(subjects.BlobChunksOf("", o.nuid)))
	}
	require.EqualValues(t, 1, s.counted(subjects.BlobMetaOf("", o.name)))
	got, err := s.Archive.Blob(t.Context(), o.handle())
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
}

// TestWhoWritesBetweenTheChunksSpoilsNothing: an object into which somebody else wrote is stored under another nuid.
func TestWhoWritesBetweenTheChunksSpoilsNothing(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	data := bytes.Repeat([]byte("y"), chunkSize+1)
	o := newObject(s.account, "", "t/r/1/s/1/x", data)
	first := o.nuid
	require.NoError(t, s.publish(subjects.BlobChunksOf("", first), []byte("meddled"), nil))
	require.NoError(t, o.put(t.Context()))
	require.NotEqual(t, first, o.nuid)
	got, err := s.Archive.Blob(t.Context(), o.handle())
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
}

// TestWhatAMessageSaysOfItselfIsNotBelieved: the server's headers in a direct get stand behind those of the message.
func TestWhatAMessageSaysOfItselfIsNotBelieved(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	subject := subjects.BucketSubject(subjects.DeadBucket, "t.r.1.s")
	forged := nats.Header{headerSubject: {"$KV.dead.other.r.1.s"}, headerSequence: {"x"}, headerTime: {"never"}, "Nats-Stream": {"KV_tools"}}
	require.NoError(t, s.publish(subject, []byte("x"), forged))
	e, err := s.readDirect(t.Context(), subjects.BucketStream(subjects.DeadBucket), subject)
	require.NoError(t, err)
	require.Equal(t, subject, e.Subject)
	require.NotZero(t, e.Seq)
}

// TestANamedBlobIsStoredOnce: who comes second, or again, writes nothing and learns whether the same lies there.
func TestANamedBlobIsStoredOnce(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	const name = "t/r/1/=part.a.0"
	data := bytes.Repeat([]byte("part "), 300<<10)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			same, err := s.Archive.PutNamed(t.Context(), "", name, data, n%2 == 0)
			assert.NoError(t, err)
			assert.True(t, same)
		})
	}
	all.Wait()
	info, err := s.Archive.blobInfo(t.Context(), "", name)
	require.NoError(t, err)
	require.EqualValues(t, info.Chunks+1, s.counted("$O.blobs.>"), "the chunks of one, and what is said of it")
	got, err := s.Archive.BlobNamed(t.Context(), "", name, MaxBlob)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))

	for _, fresh := range []bool{false, true} {
		same, err := s.Archive.PutNamed(t.Context(), "", name, data, fresh)
		require.NoError(t, err)
		require.True(t, same)
		same, err = s.Archive.PutNamed(t.Context(), "", name, []byte("other"), fresh)
		require.NoError(t, err)
		require.False(t, same)
	}
	require.EqualValues(t, info.Chunks+1, s.counted("$O.blobs.>"), "who came later has taken out what it wrote")
	got, err = s.Archive.BlobNamed(t.Context(), "", name, MaxBlob)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got), "what was there stays")
	_, err = s.Archive.PutNamed(t.Context(), "blobs-other", name, data, false)
	require.Error(t, err)

	// the answer to what is said of a name is lost: its chunks are not taken for another's
	o := newObject(s.account, "", "t/r/1/=part.a.1", data)
	require.NoError(t, o.put(t.Context()))
	require.NoError(t, o.put(t.Context()))
	require.True(t, o.taken)
	info, err = o.described(t.Context())
	require.NoError(t, err)
	require.Equal(t, o.nuid, info.NUID)
}

// TestAFreshBlobIsStoredWithoutALook: who says that nobody will have stored it asks for nothing, and who does not asks once.
func TestAFreshBlobIsStoredWithoutALook(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	asked, err := s.js.Conn().SubscribeSync("$JS.API.DIRECT.GET." + subjects.BlobsStream("") + ".>")
	require.NoError(t, err)
	for looks, fresh := range []bool{true, false} {
		same, err := s.Archive.PutNamed(t.Context(), "", fmt.Sprint("t/r/1/=part.a.", looks), []byte("part"), fresh)
		require.NoError(t, err)
		require.True(t, same)
		require.NoError(t, s.js.Conn().Flush())
		n, _, err := asked.Pending()
		require.NoError(t, err)
		require.Equal(t, looks, n)
	}
}

// TestABlobOfItsBytesIsStoredOnce: who comes second has the handle of who came first, unless that stands for something else.
func TestABlobOfItsBytesIsStoredOnce(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	const name = "t/r/1/round/digest"
	data := bytes.Repeat([]byte("round "), 200<<10)
	first, err := s.Archive.PutOnce(t.Context(), "", name, data)
	require.NoError(t, err)
	stored := s.counted("$O.blobs.>")
	second, err := s.Archive.PutOnce(t.Context(), "", name, data)
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Equal(t, stored, s.counted("$O.blobs.>"), "nothing was written")

	// somebody says of a name that it stands for these bytes, before they are there, or for others
	for _, forged := range []string{"t/r/1/round/a", "t/r/1/round/b"} {
		info, err := s.Archive.blobInfo(t.Context(), "", name)
		require.NoError(t, err)
		if info.Name, info.NUID = forged, "nobody"; strings.HasSuffix(forged, "b") {
			info.Digest = "SHA-256=other"
		}
		body, err := json.Marshal(info)
		require.NoError(t, err)
		require.NoError(t, s.publish(subjects.BlobMetaOf("", forged), body, nil))
		h, err := s.Archive.PutOnce(t.Context(), "", forged, data)
		require.NoError(t, err)
		got, err := s.Archive.Blob(t.Context(), h)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, got))
	}
	_, err = s.Archive.PutOnce(t.Context(), "blobs-other", name, data)
	require.Error(t, err)
}

// TestNoHeaderRemovesWhatOthersStored: every stream but those that orchestrators alone write to refuses a rollup.
func TestNoHeaderRemovesWhatOthersStored(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for _, subject := range []string{
		subjects.PlanRecord(subjects.NewRun("t", "r"), 1), subjects.BucketSubject(subjects.HistoryBucket, "t.r"), subjects.BucketSubject(subjects.DeadBucket, "t.r.1.s"),
		subjects.BucketSubject(subjects.ToolsBucket, "x"), subjects.BlobChunksOf("", "x"), subjects.BlobMetaOf("", "x"), subjects.Submit("t", "other"),
	} {
		for _, kind := range []string{"all", "sub"} {
			err := s.publish(subject, []byte("x"), nats.Header{"Nats-Rollup": {kind}})
			require.Equal(t, codeRollupDenied, apiCode(err), "%s %s: %v", subject, kind, err)
		}
	}
}
