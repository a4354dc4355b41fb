package kv

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// Archive is what is kept of runs beside the ledger: the documents of finished runs (subjects.HistoryBucket), dead
// letters (subjects.DeadBucket), and large values (an object store, one bucket for all tenants and one for each
// declared tenant, see Declare). Documents and letters are created once, as records are, and expire with the
// retention; a letter that somebody removed does not come back. Large values are named once, checked by size and
// digest whenever they are read, and outlive whatever can name them.
type Archive struct {
	*account
	tenants tenants
}

// inlineHistory is the largest history document, in bytes, that is kept in its key; a larger one is a blob.
const inlineHistory = 512 << 10

// Headroom is what a message needs besides its body, in bytes.
const Headroom = 16 << 10

func historySubject(r subjects.Run) string {
	return subjects.BucketSubject(subjects.HistoryBucket, r.Key())
}

// CreateHistory writes the document of a finished run, once for as long as it is retained (PurgeHistory makes room
// again). A document over 512 KiB goes to a blob, and only its head with the handle is kept in the key, and the
// outcome where that is small. created is false where there was a document already. bucket is that of the run's large
// values, as for PutBlob. Errors as those of Create, and of PutBlob.
func (s *Archive) CreateHistory(ctx context.Context, r subjects.Run, bucket string, doc *outcome.Run) (created bool, err error) {
	body := doc.JSON()
	if !json.Valid(body) { // it can't be changed any more, and nobody could read it
		return false, fault.New(fault.InvalidRecord, "the document of %s is no JSON", r.Plain())
	}
	var blob *outcome.Handle
	if len(body) > inlineHistory || int64(len(body)) > s.nc.MaxPayload()-Headroom {
		head := *doc
		if blob, err = s.PutBlob(ctx, bucket, subjects.RunBlobName(r, doc.Generation, "history", nuid.Next()), body); err != nil {
			return false, err
		}
		head.Blob = blob
		body = head.HeadWithOutcome()
	}
	decision, _, err := s.createOnce(ctx, historySubject(r), wire.Documented(doc, blob), body, nil)
	if decision == Decided && blob != nil {
		s.deleteBlob(ctx, blob) // nobody will ever read it
	}
	return decision == Written, err
}

// HistoryHead returns the document of a finished run as it lies in its key: without plan and steps where it is large,
// and without an outcome that is large itself. Errors: NotFound, NewerVersion, and those of Read.
func (s *Archive) HistoryHead(ctx context.Context, r subjects.Run) (*outcome.Run, error) {
	head, _, err := s.HistoryAt(ctx, r)
	return head, err
}

// HistoryAt is HistoryHead, with the sequence at which the document lies in its bucket.
func (s *Archive) HistoryAt(ctx context.Context, r subjects.Run) (*outcome.Run, uint64, error) {
	e, err := s.read(ctx, historySubject(r))
	if err != nil {
		return nil, 0, err
	}
	if !wire.KindOutcome.Known(e.Header) {
		return nil, 0, wire.Newer("the outcome of " + r.Plain())
	}
	head, err := parseHistory(e.Data)
	return head, e.Seq, err
}

// HistorySummary returns what a list shows of a finished run. It reads no more than a header of its document, but for one
// that an older orchestrator wrote. Errors: NotFound, NewerVersion, and those of Read.
func (s *Archive) HistorySummary(ctx context.Context, r subjects.Run) (outcome.Head, error) {
	e, err := s.read(ctx, historySubject(r))
	if err != nil {
		return outcome.Head{}, err
	}
	if !wire.KindOutcome.Known(e.Header) {
		return outcome.Head{}, wire.Newer("the outcome of " + r.Plain())
	}
	if head, ok := wire.ParseHead(e.Header); ok {
		return head, nil
	}
	doc, err := parseHistory(e.Data)
	if err != nil {
		return outcome.Head{}, err
	}
	return outcome.HeadOf(doc), nil
}

// PurgeHistory removes what lies in a run's key up to a sequence: a rejection, to make room for the outcome of a
// later plan. What was written since stays, however late the request comes. The document's blob, where it has one,
// goes when its time is over: somebody may be about to read it. Errors as those of Read, without NotFound.
func (s *Archive) PurgeHistory(ctx context.Context, r subjects.Run, upTo uint64) error {
	return s.purge(ctx, subjects.BucketStream(subjects.HistoryBucket), purgeRequest{Subject: historySubject(r), Sequence: upTo + 1})
}

// History returns the whole document of a finished run. Errors: NotFound, NewerVersion, and those of Read and Blob.
func (s *Archive) History(ctx context.Context, r subjects.Run) (*outcome.Run, error) {
	run, err := s.HistoryHead(ctx, r)
	if err != nil || run.Blob == nil {
		return run, err
	}
	doc, err := s.Blob(ctx, run.Blob)
	if fault.CodeOf(err) == fault.NotFound { // the key is there, so it is not the run that is unknown
		return nil, fault.Wrap(fault.Internal, err, "reading the large history document of "+r.Plain())
	}
	if err != nil {
		return nil, err
	}
	return parseHistory(doc)
}

func parseHistory(raw []byte) (*outcome.Run, error) {
	var run outcome.Run
	if err := json.Unmarshal(raw, &run); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "reading a history document")
	}
	return &run, nil
}

// HistoryRuns lists the finished runs of a tenant, in no order. Errors as those of Read.
func (s *Archive) HistoryRuns(ctx context.Context, tenant string) ([]subjects.Run, error) {
	prefix := subjects.BucketSubject(subjects.HistoryBucket, "")
	info, err := s.streamInfo(ctx, "KV_"+subjects.HistoryBucket, prefix+tenant+".*")
	if err != nil {
		return nil, err
	}
	runs := make([]subjects.Run, 0, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		if r, ok := subjects.ParseHistoryKey(strings.TrimPrefix(subject, prefix)); ok {
			runs = append(runs, r)
		}
	}
	return runs, nil
}

// FollowHeads reads the headers of the documents of finished runs, without their bodies: first of those that are
// there, then of those that come. What expires or is purged is not told. The callbacks are those of Ledger.Follow.
// Errors: NotReady, NoConnection, Timeout, Permission for who may not read whole streams.
func (s *Archive) FollowHeads(
	ctx context.Context, each func(r subjects.Run, e Entry), caughtUp func(last uint64), lost func(error),
) (*Cursor, error) {
	prefix := subjects.BucketSubject(subjects.HistoryBucket, "")
	return s.newHeads(ctx, subjects.BucketStream(subjects.HistoryBucket), []string{prefix + ">"}, func(e Entry) {
		if r, ok := subjects.ParseHistoryKey(strings.TrimPrefix(e.Subject, prefix)); ok && r.Valid() {
			each(r, e)
		}
	}, caughtUp, lost)
}
