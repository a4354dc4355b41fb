package kv

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// A client library's object store describes an object by a message that removes all earlier descriptions of the name. So
// whoever may write one object may remove every other. Stepjet's object store takes no such message; its own writes need
// none, since no name is used twice.

// chunkSize is the size of a chunk, where the server's messages may be so large.
const chunkSize = 512 << 10

// object is a value on its way into the object store. Each chunk is written behind the one before, by the condition that
// this is the last on their subject. So a chunk whose answer was lost is neither missing nor there twice, and what a full
// store has refused is continued where it stopped.
type object struct {
	s      *Store
	bucket string // empty: blobs
	name   string
	data   []byte
	sum    [sha256.Size]byte

	nuid   string
	sent   int    // bytes that are stored
	chunks int    // in so many chunks
	last   uint64 // the sequence of the last one
}

func newObject(s *Store, bucket, name string, data []byte) *object {
	return &object{s: s, bucket: bucket, name: name, data: data, sum: sha256.Sum256(data), nuid: freshObject()}
}

// freshObject names the chunks of an object. No other name can be told from it, as with nuid.Next, whose next one somebody
// could write to first.
func freshObject() string { return nuid.New().Next() }

// handle gives what travels in place of the bytes.
func (o *object) handle() *outcome.Handle {
	return &outcome.Handle{
		Name: o.name, Size: int64(len(o.data)), SHA256: hex.EncodeToString(o.sum[:]), NUID: o.nuid, Chunks: o.chunks, Bucket: o.bucket,
	}
}

// errMeddled says that somebody else has written to the subject of an object's chunks.
var errMeddled = errors.New("somebody else writes to the chunks of this object")

// put stores what is not stored yet. It may be called again after an error.
func (o *object) put(ctx context.Context) error {
	size := min(chunkSize, int(o.s.MaxPayload())-Headroom)
	for o.sent < len(o.data) {
		part := o.data[o.sent:min(o.sent+size, len(o.data))]
		seq, err := o.chunk(ctx, part)
		if errors.Is(err, errMeddled) {
			o.s.cfg.Logger.Warn("somebody else writes to the object that is being stored; it is stored anew", "name", o.name)
			o.nuid, o.sent, o.chunks, o.last = freshObject(), 0, 0, 0
			continue // until ctx ends
		}
		if err != nil {
			return err
		}
		o.sent, o.chunks, o.last = o.sent+len(part), o.chunks+1, seq
	}
	return o.describe(ctx)
}

// chunk writes one chunk behind the last, and gives its sequence.
func (o *object) chunk(ctx context.Context, part []byte) (uint64, error) {
	msg := &nats.Msg{Subject: subjects.BlobChunksOf(o.bucket, o.nuid), Header: wire.Versioned(), Data: part}
	ack, err := o.publish(ctx, msg, jetstream.WithExpectLastSequencePerSubject(o.last))
	if err == nil {
		return ack.Sequence, nil
	}
	if apiCode(err) != codeWrongLastSequence {
		return 0, err
	}
	// An answer was lost, if it is not somebody else's.
	for wait := (backoff{20 * time.Millisecond, time.Second}); ; {
		e, err := o.s.readDirect(ctx, subjects.BlobsStream(o.bucket), msg.Subject)
		switch {
		case err == nil && e.Seq > o.last && bytes.Equal(e.Data, part):
			return e.Seq, nil
		case err == nil && e.Seq > o.last:
			return 0, errMeddled
		case err != nil && apiCode(err) != codeMessageNotFound:
			return 0, err
		}
		if !o.s.pause(ctx, wait.next()) { // a replica that lags behind
			return 0, context.Cause(ctx)
		}
	}
}

func (o *object) publish(ctx context.Context, msg *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return o.s.put(ctx, msg, opts...)
}

// describe says what the object is, in the form of client libraries, for those who look it up by its name. Stepjet itself
// reads by the handle.
func (o *object) describe(ctx context.Context) error {
	info := jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{Name: o.name, Headers: wire.Versioned(), Opts: &jetstream.ObjectMetaOptions{ChunkSize: chunkSize}},
		Bucket:     cmp.Or(o.bucket, subjects.BlobsBucket), NUID: o.nuid, Size: uint64(len(o.data)), Chunks: uint32(o.chunks),
		Digest: "SHA-256=" + base64.URLEncoding.EncodeToString(o.sum[:]),
	}
	body, err := json.Marshal(info)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "describing a blob")
	}
	msg := &nats.Msg{Subject: subjects.BlobMetaOf(o.bucket, o.name), Header: wire.Versioned(), Data: body}
	_, err = o.publish(ctx, msg, jetstream.WithExpectLastSequencePerSubject(0))
	if apiCode(err) == codeWrongLastSequence {
		return nil // by an earlier try; or somebody else took the name, by which no handle is read
	}
	return err
}

// remove takes out what was stored of an object that nobody has a handle of. Orchestrators may; what a worker leaves
// expires.
func (o *object) remove(ctx context.Context) {
	if o.s.limited || o.nuid == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, subject := range []string{subjects.BlobMetaOf(o.bucket, o.name), subjects.BlobChunksOf(o.bucket, o.nuid)} {
		err := o.s.purge(ctx, subjects.BlobsStream(o.bucket), purgeRequest{Subject: subject})
		if err != nil {
			o.s.cfg.Logger.Debug("a blob could not be removed; it will expire", "name", o.name, "error", err)
			return
		}
	}
}
