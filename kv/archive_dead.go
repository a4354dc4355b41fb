package kv

import (
	"context"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// deadSubject returns the place of a letter in its run.
func deadSubject(r subjects.Run, d *outcome.DeadLetter) string {
	return subjects.BucketSubject(subjects.DeadBucket, subjects.DeadKey(r, d.Generation, d.Step))
}

// CreateDead keeps a dead letter, once: created is false where there is one of this step already, or was one that
// somebody removed, so that it may be called again after a crash. Arguments over 256 KiB, or that the server takes in
// no message, go to a blob, in the bucket of the run's large values; details of the error are given up where even
// that is too large. Errors as those of Create and PutBlob.
func (s *Archive) CreateDead(ctx context.Context, r subjects.Run, bucket string, d *outcome.DeadLetter) (created bool, err error) {
	letter := *d
	limit := int(s.nc.MaxPayload()) - Headroom
	h, body := wire.DeadLetterMessage(&letter)
	if len(letter.Arguments) > wire.InlineLimit || len(body) > limit && len(letter.Arguments) > 0 {
		name := subjects.RunBlobName(r, d.Generation, "dead", nuid.Next())
		if letter.Blob, err = s.PutBlob(ctx, bucket, name, letter.Arguments); err != nil {
			return false, err
		}
		letter.Arguments = nil
		h, body = wire.DeadLetterMessage(&letter)
	}
	if len(body) > limit && letter.Error != nil {
		short := *letter.Error
		short.Details, short.Message, short.Hint = nil, text.Clip(short.Message, 4096), text.Clip(short.Hint, 4096)
		letter.Error = &short
		h, body = wire.DeadLetterMessage(&letter)
	}
	decision, _, err := s.createOnce(ctx, deadSubject(r, &letter), h, body, nil)
	if decision == Decided && letter.Blob != d.Blob {
		s.deleteBlob(ctx, letter.Blob) // nobody will ever read it
	}
	return decision == Written, err
}

// Dead returns a step's dead letter; of the run's last generation that has one, where generation is 0. Errors:
// NotFound, also for one that was removed, NewerVersion, and those of Read.
func (s *Archive) Dead(ctx context.Context, r subjects.Run, generation uint64, step string) (*outcome.DeadLetter, error) {
	key := subjects.DeadKey(r, generation, step)
	if generation == 0 {
		key = subjects.DeadStepFilter(r, step)
	}
	e, err := s.read(ctx, subjects.BucketSubject(subjects.DeadBucket, key))
	if err == nil && operation(e.Header) != "" || fault.CodeOf(err) == fault.NotFound {
		return nil, fault.New(fault.NotFound, "the step %s of run %q has no dead letter", step, r.Plain())
	}
	if err != nil {
		return nil, err
	}
	return parseDead(*e)
}

func parseDead(e Entry) (*outcome.DeadLetter, error) {
	return wire.ParseDeadLetter(e.Header, e.Data, strings.TrimPrefix(e.Subject, deadPrefix))
}

// RemoveDead removes a step's dead letter. It does not come back, whoever may create it again. Errors: NotFound, and
// those of Read.
func (s *Archive) RemoveDead(ctx context.Context, r subjects.Run, generation uint64, step string) error {
	if _, err := s.Dead(ctx, r, generation, step); err != nil {
		return err
	}
	subject := subjects.BucketSubject(subjects.DeadBucket, subjects.DeadKey(r, generation, step))
	return s.retry(ctx, func(ctx context.Context) error {
		// A marker in its place, as KV clients write it: it expires as the letter would have.
		_, err := s.put(ctx, &nats.Msg{Subject: subject, Header: deletion()})
		return err
	})
}

var deadPrefix = subjects.BucketSubject(subjects.DeadBucket, "")

// DeadLetters reports the dead letters of a run, or of all runs of its tenant where the run's id is empty: each once,
// in the order they were written, from one goroutine. Letters that can't be read are left out and logged. Errors as
// those of Read.
func (s *Archive) DeadLetters(ctx context.Context, of subjects.Run, each func(*outcome.DeadLetter)) error {
	filter := subjects.DeadFilter(of.Tenant)
	if of.ID != "" {
		filter = subjects.DeadRunFilter(of)
	}
	seen := map[string]bool{}
	report := func(e Entry) {
		if operation(e.Header) != "" || seen[e.Subject] {
			return
		}
		d, err := parseDead(e)
		if err != nil {
			s.cfg.Logger.Error("a dead letter can't be read and is left out", "key", strings.TrimPrefix(e.Subject, deadPrefix), "error", err)
			return
		}
		seen[e.Subject] = true
		each(d)
	}
	for {
		lost, err := s.readAll(ctx, subjects.BucketStream(subjects.DeadBucket), deadPrefix+filter, report)
		if !lost {
			return err
		}
		if !s.pause(ctx, unknownPause) {
			return s.explain(ctx, context.Cause(ctx))
		}
	}
}
