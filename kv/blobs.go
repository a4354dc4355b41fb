package kv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// MaxBlob is the largest blob, in bytes (design: plan language, "too_large").
const MaxBlob = 64 << 20

// blobPatience is how long one attempt to write or read a blob may take, and blobRate the least bytes a second that it is
// given time for in addition.
const (
	blobPatience = 10 * time.Second
	blobRate     = 1 << 20
)

// blobTime bounds one attempt at a blob of size bytes.
func blobTime(ctx context.Context, size int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, blobPatience+time.Duration(size/blobRate)*time.Second)
}

// PutBlob stores data under a name that is never used again, in the bucket of the name's tenant where it has one (BucketOf, or
// what a step says), else in that of all others, which is none. It gives the handle that travels in place of the data. Errors:
// TooLarge over 64 MiB, StoreFull, Permission for a program that may not write there, NoConnection, Timeout.
func (s *Store) PutBlob(ctx context.Context, bucket, name string, data []byte) (*outcome.Handle, error) {
	if len(data) > MaxBlob {
		return nil, fault.New(fault.TooLarge, "a value of %d bytes is over the limit of %d", len(data), MaxBlob)
	}
	if !ofTenant(bucket, name) {
		return nil, anothersBucket(bucket, name)
	}
	o := newObject(s, bucket, name, data)
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
func (s *Store) deleteBlob(ctx context.Context, h *outcome.Handle) {
	o := &object{s: s, bucket: h.Bucket, name: h.Name, nuid: h.NUID}
	o.remove(ctx)
}

// ofTenant reports whether a bucket may hold a blob: a blob's name begins with its tenant.
func ofTenant(bucket, name string) bool {
	tenant, _, _ := strings.Cut(name, "/")
	return subjects.OwnBlobs(bucket, tenant)
}

func anothersBucket(bucket, name string) *fault.Error {
	return fault.New(fault.Internal, "the blob %s is said to lie in the bucket %q, which is not its tenant's", wire.Clip(name, 256), wire.Clip(bucket, 80))
}

// Blob reads what a handle stands for. Size and SHA-256 are checked, the size also before reading, so that a handle can't
// make a reader take more than it says. Whether a handle may be used where it came from is the caller's to decide, by its
// name, which also says in which buckets it may lie: a handle that names another is believed by nobody. Errors: NotFound, TooLarge for a handle that says more than 64 MiB, Internal where the bytes are not those that
// it names, NewerVersion, NoConnection, Timeout.
func (s *Store) Blob(ctx context.Context, h *outcome.Handle) ([]byte, error) {
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
		return nil, fault.New(fault.Internal, "the handle of the blob %s names no chunks", wire.Clip(h.Name, 256))
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

// findBlob reads a blob. It is there before its handle is, but a replica that answers may not know it yet.
func (s *Store) findBlob(ctx context.Context, h *outcome.Handle) (data []byte, err error) {
	for wait := (backoff{20 * time.Millisecond, time.Second}); ; {
		err = s.retry(ctx, func(ctx context.Context) (err error) {
			data, err = s.readBlob(ctx, h)
			return err
		})
		if fault.CodeOf(err) != fault.NotFound {
			return data, err
		}
		if s.cfg.Replicas == 1 || wait.pause == wait.max || !s.pause(ctx, wait.next()) {
			return nil, fault.New(fault.NotFound, "no blob %s", h.Name)
		}
	}
}

// readBlob reads the chunks that a handle names, and never asks what the object store says of the name: anybody who may
// write blobs may say something else of it. Only a handle of before names no chunks.
func (s *Store) readBlob(ctx context.Context, h *outcome.Handle) ([]byte, error) {
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

// blobInfo gives what the object store says of a name.
func (s *Store) blobInfo(ctx context.Context, bucket, name string) (*jetstream.ObjectInfo, error) {
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
	if !wire.Known(info.Headers) {
		return nil, wire.Newer("the blob " + name)
	}
	return &info, nil
}

func moreThanItSays(h *outcome.Handle) *fault.Error {
	return fault.New(fault.Internal, "the blob %s has more than the %d bytes that its handle says", h.Name, h.Size)
}
