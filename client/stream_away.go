package client

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// patiently does again what nobody answers. It does so until ctx ends, and for as long as the run waits for more: after
// that its owner has closed it. What is sent twice stands once.
func (s *streaming) patiently(ctx context.Context, do func() error) error {
	for pause := backoff.Between(100*time.Millisecond, 2*time.Second); ; {
		err := do()
		switch {
		case err == nil:
			s.heard = time.Now()
			return nil
		case !away(err) || ctx.Err() != nil || s.c.ctx.Err() != nil || s.c.nc.IsClosed() || time.Since(s.heard) > s.o.OpenFor:
			return err
		}
		s.waited = true
		s.c.log.Warn("nobody takes what is written of a plan; it is sent again", "tenant", s.c.tenant, "run", s.o.Run, "error", err)
		if !backoff.Pause(ctx, pause.Next()) {
			return context.Cause(ctx)
		}
	}
}

// renewals are how often in its time a run is asked to stay open whose text comes, and nothing of it can be sent. lastRenewed
// is up to which revision: those that a run may have beyond it are for what is left of the plan.
const renewals, lastRenewed = 3, 980

// keepOpen asks a run to wait for more of the plan, where text has come since it was last asked and nothing could be sent:
// a long step is being written, or steps that wait for the end. What becomes of the request is of no account: who can't be
// asked, or knows nothing of it, closes the plan in time, and so does the owner of one whose writer was killed.
func (s *streaming) keepOpen(ctx context.Context) {
	every := s.o.OpenFor / renewals
	came := s.comes
	s.comes = false
	if !came || s.run == nil || s.joins || s.wrong != nil || s.revision >= lastRenewed || time.Since(s.heard) < every {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, max(every, time.Second))
	defer cancel()
	done, err := s.c.Amend(ctx, s.o.Run, Amendment{Revision: s.revision, Generation: s.meant(), KeepOpen: true})
	var now wire.AmendConflict
	switch {
	case err == nil:
		s.revision, s.heard = done.Revision, time.Now()
	case json.Unmarshal(fault.As(err).Details, &now) == nil && now.Revision > s.revision:
		s.revision, s.heard = now.Revision, time.Now() // another amended it, which keeps it open as well
	}
}

// away reports whether an error says that nobody answered.
func away(err error) bool {
	code := fault.CodeOf(err)
	return code == fault.NoConnection || code == fault.NotReady || code == fault.Timeout
}

// finds takes the run for this stream's own where its plan is what was submitted by this client without an answer. Errors:
// NotFound where there is none, or it is another's; those of reading.
func (s *streaming) finds(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	name := subjects.NewRun(s.c.tenant, s.o.Run)
	record, err := s.c.store.Ledger.Read(ctx, subjects.PlanRecord(name, s.c.store.Ledger.Shards()))
	if err != nil {
		return err
	}
	if of, err := wire.ParsePlan(record.Header); err != nil || of.Client != s.c.token || plan.Digest(record.Data) != s.first {
		return notFound(name)
	}
	s.run, s.ours, s.joins = s.c.attach(name, s.o.Run, s.first, record.Seq), true, false
	return nil
}

// had reports whether a run that is over may be this plan: it came to its end by itself, with all that was sent.
func (s *streaming) had(ctx context.Context) bool {
	doc, err := s.c.Get(ctx, s.o.Run)
	if err != nil || doc.Status == outcome.Cancelled || doc.Status == outcome.Expired {
		return false
	}
	return !slices.ContainsFunc(s.sent, func(id string) bool {
		return !slices.ContainsFunc(doc.Steps, func(x outcome.Step) bool { return x.ID == id })
	})
}

// without returns the steps that the run does not have yet: the same text may be streamed elsewhere too.
func (s *streaming) without(ctx context.Context, add []json.RawMessage) []json.RawMessage {
	doc, err := s.c.Get(ctx, s.o.Run)
	if err != nil {
		return add // whoever answers the amendment says what is wrong
	}
	now, ok := wire.ReadShape(doc.Plan)
	if !ok {
		return add
	}
	there := map[string]bool{}
	for _, step := range now.Steps() {
		there[compact(step)] = true
	}
	return slices.DeleteFunc(slices.Clone(add), func(step json.RawMessage) bool { return there[compact(step)] })
}

// compact is a JSON text without white space.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}
