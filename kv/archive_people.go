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

// The bucket "questions" is for whoever looks for what runs wait for. It is derived: owners write it, repair it and
// remove from it, and nothing that decides rests on it.

var questionsPrefix = subjects.BucketSubject(subjects.QuestionsBucket, "")

func questionSubject(r subjects.Run, generation uint64, step string) string {
	return questionsPrefix + subjects.QuestionKey(r, generation, step)
}

// PutQuestion writes the entry of an open question, over what is there. Arguments over 256 KiB, and the plan of a
// round, go to a blob, in the bucket of the run's large values. Errors as those of Read, and of PutBlob.
func (s *Archive) PutQuestion(ctx context.Context, r subjects.Run, bucket string, q *outcome.Question) (err error) {
	entry := *q
	large := &entry.Arguments
	if q.Round != nil {
		large = &entry.Plan
	}
	if len(*large) > wire.InlineLimit {
		name := subjects.RunBlobName(r, q.Generation, "question", nuid.Next())
		if entry.Blob, err = s.PutBlob(ctx, bucket, name, *large); err != nil {
			return err
		}
		*large = nil
	}
	h, body := wire.QuestionMessage(&entry)
	subject := questionSubject(r, q.Generation, q.Step)
	return s.retry(ctx, func(ctx context.Context) error {
		_, err := s.put(ctx, &nats.Msg{Subject: subject, Header: h, Data: body})
		return err
	})
}

// QuestionKeys returns the keys of all entries, and the sequence of the last that was written when they were read:
// what PurgeQuestion takes. Errors as those of Read.
func (s *Archive) QuestionKeys(ctx context.Context) (keys map[string]bool, last uint64, err error) {
	info, err := s.streamInfo(ctx, subjects.BucketStream(subjects.QuestionsBucket), questionsPrefix+">")
	if err != nil {
		return nil, 0, err
	}
	keys = make(map[string]bool, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		keys[strings.TrimPrefix(subject, questionsPrefix)] = true
	}
	return keys, info.State.LastSeq, nil
}

// PurgeQuestion removes an entry that was written up to a sequence; 0: whenever it was. Errors as those of Read, without
// NotFound.
func (s *Archive) PurgeQuestion(ctx context.Context, key string, upTo uint64) error {
	request := purgeRequest{Subject: questionsPrefix + key}
	if upTo > 0 {
		request.Sequence = upTo + 1
	}
	return s.purge(ctx, subjects.BucketStream(subjects.QuestionsBucket), request)
}

// Question returns the entry of a step's open question; of the run's last generation that has one, where generation is
// 0. Errors: NotFound, NewerVersion, and those of Read.
func (s *Archive) Question(ctx context.Context, r subjects.Run, generation uint64, step string) (*outcome.Question, error) {
	key := subjects.QuestionKey(r, generation, step)
	if generation == 0 {
		key = subjects.QuestionStepFilter(r, step)
	}
	e, err := s.read(ctx, questionsPrefix+key)
	if fault.CodeOf(err) == fault.NotFound {
		return nil, fault.New(fault.NotFound, "the step %s of run %q waits for no answer", step, r.Plain()).
			WithHint("stepjet questions list shows what waits")
	}
	if err != nil {
		return nil, err
	}
	return wire.ParseQuestion(e.Header, e.Data, strings.TrimPrefix(e.Subject, questionsPrefix))
}

// Questions reports the open questions of a run, or of all runs of its tenant where the run's id is empty: each once, in
// the order they were written, from one goroutine. Entries that can't be read are left out and logged. Errors as those
// of Read.
func (s *Archive) Questions(ctx context.Context, of subjects.Run, each func(*outcome.Question)) error {
	filter := subjects.QuestionsFilter(of.Tenant)
	if of.ID != "" {
		filter = subjects.QuestionsRunFilter(of)
	}
	seen := map[string]bool{}
	report := func(e Entry) {
		if operation(e.Header) != "" || seen[e.Subject] {
			return
		}
		name := strings.TrimPrefix(e.Subject, questionsPrefix)
		q, err := wire.ParseQuestion(e.Header, e.Data, name)
		if err != nil {
			s.cfg.Logger.Error("a question can't be read and is left out", "key", name, "error", err)
			return
		}
		seen[e.Subject] = true
		each(q)
	}
	for {
		lost, err := s.readAll(ctx, subjects.BucketStream(subjects.QuestionsBucket), questionsPrefix+filter, report)
		if !lost {
			return err
		}
		if !s.pause(ctx, unknownPause) {
			return s.explain(ctx, context.Cause(ctx))
		}
	}
}

// FollowQuestions reads the entries of open questions of all runs: first those that are there, then what comes, each
// under its key, as QuestionKeys has it, and its sequence. What is removed is not told. Entries that can't be read are
// left out and logged. The callbacks are those of Ledger.Follow. Errors as those of FollowHeads.
func (s *Archive) FollowQuestions(
	ctx context.Context, each func(key string, seq uint64, q *outcome.Question), caughtUp func(last uint64), lost func(error),
) (*Cursor, error) {
	return s.newCursor(ctx, subjects.BucketStream(subjects.QuestionsBucket), []string{questionsPrefix + subjects.QuestionsFilter("*")}, func(e Entry) {
		if operation(e.Header) != "" {
			return
		}
		key := strings.TrimPrefix(e.Subject, questionsPrefix)
		q, err := wire.ParseQuestion(e.Header, e.Data, key)
		if err != nil {
			s.cfg.Logger.Error("a question can't be read and is left out", "key", key, "error", err)
			return
		}
		each(key, e.Seq, q)
	}, caughtUp, lost)
}
