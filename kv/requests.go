package kv

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/tool/group"
	"github.com/stepjet/stepjet/wire"
)

// Requests are what programs ask of orchestrators, over plain requests on subjects below "api": nothing is stored for
// them, and any orchestrator, or the one that owns the run, answers.
type Requests struct {
	*account
	by func() nats.Header // who asks for registrations, see Introduce; nil: it isn't said
}

// Request asks an orchestrator something once. Unlike the connection's own method it ends at once, with an error that
// names the subject, where the server refuses the request. Errors: Permission, NewerVersion for an answer that this
// version can't read, and those of the connection.
func (s *Requests) Request(ctx context.Context, subject string, body []byte) (answer *nats.Msg, err error) {
	return s.requestBy(ctx, subject, nil, body)
}

// requestPause is how long a request to an orchestrator waits before it asks again, where no orchestrator answered.
const requestPause = 250 * time.Millisecond

// RequestRegister asks an orchestrator to register a tool, until one answers or ctx ends. Errors: InvalidTool with the
// reason; NotReady where none answered before ctx ended.
func (s *Requests) RequestRegister(ctx context.Context, raw []byte) (tool.Registered, error) {
	def, err := tool.ParseDefinition(raw)
	if err != nil {
		return tool.Registered{}, err
	}
	var t tool.Registered
	return t, s.requestOf(ctx, subjects.Register(def.Name), raw, &t)
}

// RequestTemplate asks an orchestrator to register a tool that is a plan or an agent, until one answers or ctx ends. Errors:
// InvalidTool with all that is wrong, as tool.FlawsOf lists it; NotReady where none answered before ctx ended, or one that
// is alive does not know of templates.
func (s *Requests) RequestTemplate(ctx context.Context, raw []byte) (tool.Registered, error) {
	def, err := tool.ParseDefinition(raw)
	if err != nil {
		return tool.Registered{}, err
	}
	var t tool.Registered
	err = s.requestOf(ctx, subjects.ApplyTemplate(def.Name), raw, &t)
	return t, tool.Told(err)
}

// Introduce has the store's registrations say which worker they are of, and the ids of the keys with which it opens
// sealed secrets then. It is called before the first of them.
func (s *Requests) Introduce(worker string, keys func() []string) {
	s.by = func() nats.Header { return wire.Registration{Worker: worker, Keys: keys()}.Header() }
}

// RequestRestore asks an orchestrator to make what is missing of a tool, as the registry has it now: by a
// registration without a body. A worker that asked with the definition it has read might put back what another
// worker's has just replaced. Errors: NotFound; InvalidTool from an orchestrator that doesn't know this; NotReady.
func (s *Requests) RequestRestore(ctx context.Context, name string) (tool.Registered, error) {
	var t tool.Registered
	return t, s.requestOf(ctx, subjects.Register(name), nil, &t)
}

// requestOf asks any orchestrator for something that may be done twice, until one answers or ctx ends.
func (s *Requests) requestOf(ctx context.Context, subject string, body []byte, out any) error {
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
			s.cfg.Logger.Warn("no orchestrator answers yet; waiting for one", "subject", subject)
		}
		if !s.pause(ctx, requestPause) {
			return fault.New(fault.NotReady, "no orchestrator answered on %s", subject).WithHint("start one against the same NATS server and account")
		}
	}
}

func (s *Requests) requestMsg(ctx context.Context, subject string, body []byte) (answer *nats.Msg, err error) {
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
	if err := wire.ParseRefusal(answer.Header, answer.Data); err != nil {
		return err
	}
	if err := json.Unmarshal(answer.Data, out); err != nil {
		return fault.Wrap(fault.Internal, err, "reading an orchestrator's answer")
	}
	return nil
}

// RequestRemove asks an orchestrator for RemoveTool, until one answers or ctx ends. Errors: those of RemoveTool;
// NotReady where none answered before ctx ended.
func (s *Requests) RequestRemove(ctx context.Context, name string, force bool) (Removed, error) {
	body, err := json.Marshal(RemoveRequest{force})
	if err != nil {
		return Removed{}, err
	}
	var r Removed
	return r, s.requestOf(ctx, subjects.Remove(name), body, &r)
}

// RemoveRequest is the body of a request for RemoveTool; an empty body is the zero value.
type RemoveRequest struct {
	Force bool `json:"force,omitempty"`
}

// RequestGroup asks an orchestrator for Groups.Apply, until one answers or ctx ends. Errors: those of Apply; NotReady
// where none answered before ctx ended.
func (s *Requests) RequestGroup(ctx context.Context, raw []byte) (*group.Definition, error) {
	d, err := group.Parse(raw)
	if err != nil {
		return nil, err
	}
	return d, s.requestOf(ctx, subjects.ApplyGroup(d.Role, d.Provider), raw, &struct{}{})
}

// RequestRemoveGroup asks an orchestrator for Groups.Remove, until one answers or ctx ends. Errors: those of Remove;
// NotReady where none answered before ctx ended.
func (s *Requests) RequestRemoveGroup(ctx context.Context, role, provider string) error {
	if !group.ValidName(role) || !group.ValidName(provider) {
		return fault.New(fault.InvalidValue, "%q of %q is no group", role, provider)
	}
	return s.requestOf(ctx, subjects.ApplyGroup(role, provider), nil, &struct{}{})
}

// RequestOverride asks an orchestrator for Override, until one answers or ctx ends. Errors: those of Override; NotReady
// where none answered before ctx ended.
func (s *Requests) RequestOverride(ctx context.Context, name string, raw []byte) (Overridden, error) {
	var o Overridden
	return o, s.requestOf(ctx, subjects.Override(name), raw, &o)
}

// RequestTenantOverride asks an orchestrator for TenantOverride, until one answers or ctx ends. Errors: those of
// TenantOverride; NotReady where none answered before ctx ended.
func (s *Requests) RequestTenantOverride(ctx context.Context, tenant, name string, raw []byte) (Overridden, error) {
	var o Overridden
	return o, s.requestOf(ctx, subjects.TenantOverride(tenant, name), raw, &o)
}
