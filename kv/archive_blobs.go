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
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// MaxBlob is the largest blob, in bytes (design: plan language, "too_large").
const MaxBlob = 64 << 20

// blobPatience is how long one attempt to write or read a blob may take, and blobRate the least bytes a second that
// it is given time for in addition.
const (
	blobPatience = 10 * time.Second
	blobRate     = 1 << 20
)

// blobTime bounds one attempt at a blob of size bytes.
func blobTime(ctx context.Context, size int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, blobPatience+time.Duration(size/blobRate)*time.Second)
}

// PutBlob stores data under a name that is never used again, in the bucket of the name's tenant where it has one
// (BucketOf, or what a step says), else in that of all others, which is none. It returns the handle that travels in
// place of the data. Errors: TooLarge over 64 MiB, StoreFull, Permission for a program that may not write there,
// NoConnection, Timeout.
func (s *Archive) PutBlob(ctx context.Context, bucket, name string, data []byte) (*outcome.Handle, error) {
	if len(data) > MaxBlob {
		return nil, fault.New(fault.TooLarge, "a value of %d bytes is over the limit of %d", len(data), MaxBlob)
	}
	if !ofTenant(bucket, name) {
		return nil, anothersBucket(bucket, name)
	}
	o := newObject(s.account, bucket, name, data)
	err := s.retry(ctx, func(ctx context.Context) error {
		ctx, cancel := blobTime(ctx, len(data))
		defer cancel()
		return o.put(ctx)
	})
	if err != nil {
		o.remove(context.WithoutCancel(ctx))
		return nil, err
	}
	return o.handle(), nil
}

// deleteBlob removes a blob that nobody has a handle of. What it can't remove expires.
func (s *Archive) deleteBlob(ctx context.Context, h *outcome.Handle) {
	o := &object{s: s.account, bucket: h.Bucket, name: h.Name, nuid: h.NUID}
	o.remove(ctx)
}

// ofTenant reports whether a bucket may hold a blob: a blob's name begins with its tenant.
func ofTenant(bucket, name string) bool {
	tenant, _, _ := strings.Cut(name, "/")
	return subjects.OwnBlobs(bucket, tenant)
}

func anothersBucket(bucket, name string) *fault.Error {
	return fault.New(fault.Internal, "the blob %s is said to lie in the bucket %q, which is not its tenant's", text.Clip(name, 256), text.Clip(bucket, 80))
}

// Blob reads what a handle stands for. Size and SHA-256 are checked, the size also before reading, so that a handle
// can't make a reader take more than it says. Whether a handle may be used where it came from is the caller's to
// decide, by its name, which also says in which buckets it may lie: a handle that names another is believed by
// nobody. Errors: NotFound, TooLarge for a handle that says more than 64 MiB, Internal where the bytes are not those
// that it names, NewerVersion, NoConnection, Timeout.
func (s *Archive) Blob(ctx context.Context, h *outcome.Handle) ([]byte, error) {
	if h == nil || h.Name == "" {
		return nil, fault.New(fault.NotFound, "a handle without a name")
	}
	if h.Size > MaxBlob {
		return nil, fault.New(fault.TooLarge, "the blob %s is said to have %d bytes; the limit is %d", h.Name, h.Size, MaxBlob)
	}
	if !ofTenant(h.Bucket, h.Name) {
		return nil, anothersBucket(h.Bucket, h.Name)
	}
	if h.NUID != "" && !subjects.ValidObject(h.NUID) || h.Chunks < 0 || int64(h.Chunks) > h.Size {
		return nil, fault.New(fault.Internal, "the handle of the blob %s names no chunks", text.Clip(h.Name, 256))
	}
	data, err := s.findBlob(ctx, h)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != h.SHA256 {
		return nil, fault.New(fault.Internal, "the blob %s has another SHA-256 than its handle", h.Name)
	}
	return data, nil
}

// BlobNamed reads what lies under a name, for who knows its digest and no handle of it: what the object store says of a
// name is no more than somebody's word, so the caller holds the bytes against the digest. most bounds the bytes. Errors
// as those of Blob.
func (s *Archive) BlobNamed(ctx context.Context, bucket, name string, most int64) (data []byte, err error) {
	if !ofTenant(bucket, name) {
		return nil, anothersBucket(bucket, name)
	}
	err = s.patiently(ctx, name, func(ctx context.Context) error {
		ctx, cancel := blobTime(ctx, int(most))
		defer cancel()
		info, err := s.blobInfo(ctx, bucket, name)
		if err != nil {
			return err
		}
		h := &outcome.Handle{Name: name, Bucket: bucket, Size: int64(min(info.Size, math.MaxInt64))}
		switch {
		case h.Size > most:
			return fault.New(fault.TooLarge, "the blob %s has %d bytes; the limit is %d", name, info.Size, most)
		case !subjects.ValidObject(info.NUID) || int64(info.Chunks) > h.Size:
			return fault.New(fault.Internal, "the object store says of the blob %s what can't be", name)
		}
		data, err = s.readChunks(ctx, info.NUID, info.Chunks, h)
		return err
	})
	return data, err
}

// PutNamed stores data under a name that whoever stores it would give it, and that others look it up by: once, so that
// who comes second writes nothing, or takes out again what it wrote. fresh says that nobody will have stored it, most likely: then
// it is written without a look at what is there, which is a question and its answer less. same is false where something else
// lies there already, which stays: whoever named that one by its digest finds it. Errors as those of PutBlob.
func (s *Archive) PutNamed(ctx context.Context, bucket, name string, data []byte, fresh bool) (same bool, err error) {
	if len(data) > MaxBlob {
		return false, fault.New(fault.TooLarge, "a value of %d bytes is over the limit of %d", len(data), MaxBlob)
	}
	if !ofTenant(bucket, name) {
		return false, anothersBucket(bucket, name)
	}
	o := newObject(s.account, bucket, name, data)
	var info *jetstream.ObjectInfo
	if !fresh {
		if info, err = o.described(ctx); err != nil || info != nil {
			return o.isOf(info), err
		}
	}
	err = s.retry(ctx, func(ctx context.Context) error {
		ctx, cancel := blobTime(ctx, len(data))
		defer cancel()
		return o.put(ctx)
	})
	switch {
	case err != nil && fresh: // a store that is full takes nothing of what is there already
		if info, bad := o.described(ctx); bad == nil && info != nil {
			return o.isOf(info), nil
		}
		return false, err
	case err != nil || !o.taken: // after an error, the name may stand for these chunks: they stay
		return err == nil, err
	}
	for wait := backoff.Between(20*time.Millisecond, time.Second); ; {
		if info, err = o.described(ctx); err != nil || info != nil {
			break
		}
		if !s.pause(ctx, wait.Next()) { // a replica that lags behind
			return false, context.Cause(ctx)
		}
	}
	if err == nil && info.NUID != o.nuid { // else it was an answer that was lost
		o.removeFrom(context.WithoutCancel(ctx), subjects.BlobChunksOf(bucket, o.nuid))
	}
	return o.isOf(info), err
}

// PutOnce stores data under a name that is made of its bytes, and returns its handle. Who comes second writes nothing, and has
// the handle of who came first, as long as that stands for these bytes: a name is no more than somebody's word. Errors as
// those of PutBlob.
func (s *Archive) PutOnce(ctx context.Context, bucket, name string, data []byte) (*outcome.Handle, error) {
	if !ofTenant(bucket, name) {
		return nil, anothersBucket(bucket, name)
	}
	o := newObject(s.account, bucket, name, data)
	info, err := o.described(ctx)
	switch {
	case err != nil:
		return nil, err
	case o.isOf(info) && int64(info.Chunks) <= int64(len(data)):
		first := o.handle()
		first.NUID, first.Chunks = info.NUID, int(info.Chunks)
		if _, err := s.Blob(ctx, first); err == nil {
			return first, nil
		}
	}
	return s.PutBlob(ctx, bucket, name, data)
}

// described returns what is said of an object's name; nil where nothing is.
func (o *object) described(ctx context.Context) (info *jetstream.ObjectInfo, err error) {
	err = o.s.retry(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		info, err = o.info(ctx)
		return err
	})
	switch fault.CodeOf(err) {
	case fault.NotFound:
		return nil, nil
	case fault.Internal, fault.NewerVersion: // nothing that could be read
		return &jetstream.ObjectInfo{}, nil
	}
	return info, err
}

// isOf reports whether what is said of a name says that it has these bytes. Whoever reads them holds them against the
// digest.
func (o *object) isOf(info *jetstream.ObjectInfo) bool {
	return info != nil && info.Digest == o.digest() && info.Size == uint64(len(o.data))
}

// findBlob reads a blob. It is there before its handle is, but a replica that answers may not know it yet.
func (s *Archive) findBlob(ctx context.Context, h *outcome.Handle) (data []byte, err error) {
	err = s.patiently(ctx, h.Name, func(ctx context.Context) (err error) {
		data, err = s.readBlob(ctx, h)
		return err
	})
	return data, err
}

// patiently reads a blob until a replica knows it, where there are several.
func (s *Archive) patiently(ctx context.Context, name string, read func(context.Context) error) error {
	for wait := backoff.Between(20*time.Millisecond, time.Second); ; {
		err := s.retry(ctx, read)
		if fault.CodeOf(err) != fault.NotFound {
			return err
		}
		if s.cfg.Replicas == 1 || wait.Spent() || !s.pause(ctx, wait.Next()) {
			return fault.New(fault.NotFound, "no blob %s", name)
		}
	}
}

// readBlob reads the chunks that a handle names, and never asks what the object store says of the name: anybody who may
// write blobs may say something else of it. Only a handle of before names no chunks.
func (s *Archive) readBlob(ctx context.Context, h *outcome.Handle) ([]byte, error) {
	ctx, cancel := blobTime(ctx, int(h.Size))
	defer cancel()
	if h.NUID != "" {
		return s.readChunks(ctx, h.NUID, uint32(h.Chunks), h)
	}
	info, err := s.blobInfo(ctx, h.Bucket, h.Name)
	if err != nil {
		return nil, err
	}
	if info.Size > MaxBlob || int64(info.Size) != h.Size || !subjects.ValidObject(info.NUID) || uint64(info.Chunks) > info.Size {
		return nil, fault.New(fault.Internal, "the blob %s has %d bytes, its handle says %d", h.Name, info.Size, h.Size)
	}
	return s.readChunks(ctx, info.NUID, info.Chunks, h)
}

// blobInfo returns what the object store says of a name.
func (s *Archive) blobInfo(ctx context.Context, bucket, name string) (*jetstream.ObjectInfo, error) {
	return (&object{s: s.account, bucket: bucket, name: name}).info(ctx)
}

func (o *object) info(ctx context.Context) (*jetstream.ObjectInfo, error) {
	s, bucket, name := o.s, o.bucket, o.name
	e, err := s.readDirect(ctx, subjects.BlobsStream(bucket), subjects.BlobMetaOf(bucket, name))
	if err != nil {
		return nil, err
	}
	var info jetstream.ObjectInfo
	if err := json.Unmarshal(e.Data, &info); err != nil {
		return nil, fault.New(fault.Internal, "what the object store says of the blob %s can't be read", name)
	}
	if info.Deleted {
		return nil, jetstream.ErrObjectNotFound
	}
	if !wire.KindBlob.Known(info.Headers) {
		return nil, wire.Newer("the blob " + name)
	}
	return &info, nil
}

func moreThanItSays(h *outcome.Handle) *fault.Error {
	return fault.New(fault.Internal, "the blob %s has more than the %d bytes that its handle says", h.Name, h.Size)
}

// chunks reads a blob: by direct gets of many messages, which need no consumer (account_read.go). Of what lies on the
// chunks' subject the first are the object's own; whoever may write blobs can add others only behind them.
type chunks struct {
	s       *account
	sub     *nats.Subscription
	subject string // of the chunks
	from    uint64 // sequence to go on from
	left    uint32 // chunks to come
	data    []byte
	handle  *outcome.Handle
}

func (s *Archive) readChunks(ctx context.Context, nuid string, n uint32, h *outcome.Handle) ([]byte, error) {
	sub, err := s.nc.SubscribeSync(s.nc.NewInbox())
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }() // a closed connection has none left to end
	c := &chunks{s: s.account, sub: sub, subject: subjects.BlobChunksOf(h.Bucket, nuid), from: 1, left: n, handle: h}
	c.data = make([]byte, 0, h.Size)
	for c.left > 0 { // the server sends as much as it likes of what was asked for
		before := c.left
		if err := s.guarded(ctx, subjects.DirectRead(subjects.BlobsStream(h.Bucket)), c.more); err != nil {
			return nil, err
		}
		if c.left == before {
			return nil, jetstream.ErrObjectNotFound // not all of it; perhaps a replica that lags behind
		}
	}
	return c.data, nil
}

// more asks once and takes what comes.
func (c *chunks) more(ctx context.Context) error {
	body := `{"seq":` + strconv.FormatUint(c.from, 10) + `,"next_by_subj":` + strconv.Quote(c.subject) + `,"batch":` + strconv.Itoa(int(c.left)) + `}`
	if err := c.s.nc.PublishRequest(subjects.DirectRead(subjects.BlobsStream(c.handle.Bucket)), c.sub.Subject, []byte(body)); err != nil {
		return err
	}
	for {
		m, err := c.sub.NextMsgWithContext(ctx)
		if err != nil {
			return err
		}
		switch status(m) {
		case "":
		case "204": // the end of what it sends
			return nil
		case "404":
			return jetstream.ErrObjectNotFound
		case "503":
			return nats.ErrNoResponders
		default:
			return errStored
		}
		e, err := parseDirect(m)
		if err != nil {
			return err
		}
		if !wire.KindBlob.Known(e.Header) {
			return wire.Newer("the blob " + c.handle.Name)
		}
		if int64(len(c.data)+len(e.Data)) > c.handle.Size {
			return moreThanItSays(c.handle)
		}
		c.data, c.from, c.left = append(c.data, e.Data...), e.Seq+1, c.left-1
	}
}

// A client library's object store describes an object by a message that removes all earlier descriptions of the name.
// So whoever may write one object may remove every other. Stepjet's object store takes no such message; its own
// writes need none, since no name is used twice.

// chunkSize is the size of a chunk, where the server's messages may be so large.
const chunkSize = 512 << 10

// object is a value on its way into the object store. Each chunk is written behind the one before, by the condition
// that this is the last on their subject. So a chunk whose answer was lost is neither missing nor there twice, and
// what a full store has refused is continued where it stopped.
type object struct {
	s      *account
	bucket string // empty: blobs
	name   string
	data   []byte
	sum    [sha256.Size]byte

	nuid   string
	sent   int    // bytes that are stored
	chunks int    // in so many chunks
	last   uint64 // the sequence of the last one
	taken  bool   // its name stood for something before, perhaps by an earlier try
}

func newObject(s *account, bucket, name string, data []byte) *object {
	return &object{s: s, bucket: bucket, name: name, data: data, sum: sha256.Sum256(data), nuid: freshObject()}
}

// freshObject names the chunks of an object. No other name can be told from it, as with nuid.Next, whose next one
// somebody could write to first.
func freshObject() string { return nuid.New().Next() }

// digest is that of the bytes, as the object store writes it.
func (o *object) digest() string { return "SHA-256=" + base64.URLEncoding.EncodeToString(o.sum[:]) }

// handle returns what travels in place of the bytes.
func (o *object) handle() *outcome.Handle {
	return &outcome.Handle{
		Name: o.name, Size: int64(len(o.data)), SHA256: hex.EncodeToString(o.sum[:]), NUID: o.nuid, Chunks: o.chunks, Bucket: o.bucket,
	}
}

// errForeignChunks says that somebody else has written to the subject of an object's chunks.
var errForeignChunks = errors.New("somebody else writes to the chunks of this object")

// put stores what is not stored yet. It may be called again after an error.
func (o *object) put(ctx context.Context) error {
	size := min(chunkSize, int(o.s.nc.MaxPayload())-Headroom)
	for o.sent < len(o.data) {
		part := o.data[o.sent:min(o.sent+size, len(o.data))]
		seq, err := o.chunk(ctx, part)
		if errors.Is(err, errForeignChunks) {
			o.s.cfg.Logger.Warn("somebody else writes to the object that is being stored; it is stored anew", "blob", o.name)
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

// chunk writes one chunk behind the last, and returns its sequence.
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
	for wait := backoff.Between(20*time.Millisecond, time.Second); ; {
		e, err := o.s.readDirect(ctx, subjects.BlobsStream(o.bucket), msg.Subject)
		switch {
		case err == nil && e.Seq > o.last && bytes.Equal(e.Data, part):
			return e.Seq, nil
		case err == nil && e.Seq > o.last:
			return 0, errForeignChunks
		case err != nil && apiCode(err) != codeMessageNotFound:
			return 0, err
		}
		if !o.s.pause(ctx, wait.Next()) { // a replica that lags behind
			return 0, context.Cause(ctx)
		}
	}
}

func (o *object) publish(ctx context.Context, msg *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return o.s.put(ctx, msg, opts...)
}

// describe says what the object is, in the form of client libraries, for those who look it up by its name. Stepjet
// itself reads by the handle.
func (o *object) describe(ctx context.Context) error {
	info := jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{Name: o.name, Headers: wire.Versioned(), Opts: &jetstream.ObjectMetaOptions{ChunkSize: chunkSize}},
		Bucket:     cmp.Or(o.bucket, subjects.BlobsBucket), NUID: o.nuid, Size: uint64(len(o.data)), Chunks: uint32(o.chunks),
		Digest: o.digest(),
	}
	body, err := json.Marshal(info)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "describing a blob")
	}
	msg := &nats.Msg{Subject: subjects.BlobMetaOf(o.bucket, o.name), Header: wire.Versioned(), Data: body}
	_, err = o.publish(ctx, msg, jetstream.WithExpectLastSequencePerSubject(0))
	if apiCode(err) == codeWrongLastSequence {
		o.taken = true
		return nil // by an earlier try; or somebody else took the name, by which no handle is read
	}
	return err
}

// remove takes out what was stored of an object that nobody has a handle of. Orchestrators may; what a worker leaves
// expires.
func (o *object) remove(ctx context.Context) {
	if o.nuid != "" {
		o.removeFrom(ctx, subjects.BlobMetaOf(o.bucket, o.name), subjects.BlobChunksOf(o.bucket, o.nuid))
	}
}

func (o *object) removeFrom(ctx context.Context, all ...string) {
	if o.s.limited {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, subject := range all {
		err := o.s.purge(ctx, subjects.BlobsStream(o.bucket), purgeRequest{Subject: subject})
		if err != nil {
			o.s.cfg.Logger.Debug("a blob could not be removed; it will expire", "blob", o.name, "error", err)
			return
		}
	}
}
