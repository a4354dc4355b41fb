package kv

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tidwall/gjson"
	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// Entry is one message of a stream.
type Entry struct {
	Subject string
	Seq     uint64
	Time    time.Time // when the stream stored it
	Header  nats.Header
	Data    []byte
}

// read is Ledger.Read, of which every facet makes use.
func (s *account) read(ctx context.Context, subject string) (*Entry, error) {
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
func (s *account) readLeader(ctx context.Context, stream, subject string) (*Entry, error) {
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

// readAll reports what lies in a stream now, on the subjects that filter matches; lost says that it has to be read
// again.
func (s *account) readAll(ctx context.Context, stream, filter string, each func(Entry)) (lost bool, err error) {
	if s.limited {
		all, err := s.entries(ctx, stream, filter)
		for _, e := range all {
			each(e)
		}
		return false, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	complete, gone := errors.New("complete"), errors.New("lost")
	// Handing over makes sure that nothing is reported after the return.
	entries := make(chan Entry)
	_, err = s.newCursor(ctx, stream, []string{filter}, func(e Entry) {
		select {
		case entries <- e:
		case <-ctx.Done():
		}
	}, func(uint64) { cancel(complete) }, func(error) { cancel(gone) })
	if err != nil {
		return false, err
	}
	for {
		select {
		case e := <-entries:
			each(e)
		case <-ctx.Done():
			switch cause := context.Cause(ctx); {
			case errors.Is(cause, complete):
				return false, nil
			case errors.Is(cause, gone):
				return true, nil
			default:
				return false, s.explain(ctx, cause)
			}
		case <-s.ctx.Done():
			return false, errClosed()
		}
	}
}

// A worker or an agent under the least privilege may read only what its own tools and its own tenant are about. The
// server decides by subjects, and of JetStream's requests that read only DIRECT.GET has what is read in its subject.
// So a store whose connection is limited in this way reads by that; and it makes no consumers, since who may make one
// may have the server publish what a stream holds on any subject whatsoever.
//
// What it costs: in a cluster any replica answers, so that a write of a moment ago may not be seen yet. Those who
// rely on a record's absence are therefore told of it only when it stays absent (settledAbsence).

// askLimits finds out whether the connection is limited. Where nobody tells, it is not.
func (s *account) askLimits(ctx context.Context) {
	answer, err := s.request(ctx, firstTimeout, subjects.UserInfo, nil)
	if err != nil {
		return
	}
	var info struct {
		Data struct {
			Permissions *struct {
				Publish *struct {
					Allow []string `json:"allow"`
					Deny  []string `json:"deny"`
				} `json:"publish"`
			} `json:"permissions"`
		} `json:"data"`
	}
	if json.Unmarshal(answer, &info) != nil || info.Data.Permissions == nil || info.Data.Permissions.Publish == nil {
		return
	}
	p := info.Data.Permissions.Publish
	read := subjects.StreamRequest("MSG.GET", subjects.LedgerStream(0))
	matches := func(pattern string) bool { return covers(pattern, read) }
	s.limited = len(p.Allow) > 0 && !slices.ContainsFunc(p.Allow, matches) || slices.ContainsFunc(p.Deny, matches)
}

// covers reports whether a filter matches a subject.
func covers(filter, subject string) bool {
	f, t := strings.Split(filter, "."), strings.Split(subject, ".")
	for i, token := range f {
		switch {
		case token == ">":
			return len(t) > i
		case i >= len(t) || token != "*" && token != t[i]:
			return false
		}
	}
	return len(f) == len(t)
}

// The headers that the server adds to a stored message in its answer.
const (
	headerSubject  = "Nats-Subject"
	headerSequence = "Nats-Sequence"
	headerTime     = "Nats-Time-Stamp"
)

// readDirect asks for the last message on a subject, once, by a request that names it.
func (s *account) readDirect(ctx context.Context, stream, subject string) (*Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	answer, err := s.exchange(ctx, &nats.Msg{Subject: subjects.DirectGet(stream, subject)})
	if err != nil {
		return nil, err
	}
	return parseDirect(answer)
}

// parseDirect reads a stored message as DIRECT.GET sends it. The server adds its headers behind those that the
// message was stored with, which may be of the same names.
func parseDirect(m *nats.Msg) (*Entry, error) {
	switch status(m) {
	case "":
	case "404":
		return nil, &jetstream.APIError{Code: 404, ErrorCode: codeMessageNotFound, Description: "no message found"}
	default:
		return nil, errStored
	}
	seq, ok := number(last(m.Header, headerSequence))
	at, err := time.Parse(time.RFC3339Nano, last(m.Header, headerTime))
	e := &Entry{Subject: last(m.Header, headerSubject), Seq: seq, Time: at, Header: m.Header, Data: m.Data}
	if !ok || err != nil || e.Subject == "" {
		return nil, errStored
	}
	for _, h := range []string{headerSubject, headerSequence, headerTime, "Nats-Stream"} {
		delete(e.Header, h)
	}
	return e, nil
}

// settledAbsence reads until a record is found, or was not found for as long as a replica may lag behind.
func (s *account) settledAbsence(ctx context.Context, subject string) (*Entry, error) {
	for wait := backoff.Between(20*time.Millisecond, time.Second); ; {
		e, err := s.read(ctx, subject)
		if fault.CodeOf(err) != fault.NotFound || !s.limited || s.cfg.Replicas == 1 || wait.Spent() || !s.pause(ctx, wait.Next()) {
			return e, err
		}
	}
}

// readsWide is how many messages of a list are read side by side.
const readsWide = 16

// entries returns the last message on each subject that a filter matches, in the order they were stored. What
// vanishes in between is left out.
func (s *account) entries(ctx context.Context, stream, filter string) ([]Entry, error) {
	info, err := s.streamInfo(ctx, stream, filter)
	if err != nil {
		return nil, err
	}
	found := make([]*Entry, len(info.State.Subjects))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readsWide)
	i := 0
	for subject := range info.State.Subjects {
		at := &found[i]
		i++
		g.Go(func() (err error) {
			if *at, err = s.read(ctx, subject); fault.CodeOf(err) == fault.NotFound {
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var all []Entry
	for _, e := range found {
		if e != nil {
			all = append(all, *e)
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return int(int64(a.Seq) - int64(b.Seq)) })
	return all, nil
}

// requestBy is Request with headers that say who asks.
func (s *account) requestBy(ctx context.Context, subject string, by nats.Header, body []byte) (answer *nats.Msg, err error) {
	h := wire.Versioned()
	maps.Copy(h, by)
	answer, err = s.exchange(ctx, &nats.Msg{Subject: subject, Header: h, Data: body})
	if err == nil && !wire.KindAnswer.Known(answer.Header) {
		return nil, wire.Newer("the answer on " + subject)
	}
	return answer, err
}

// exchange sends a request and waits for its answer.
func (s *account) exchange(ctx context.Context, m *nats.Msg) (answer *nats.Msg, err error) {
	err = s.guarded(ctx, m.Subject, func(ctx context.Context) (err error) {
		answer, err = s.nc.RequestMsgWithContext(ctx, m)
		return err
	})
	return answer, err
}
