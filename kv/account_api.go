package kv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
)

// apiPrefix is where JetStream's API is.
const apiPrefix = "$JS.API."

// requestTimeout is how long one request to JetStream's API waits for its answer. What only looks is asked again
// every firstTimeout, because a server does not answer for a stream that has no leader yet, though it may have one a
// moment later.
const (
	requestTimeout = 5 * time.Second
	firstTimeout   = 500 * time.Millisecond
)

// patiently asks something that may be asked any number of times until an answer comes or ctx ends, for some seconds.
func patiently[T any](ctx context.Context, ask func(context.Context) (T, error)) (answer T, err error) {
	for try := range 3 {
		answer, err = look(ctx, try, ask)
		if !unanswered(err) || ctx.Err() != nil {
			break
		}
	}
	return answer, err
}

func unanswered(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout)
}

// look asks something that only looks. Who asks for the first time (try 0) gives up after firstTimeout. From then on
// it is asked every firstTimeout without giving up on what was asked before, up to requestTimeout: whether nobody is
// there to answer or somebody is slow, nothing is lost by waiting for too long or too short a time.
func look[T any](ctx context.Context, try int, ask func(context.Context) (T, error)) (T, error) {
	if try == 0 {
		ctx, cancel := context.WithTimeout(ctx, firstTimeout)
		defer cancel()
		return ask(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	type result struct {
		answer T
		err    error
	}
	results := make(chan result, requestTimeout/firstTimeout+1)
	next := time.NewTicker(firstTimeout)
	defer next.Stop()
	for open := 0; ; {
		open++
		go func() {
			answer, err := ask(ctx)
			results <- result{answer, err}
		}()
		for waiting := true; waiting; {
			select {
			case r := <-results:
				if open--; !unanswered(r.err) || open == 0 {
					return r.answer, r.err
				}
			case <-next.C:
				waiting = ctx.Err() != nil
			}
		}
	}
}

// transient reports whether a request that failed so may succeed in a moment, without anybody doing something: while a
// leader is elected, a server restarts, or the connection is away.
func transient(err error) bool {
	switch apiCode(err) {
	case codeNoPeers, // as long as the leader has not heard of all servers
		codeUnavailable, codeTooManyRequests, codeOffline, codeSequenceInFlight, codeSequenceNotReady, codeDuplicateInFlight:
		return true
	case 0:
	default:
		return false
	}
	for _, e := range []error{
		nats.ErrTimeout, context.DeadlineExceeded, nats.ErrNoResponders, nats.ErrDisconnected, nats.ErrConnectionReconnecting,
		nats.ErrReconnectBufExceeded, nats.ErrStaleConnection, errNoAnswer, errDisconnected,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return broken(err)
}

// broken reports whether err comes from a connection that broke under a write.
func broken(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe)
}

// guarded runs a request to a subject (or to some of a prefix that ends in a dot): if the server refuses it, it ends at
// once, with the refusal instead of a timeout.
func (s *account) guarded(ctx context.Context, subject string, request func(context.Context) error) error {
	return s.denied.guarded(ctx, subject, request)
}

// put publishes a message to a stream and waits until it is stored. Refused by the server, it ends at once.
func (s *account) put(ctx context.Context, msg *nats.Msg, opts ...jetstream.PublishOpt) (ack *jetstream.PubAck, err error) {
	err = s.guarded(ctx, msg.Subject, func(ctx context.Context) (err error) {
		ack, err = s.js.PublishMsg(ctx, msg, opts...)
		return err
	})
	return ack, err
}

// request asks JetStream's API once, and waits for at most d. What the API answers may be an error.
func (s *account) request(ctx context.Context, d time.Duration, subject string, body []byte) ([]byte, error) {
	var answer *nats.Msg
	err := s.guarded(ctx, subject, func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		answer, err = s.nc.RequestWithContext(ctx, subject, body)
		return err
	})
	if err != nil {
		return nil, err
	}
	return answer.Data, nil
}

// ask sends a JSON request to JetStream's API, repeats it while the API can't answer, and reads the answer into out.
func (s *account) ask(ctx context.Context, subject string, in, out any) error {
	return s.askBy(ctx, func(ctx context.Context, try int, body []byte) ([]byte, error) {
		return look(ctx, try, func(ctx context.Context) ([]byte, error) { return s.request(ctx, requestTimeout, subject, body) })
	}, in, out)
}

// tell is ask for a request that does something: it is given more time before it is repeated.
func (s *account) tell(ctx context.Context, subject string, in any) error {
	return s.askBy(ctx, func(ctx context.Context, _ int, body []byte) ([]byte, error) {
		return s.request(ctx, requestTimeout, subject, body)
	}, in, &struct{}{})
}

func (s *account) askBy(ctx context.Context, send func(ctx context.Context, try int, body []byte) ([]byte, error), in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return Fault(err)
	}
	try := 0
	return s.retry(ctx, func(ctx context.Context) error {
		answer, err := send(ctx, try, body)
		try++
		if err != nil {
			return err
		}
		return apiAnswer(answer, out)
	})
}

// apiAnswer reads what the API answered into out, unless that is nil, or returns the error that it answered with.
func apiAnswer(answer []byte, out any) error {
	var failed struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer, &failed); err != nil {
		return fmt.Errorf("reading the API's answer: %w", err)
	}
	if failed.Error != nil {
		return failed.Error
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}

// streamState is what Stepjet reads of STREAM.INFO, which the stream's leader answers.
type streamState struct {
	Created string `json:"created"`
	State   struct {
		Messages uint64            `json:"messages"`
		FirstSeq uint64            `json:"first_seq"`
		LastSeq  uint64            `json:"last_seq"`
		Subjects map[string]uint64 `json:"subjects"`
	} `json:"state"`
	Cluster *struct {
		Leader   string     `json:"leader"`
		Since    string     `json:"leader_since"`
		Replicas []struct{} `json:"replicas"`
	} `json:"cluster"`
	Total int `json:"total"`
}

func (i streamState) leader() string {
	if i.Cluster == nil {
		return ""
	}
	return i.Cluster.Leader
}

type infoRequest struct {
	Filter string `json:"subjects_filter,omitempty"`
	Offset int    `json:"offset,omitempty"`
}

// streamInfo asks a stream's leader for its state; with a filter also for the subjects that match it, all of them.
func (s *account) streamInfo(ctx context.Context, stream, filter string) (streamState, error) {
	var all streamState
	for offset := 0; ; {
		var page streamState
		if err := s.ask(ctx, apiPrefix+"STREAM.INFO."+stream, infoRequest{filter, offset}, &page); err != nil {
			return all, err
		}
		if offset == 0 {
			all = page
		}
		for subject, n := range page.State.Subjects {
			all.State.Subjects[subject] = n
		}
		offset += len(page.State.Subjects)
		if len(page.State.Subjects) == 0 || offset >= page.Total {
			return all, nil
		}
	}
}

// sizeMessage explains that a message is too large.
func sizeMessage(size int, limit int64) string {
	return "a message of " + strconv.Itoa(size) + " bytes is over the server's limit of " + strconv.FormatInt(limit, 10)
}

func (s *account) stream(ctx context.Context, name string) (jetstream.Stream, error) {
	return patiently(ctx, func(ctx context.Context) (jetstream.Stream, error) { return s.js.Stream(ctx, name) })
}

// ensureStream returns the stream of that name, as it is, or creates it. Whoever creates it first decides its
// settings. Of several that create one stream of a cluster at once, some get no answer: they look again. The error is
// errTooSoon for one that was there a moment ago.
func (s *account) ensureStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	stream, err := s.stream(ctx, cfg.Name)
	if !isNoStream(err) {
		if err == nil {
			s.regrowth.there(cfg.Name)
		}
		return stream, err
	}
	if !s.regrowth.due(cfg.Name, time.Now()) {
		return nil, fault.Wrap(fault.NotReady, errTooSoon, cfg.Name)
	}
	one, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	stream, err = s.js.CreateStream(one, s.cfg.placed(cfg))
	if apiCode(err) == codeStreamExists || errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) || errors.Is(err, context.DeadlineExceeded) {
		stream, err = s.stream(ctx, cfg.Name)
	}
	if err == nil {
		s.regrowth.there(cfg.Name)
	}
	return stream, err
}

// regrowth keeps streams that somebody deletes from being created while the server is at that still: it would create the
// new one over the files of the old, and then remove them. Such a stream answers, and keeps nothing (nats-server 2.15.2).
type regrowth struct {
	mu   sync.Mutex
	gone map[string]time.Time // since when streams are missed that were there; zero for those that are
}

// regrowAfter is how long a stream is missed before it is created anew: a server that is busy takes some hundredths of a
// second to delete one.
const regrowAfter = 500 * time.Millisecond

// errTooSoon says that a stream will be created anew, by whoever needs it next.
var errTooSoon = errors.New("the stream was there a moment ago; it is created anew soon")

// there notes that a stream is.
func (g *regrowth) there(stream string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone == nil {
		g.gone = map[string]time.Time{}
	}
	g.gone[stream] = time.Time{}
}

// due reports whether a stream that is missing may be created, and notes since when it is missing.
func (g *regrowth) due(stream string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	since, known := g.gone[stream]
	if known && since.IsZero() {
		g.gone[stream], since = now, now
	}
	return !known || now.Sub(since) >= regrowAfter
}

func isNoStream(err error) bool { return errors.Is(err, jetstream.ErrStreamNotFound) }

// createTimeout is how long the creation of a stream may take before it is looked for.
const createTimeout = 2 * time.Second

// names asks for a list of names, all pages of it.
func (s *account) names(ctx context.Context, subject, field string) (map[string]bool, error) {
	all := map[string]bool{}
	for offset := 0; ; {
		var page struct {
			Total     int      `json:"total"`
			Streams   []string `json:"streams"`
			Consumers []string `json:"consumers"`
		}
		if err := s.ask(ctx, subject, infoRequest{Offset: offset}, &page); err != nil {
			return nil, err
		}
		list := page.Streams
		if field == "consumers" {
			list = page.Consumers
		}
		for _, n := range list {
			all[n] = true
		}
		offset += len(list)
		if len(list) == 0 || offset >= page.Total {
			return all, nil
		}
	}
}

// withJetStream makes the first requests. Where nobody answers on JetStream's API and the server itself says that it
// has none, waiting for a leader would be in vain.
func (s *account) withJetStream(ctx context.Context, request func(context.Context) error) error {
	err := s.guarded(ctx, apiPrefix, request)
	if errors.Is(err, nats.ErrNoResponders) && s.nc.IsConnected() {
		if there, _ := s.nc.ConnectedServerJetStream(); !there {
			return Fault(jetstream.ErrJetStreamNotEnabled)
		}
	}
	return err
}

// purgeRequest is JetStream's own: it removes messages on a subject, below a sequence or all but the last few.
type purgeRequest struct {
	Subject  string `json:"filter,omitempty"`
	Sequence uint64 `json:"seq,omitempty"`
	Keep     uint64 `json:"keep,omitempty"`
}

func (s *account) purge(ctx context.Context, stream string, p purgeRequest) error {
	return s.tell(ctx, apiPrefix+"STREAM.PURGE."+stream, p)
}
