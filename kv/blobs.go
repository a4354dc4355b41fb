package kv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// MaxBlob is the largest blob, in bytes (design: plan language, "too_large").
const MaxBlob = 64 << 20

// PutBlob stores data under a name that is never used again, and gives the handle that travels in its place. Errors:
// TooLarge over 64 MiB, StoreFull, NoConnection, Timeout.
func (s *Store) PutBlob(ctx context.Context, name string, data []byte) (*outcome.Handle, error) {
	if len(data) > MaxBlob {
		return nil, fault.New(fault.TooLarge, "a value of %d bytes is over the limit of %d", len(data), MaxBlob)
	}
	err := s.retry(ctx, func(ctx context.Context) error {
		_, err := s.blobs.PutBytes(ctx, name, data)
		return err
	})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	return &outcome.Handle{Name: name, Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}, nil
}

// Blob reads what a handle stands for, and checks its size and digest before and after. Errors: NotFound, TooLarge for a
// handle that says more than 64 MiB, Internal where the bytes are not those that the handle names, NoConnection, Timeout.
func (s *Store) Blob(ctx context.Context, h *outcome.Handle) ([]byte, error) {
	if h.Size > MaxBlob {
		return nil, fault.New(fault.TooLarge, "the blob %s is said to have %d bytes; the limit is %d", h.Name, h.Size, MaxBlob)
	}
	var data []byte
	err := s.retry(ctx, func(ctx context.Context) error {
		info, err := s.blobs.GetInfo(ctx, h.Name) // before the bytes: a handle must not make us read gigabytes
		if err != nil {
			return err
		}
		if int64(info.Size) != h.Size {
			return fault.New(fault.Internal, "the blob %s has %d bytes, its handle says %d", h.Name, info.Size, h.Size)
		}
		data, err = s.blobs.GetBytes(ctx, h.Name)
		return err
	})
	switch {
	case errors.Is(err, jetstream.ErrObjectNotFound):
		return nil, fault.New(fault.NotFound, "no blob %s", h.Name)
	case err != nil:
		return nil, err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != h.SHA256 {
		return nil, fault.New(fault.Internal, "the blob %s has another SHA-256 than its handle", h.Name)
	}
	return data, nil
}
