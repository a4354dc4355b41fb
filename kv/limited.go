package kv

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// A worker or an agent under the least privilege may read only what its own tools and its own tenant are about. The
// server decides by subjects, and of JetStream's requests that read only DIRECT.GET has what is read in its subject. So a
// store whose connection is limited in this way reads by that; and it makes no consumers, since who may make one may have
// the server publish what a stream holds on any subject whatsoever.
//
// What it costs: in a cluster any replica answers, so that a write of a moment ago may not be seen yet. Those who rely on
// a record's absence are therefore told of it only when it stays absent (settledAbsence).

// askLimits finds out whether the connection is limited. Where nobody tells, it is not.
func (s *Store) askLimits(ctx context.Context) {
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
func (s *Store) readDirect(ctx context.Context, stream, subject string) (*Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	answer, err := s.exchange(ctx, &nats.Msg{Subject: subjects.DirectGet(stream, subject)})
	if err != nil {
		return nil, err
	}
	return parseDirect(answer)
}

// parseDirect reads a stored message as DIRECT.GET sends it. The server adds its headers behind those that the message was
// stored with, which may be of the same names.
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
func (s *Store) settledAbsence(ctx context.Context, subject string) (*Entry, error) {
	for wait := (backoff{20 * time.Millisecond, time.Second}); ; {
		e, err := s.Read(ctx, subject)
		if fault.CodeOf(err) != fault.NotFound || !s.limited || s.cfg.Replicas == 1 || wait.pause == wait.max || !s.pause(ctx, wait.next()) {
			return e, err
		}
	}
}

// readsWide is how many messages of a list are read side by side.
const readsWide = 16

// entries gives the last message on each subject that a filter matches, in the order they were stored. What vanishes in
// between is left out.
func (s *Store) entries(ctx context.Context, stream, filter string) ([]Entry, error) {
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
			if *at, err = s.Read(ctx, subject); fault.CodeOf(err) == fault.NotFound {
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

// registryPause is how often a limited store looks whether the registry has changed.
const registryPause = 2 * time.Second

// pollTools is watchTools for a limited store: it reads the registry, and again whenever its stream has changed.
func (s *Store) pollTools(ctx context.Context, known map[string]bool, each func(Tool, bool), ready func()) error {
	stream := subjects.BucketStream(subjects.ToolsBucket)
	seen := map[string]uint64{} // by subject
	for read, last := false, uint64(0); ; {
		info, err := s.streamInfo(ctx, stream, "")
		if err != nil {
			return err
		}
		if !read || info.State.LastSeq != last {
			now, err := s.entries(ctx, stream, toolPrefix+"*")
			if err != nil {
				return err
			}
			s.reportChanges(now, seen, known, each)
			if !read {
				ready()
			}
			read, last = true, info.State.LastSeq
		}
		if !s.pause(ctx, registryPause) {
			return s.explain(ctx, context.Cause(ctx))
		}
	}
}

// reportChanges reports what is new among the entries of the registry, and what is gone.
func (s *Store) reportChanges(now []Entry, seen map[string]uint64, known map[string]bool, each func(Tool, bool)) {
	there := map[string]bool{}
	for _, e := range now {
		name, _ := subjects.Decode(strings.TrimPrefix(e.Subject, toolPrefix))
		there[name] = true
		if seen[e.Subject] != e.Seq {
			seen[e.Subject] = e.Seq
			s.reportTool(e, known, each)
		}
	}
	for name := range known {
		if !there[name] { // with its mark
			delete(known, name)
			each(Tool{Name: name}, true)
		}
	}
}

// Request asks an orchestrator something once. Unlike the connection's own method it ends at once, with an error that
// names the subject, where the server refuses the request. Errors: Permission, NewerVersion for an answer that this
// version can't read, and those of the connection.
func (s *Store) Request(ctx context.Context, subject string, body []byte) (answer *nats.Msg, err error) {
	return s.requestBy(ctx, subject, nil, body)
}

// requestBy is Request with headers that say who asks.
func (s *Store) requestBy(ctx context.Context, subject string, by nats.Header, body []byte) (answer *nats.Msg, err error) {
	h := wire.Versioned()
	maps.Copy(h, by)
	answer, err = s.exchange(ctx, &nats.Msg{Subject: subject, Header: h, Data: body})
	if err == nil && !wire.KnownBucket(answer.Header) {
		return nil, wire.Newer("the answer on " + subject)
	}
	return answer, err
}

// exchange sends a request and waits for its answer.
func (s *Store) exchange(ctx context.Context, m *nats.Msg) (answer *nats.Msg, err error) {
	err = s.guarded(ctx, m.Subject, func(ctx context.Context) (err error) {
		answer, err = s.nc.RequestMsgWithContext(ctx, m)
		return err
	})
	return answer, err
}

// Heard returns once the server knows of all subscriptions that were made before. Errors: Permission naming a subject
// among those given that it refused; Timeout or Cancelled after ctx; NoConnection.
func (s *Store) Heard(ctx context.Context, filters ...string) error {
	if err := s.nc.FlushWithContext(ctx); err != nil {
		return Fault(err)
	}
	// The refusal came before the answer to the flush, but it is handed on beside it.
	last := s.nc.LastError()
	for _, filter := range filters {
		if f := s.denied.of(filter); f != nil {
			return f
		}
		if last != nil && errors.Is(last, nats.ErrPermissionViolation) {
			if subject, _ := violated(last); subject == filter {
				return Fault(last)
			}
		}
	}
	return nil
}
