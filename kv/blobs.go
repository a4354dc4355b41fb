package kv

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
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

// PutBlob stores data under a name that is never used again, and gives the handle that travels in its place. Errors:
// TooLarge over 64 MiB, StoreFull, NoConnection, Timeout.
func (s *Store) PutBlob(ctx context.Context, name string, data []byte) (*outcome.Handle, error) {
	if len(data) > MaxBlob {
		return nil, fault.New(fault.TooLarge, "a value of %d bytes is over the limit of %d", len(data), MaxBlob)
	}
	var sum []byte
	err := s.retry(ctx, func(ctx context.Context) error {
		ctx, cancel := blobTime(ctx, len(data))
		defer cancel()
		info, err := s.blobs.Put(ctx, jetstream.ObjectMeta{Name: name, Headers: wire.Versioned()}, bytes.NewReader(data))
		if err == nil {
			sum, err = jetstream.DecodeObjectDigest(info.Digest) // what it has counted anyway
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &outcome.Handle{Name: name, Size: int64(len(data)), SHA256: hex.EncodeToString(sum)}, nil
}

// deleteBlob removes a blob that nobody has a handle of. What it can't remove expires.
func (s *Store) deleteBlob(ctx context.Context, name string) {
	if err := s.blobs.Delete(ctx, name); err != nil {
		s.cfg.Logger.Debug("a blob could not be removed; it will expire", "name", name, "error", err)
	}
}

// Blob reads what a handle stands for. Size and SHA-256 are checked, the size also before reading, so that a handle can't
// make a reader take more than it says. Whether a handle may be used where it came from is the caller's to decide, by its
// name. Errors: NotFound, TooLarge for a handle that says more than 64 MiB, Internal where the bytes are not those that
// it names, NewerVersion, NoConnection, Timeout.
func (s *Store) Blob(ctx context.Context, h *outcome.Handle) ([]byte, error) {
	if h == nil || h.Name == "" {
		return nil, fault.New(fault.NotFound, "a handle without a name")
	}
	if h.Size > MaxBlob {
		return nil, fault.New(fault.TooLarge, "the blob %s is said to have %d bytes; the limit is %d", h.Name, h.Size, MaxBlob)
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

func (s *Store) readBlob(ctx context.Context, h *outcome.Handle) ([]byte, error) {
	ctx, cancel := blobTime(ctx, int(h.Size))
	defer cancel()
	info, err := s.blobs.GetInfo(ctx, h.Name)
	if err != nil {
		return nil, err
	}
	if !wire.Known(info.Headers) {
		return nil, wire.Newer("the blob " + h.Name)
	}
	if info.Size > MaxBlob || int64(info.Size) != h.Size {
		return nil, fault.New(fault.Internal, "the blob %s has %d bytes, its handle says %d", h.Name, info.Size, h.Size)
	}
	if s.limited {
		return s.readChunks(ctx, info, h)
	}
	result, err := s.blobs.Get(ctx, h.Name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = result.Close() }() // what was read says whether all is well
	var data bytes.Buffer
	if _, err := data.ReadFrom(io.LimitReader(result, h.Size+1)); err != nil {
		return nil, err
	}
	if int64(data.Len()) > h.Size { // somebody else than a client library wrote it
		return nil, moreThanItSays(h)
	}
	return data.Bytes(), nil
}

func moreThanItSays(h *outcome.Handle) *fault.Error {
	return fault.New(fault.Internal, "the blob %s has more than the %d bytes that its handle says", h.Name, h.Size)
}
