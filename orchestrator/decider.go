package orchestrator

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// decider writes the records that no worker writes: of attempts that failed before any had them, that none may decide
// any more, and of runs that stop.
type decider struct {
	*env
	times *ledgerTime
	// deciding is what is under way: where the server is slow, a sweep that began it anew each time would make it slower.
	deciding map[subjects.Attempt]struct{}
}

func newDecider(e *env, times *ledgerTime) *decider {
	return &decider{env: e, times: times, deciding: map[subjects.Attempt]struct{}{}}
}

// fail records that an attempt failed before any worker had it.
func (dc *decider) fail(a subjects.Attempt, err *fault.Error, trace wire.Trace) {
	h, body := ownRecord(dc.cfg.Name, err, trace.Of(a))
	dc.store.CreateAsync(dc.ctx, subjects.StepRecord(a, dc.store.Shards()), h, body, nil, dc.recorded(a, trace))
}

func (dc *decider) recorded(a subjects.Attempt, trace wire.Trace) func(kv.Decision, uint64, error) {
	return func(_ kv.Decision, _ uint64, err error) {
		if err != nil && dc.ctx.Err() == nil {
			logOf(dc.log, &a, trace).Error("a record could not be created; the sweep tries again", "error", err)
		}
	}
}

// withdrawn is an attempt that was decided without its worker.
type withdrawn struct {
	attempt subjects.Attempt
	shard   int
	sent    bool // or held back by this owner, so that nothing of it is out
	err     *fault.Error
}

// decide creates records for attempts that no worker may decide any more, and only then takes back what is out of them:
// were the message gone first and this process with it, nobody would decide. What is being decided goes on as it is.
func (dc *decider) decide(r *run, all []machine.Decide) {
	var list []withdrawn
	for _, d := range all {
		a := r.attempt(d.Call, d.Attempt)
		if _, there := dc.deciding[a]; there {
			continue
		}
		dc.deciding[a] = struct{}{}
		sent := r.step(d.Step).Plan == nil && !r.holds(machine.Dispatch{Call: d.Call, Attempt: d.Attempt})
		list = append(list, withdrawn{a, r.shard(d.Step), sent, d.Error})
	}
	if len(list) == 0 {
		return
	}
	trace, wholeRun := r.trace, dc.isAll(r, len(list))
	dc.job(func(ctx context.Context) {
		defer dc.post(func() {
			for _, x := range list {
				delete(dc.deciding, x.attempt)
			}
		})
		if dc.createAll(ctx, list, trace) {
			dc.takeBack(ctx, list, wholeRun, trace)
		}
	})
}

// takeBack takes back what is out of attempts that are decided, and tells their workers.
func (dc *decider) takeBack(ctx context.Context, list []withdrawn, wholeRun bool, trace wire.Trace) {
	list = slices.DeleteFunc(slices.Clone(list), func(x withdrawn) bool { return !x.sent })
	dc.withdraw(ctx, list, wholeRun, trace) // before the cancels: a slot that they free must not go to one of these
	for _, x := range list {
		_ = dc.bus.Publish(subjects.Cancel(x.attempt), nil) // at most once: a worker that misses it wastes its time
	}
}

// isAll reports whether a run stops and n attempts are all that it has out. Of others, what one of them asked for
// may not have been decided yet.
func (dc *decider) isAll(r *run, n int) bool {
	if n == 1 || !r.machine.Stopping() {
		return false
	}
	var out machine.Effects
	r.machine.Outstanding(dc.times.of(r), &out)
	return len(out.Decide) == n
}

// createAll creates the records side by side and waits for all; false if any could not be.
func (dc *decider) createAll(ctx context.Context, list []withdrawn, trace wire.Trace) bool {
	done, wait := dc.jobs.together(len(list))
	var failed atomic.Bool
	for _, x := range list {
		h, body := ownRecord(dc.cfg.Name, x.err, trace.Of(x.attempt))
		dc.store.CreateAsync(ctx, subjects.StepRecord(x.attempt, dc.store.Shards()), h, body, nil, func(d kv.Decision, seq uint64, err error) {
			if err != nil {
				failed.Store(true)
			}
			dc.recorded(x.attempt, trace)(d, seq, err)
			done()
		})
	}
	wait()
	return !failed.Load()
}

// withdraw takes messages out of the step streams. A run that stops has nothing out that may stay, so its messages go
// tool by tool; never across tools, which would leave the slots of leased steps taken. The last comes first, so that a
// slot that one of them leaves doesn't go to the next.
func (dc *decider) withdraw(ctx context.Context, list []withdrawn, wholeRun bool, trace wire.Trace) {
	done := map[string]bool{}
	for _, x := range slices.Backward(list) {
		var err error
		switch {
		case !wholeRun:
			err = dc.store.PurgeAttempt(ctx, x.attempt, x.shard)
		case !done[x.attempt.Tool]:
			done[x.attempt.Tool] = true
			err = dc.store.PurgeSteps(ctx, x.attempt.Run, x.attempt.Generation, x.attempt.Tool, x.shard)
		}
		if err != nil && ctx.Err() == nil {
			logOf(dc.log, &x.attempt, trace).Warn("a withdrawn step could not be removed; its worker's record will be refused", "error", err)
		}
	}
}

// stop creates the one stop record of a run; the ledger's order decides who was first.
func (dc *decider) stop(r *run, s wire.Stop, done func(kv.Decision, error)) {
	subject := subjects.StopRecord(r.id, r.generation, dc.store.Shards())
	fence := &kv.Fence{Subject: subjects.PlanRecord(r.id, dc.store.Shards()), Seq: r.generation}
	h, body := s.Message()
	dc.store.CreateAsync(dc.ctx, subject, h, body, fence, func(d kv.Decision, _ uint64, err error) {
		if err != nil && dc.ctx.Err() == nil {
			dc.log.Error("a run could not be stopped", "tenant", r.id.Tenant, "run", r.id.Plain(), "error", err)
		}
		done(d, err)
	})
}

// ownerMark begins the worker header of records that an orchestrator wrote. No worker's name begins so.
const ownerMark = "="

// ownRecord is the form of an attempt's record that an orchestrator writes.
func ownRecord(name string, err *fault.Error, trace wire.Trace) (nats.Header, []byte) {
	return wire.Result{Error: err, Worker: ownerMark + name, Trace: trace}.Message()
}

// late handles an attempt that should have begun. One that no worker was given is decided; it can't be told from one
// that is given this very moment, but only one record of either counts.
func (dc *decider) late(r *run, d machine.Dispatch) {
	c := d.Call
	decide := func() {
		if r.phase == running && r.machine.Open(c, d.Attempt) {
			dc.decide(r, []machine.Decide{{Call: c, Attempt: d.Attempt, Error: r.machine.LateError(c)}})
		}
	}
	f, a, shard := r.flights.At(c), r.attempt(c, d.Attempt), r.shard(c.Step)
	if f == nil && r.heldOf(c.Step) > 0 && d.Attempt == 1 {
		decide()
		return
	}
	var seq uint64
	if f != nil {
		seq = f.seq.Load()
	}
	dc.job(func(ctx context.Context) {
		if !dc.given(ctx, a, shard, seq) {
			dc.post(decide)
		}
	})
}

// given reports whether a worker was given an attempt. Where that can't be found out it says so, and leaves the attempt
// to its other deadlines.
func (dc *decider) given(ctx context.Context, a subjects.Attempt, shard int, seq uint64) bool {
	if seq == 0 {
		e, err := dc.store.Read(ctx, subjects.Step(a, shard))
		if err != nil {
			return true
		}
		seq = e.Seq
	}
	s, err := dc.store.Lag(ctx, a.Tool, shard)
	if fault.CodeOf(err) == fault.NotFound {
		return false
	}
	return err != nil || seq <= s.Given
}

// recordAmendment creates the record of an amendment. Whose record is first counts. What has to be known to follow it is
// recorded before, so that the run goes to one who knows: the record itself lets all others leave the run alone.
func (dc *decider) recordAmendment(r *run, scope string, revision int, h nats.Header, body []byte, done func(kv.Decision, error)) {
	subject := subjects.AmendRecord(r.id, r.generation, scope, revision, dc.store.Shards())
	said := func(d kv.Decision, err error) {
		if err != nil && dc.ctx.Err() == nil {
			dc.log.Error("an amendment could not be recorded", "tenant", r.id.Tenant, "run", r.id.Plain(), "scope", scope, "error", err)
		}
		done(d, err)
	}
	create := func() {
		dc.store.CreateAsync(dc.ctx, subject, h, body, nil, func(d kv.Decision, _ uint64, err error) { said(d, err) })
	}
	needs := wire.RecordNeeds(h, body)
	if needs == nil {
		create()
		return
	}
	dc.job(func(ctx context.Context) {
		if err := dc.store.RecordNeeds(ctx, needs); err != nil {
			said(0, err)
			return
		}
		create()
	})
}

// needsOfAmendment returns what has to be known to follow an amendment of a run that adds such tools: that it may wait for
// an approval, where its plan was submitted for one, and what their contracts ask for that the run's own don't; nil for
// nothing.
func needsOfAmendment(r *run, tools map[string]*wire.FrozenTool) (needs []string) {
	if machine.Approves(r.machine) {
		needs = append(needs, wire.ApprovedAmendments)
	}
	return append(needs, slices.DeleteFunc(workersNeeds(tools), func(need string) bool { return slices.Contains(r.start.Needs, need) })...)
}

// closeScope records that an open scope is closed, since nobody amended it for as long as it waits.
func (dc *decider) closeScope(r *run, c machine.Closing) {
	request := wire.AmendRequest{Scope: c.Scope, Revision: c.Revision - 1, Change: wire.Change{Close: true}}
	a := wire.Amend{Digest: request.Digest(), Change: request.Change, Reason: "it was open for as long as it may be", Needs: needsOfAmendment(r, nil)}
	a.Approved = machine.Approves(r.machine) // it lets nothing run
	if a.ByOwner = c.Fixed; a.ByOwner {
		a.Needs = append(a.Needs, wire.OwnClose)
	}
	h, body, err := a.Message()
	if err != nil {
		return // of a flag and texts: it can't fail
	}
	dc.recordAmendment(r, c.Scope, c.Revision, h, body, func(kv.Decision, error) {}) // the sweep tries again
}
