package kv

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// requestPause is how long a request to an orchestrator waits before it asks again, where no orchestrator answered.
const requestPause = 250 * time.Millisecond

// RequestRegister asks an orchestrator to register a tool, until one answers or ctx ends. Errors: InvalidTool with the
// reason; NotReady where none answered before ctx ended.
func (s *Store) RequestRegister(ctx context.Context, raw []byte) (Tool, error) {
	def, err := tool.ParseDefinition(raw)
	if err != nil {
		return Tool{}, err
	}
	var t Tool
	return t, s.requestOf(ctx, subjects.Register(def.Name), raw, &t)
}

// Introduce has the store's registrations say which worker they are of, and the ids of the keys with which it opens sealed secrets then.
// It is called before the first of them.
func (s *Store) Introduce(worker string, keys func() []string) {
	s.by = func() nats.Header {
		return nats.Header{subjects.HeaderWorker: {worker}, subjects.HeaderKeys: {cmp.Or(strings.Join(keys(), ","), noKeys)}}
	}
}

// noKeys is what a worker says that holds none. One that says nothing may be older than the question.
const noKeys = "none"

// Introduced reads what a registration says of its worker; ok is false where it says nothing.
func Introduced(h nats.Header) (worker string, keys []string, ok bool) {
	worker, said := first(h, subjects.HeaderWorker), first(h, subjects.HeaderKeys)
	if worker == "" || said == "" {
		return "", nil, false
	}
	if said != noKeys {
		keys = strings.Split(said, ",")
	}
	return worker, keys, true
}

// RequestRestore asks an orchestrator to make what is missing of a tool, as the registry has it now: by a registration without
// a body. A worker that asked with the definition it has read might put back what another worker's has just replaced.
// Errors: NotFound; InvalidTool from an orchestrator that doesn't know this; NotReady.
func (s *Store) RequestRestore(ctx context.Context, name string) (Tool, error) {
	var t Tool
	return t, s.requestOf(ctx, subjects.Register(name), nil, &t)
}

// requestOf asks any orchestrator for something that may be done twice, until one answers or ctx ends.
func (s *Store) requestOf(ctx context.Context, subject string, body []byte, out any) error {
	warned := false
	for {
		answer, err := s.requestMsg(ctx, subject, body)
		if err == nil {
			return readAnswer(answer, out)
		}
		if !transient(err) {
			return s.explain(ctx, err)
		}
		if !warned && errors.Is(err, nats.ErrNoResponders) {
			warned = true
			s.cfg.Logger.Warn("no orchestrator answers yet; waiting for one", "request", subject)
		}
		if !s.pause(ctx, requestPause) {
			return fault.New(fault.NotReady, "no orchestrator answered on %s", subject).WithHint("start one against the same NATS server and account")
		}
	}
}

func (s *Store) requestMsg(ctx context.Context, subject string, body []byte) (answer *nats.Msg, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var by nats.Header
	if _, ok := subjects.ParseRegister(subject); ok && s.by != nil {
		by = s.by()
	}
	return s.requestBy(ctx, subject, by, body)
}

// readAnswer reads what an orchestrator answered; an error that it sent is given as it is.
func readAnswer(answer *nats.Msg, out any) error {
	if first(answer.Header, subjects.HeaderStatus) == subjects.StatusError {
		var f fault.Error
		if err := json.Unmarshal(answer.Data, &f); err != nil {
			return fault.Wrap(fault.Internal, err, "reading an orchestrator's refusal")
		}
		return &f
	}
	if err := json.Unmarshal(answer.Data, out); err != nil {
		return fault.Wrap(fault.Internal, err, "reading an orchestrator's answer")
	}
	return nil
}
