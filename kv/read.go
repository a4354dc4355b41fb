package kv

import (
	"context"
	"encoding/base64"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tidwall/gjson"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
)

// Entry is one message of a stream.
type Entry struct {
	Subject string
	Seq     uint64
	Time    time.Time // when the stream stored it
	Header  nats.Header
	Data    []byte
}

// Read gives the last message on a subject of a bucket or a step stream (a ledger record, a plan's intake subject, a
// history key), as the stream's leader has it: a write that was acknowledged before is seen. The subject may hold
// wildcards. Errors: NotFound, NotReady, NoConnection, Timeout.
func (s *Store) Read(ctx context.Context, subject string) (*Entry, error) {
	subject = s.recordSubject(subject)
	stream := subjects.StreamOf(subject)
	if stream == "" {
		return nil, fault.New(fault.Internal, "%s is no subject of a stream of Stepjet's", subject)
	}
	read := s.readLeader
	if s.limited {
		read = s.readDirect
	}
	var entry *Entry
	try := 0
	err := s.retry(ctx, func(ctx context.Context) (err error) {
		entry, err = look(ctx, try, func(ctx context.Context) (*Entry, error) { return read(ctx, stream, subject) })
		try++
		return err
	})
	if err == nil {
		return entry, nil
	}
	f := Fault(err)
	if f.Code == fault.NotFound {
		f.Message = "nothing lies at " + subject
	}
	return nil, f
}

// readLeader asks the stream's leader for the last message on a subject, once.
func (s *Store) readLeader(ctx context.Context, stream, subject string) (*Entry, error) {
	body := make([]byte, 0, len(subject)+24)
	body = append(body, `{"last_by_subj":`...)
	body = strconv.AppendQuote(body, subject)
	body = append(body, '}')
	answer, err := s.request(ctx, requestTimeout, apiPrefix+"STREAM.MSG.GET."+stream, body)
	if err != nil {
		return nil, err
	}
	return parseStored(answer)
}

// errStored is an answer to MSG.GET that can't be read.
var errStored = errors.New("JetStream sent a message in a form that is not its own")

// parseStored reads the answer to STREAM.MSG.GET.
func parseStored(answer []byte) (*Entry, error) {
	root := gjson.ParseBytes(answer)
	if e := root.Get("error"); e.Exists() {
		return nil, &jetstream.APIError{
			Code: int(e.Get("code").Int()), ErrorCode: jetstream.ErrorCode(e.Get("err_code").Uint()),
			Description: e.Get("description").String(),
		}
	}
	m := root.Get("message")
	e := &Entry{Subject: m.Get("subject").String(), Seq: m.Get("seq").Uint()}
	if e.Subject == "" || e.Seq == 0 {
		return nil, errStored
	}
	var err error
	if e.Time, err = time.Parse(time.RFC3339Nano, m.Get("time").String()); err != nil {
		return nil, errStored
	}
	if e.Data, err = base64.StdEncoding.DecodeString(m.Get("data").Str); err != nil {
		return nil, errStored
	}
	header, err := base64.StdEncoding.DecodeString(m.Get("hdrs").Str)
	if err != nil {
		return nil, errStored
	}
	if len(header) > 0 {
		if e.Header, err = nats.DecodeHeadersMsg(header); err != nil {
			return nil, errStored
		}
	}
	return e, nil
}

// LastSequence gives the sequence of the last message that a ledger shard ever stored, from its leader.
func (s *Store) LastSequence(ctx context.Context, shard int) (uint64, error) {
	info, err := s.streamInfo(ctx, subjects.LedgerStream(shard), "")
	return info.State.LastSeq, err
}
