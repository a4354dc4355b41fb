package worker

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/seal"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// simple reports whether nothing has to be looked up before the handler is called.
func (x *execution) simple() bool {
	claim := x.step.Claim != "" && !x.claimsLater()
	plain := x.step.Handle == nil && !x.step.Context.AnySealed() && !x.otherwise()
	return !x.doubted && !x.mayStand && !claim && plain && !x.late(x.taken)
}

// claimsLater reports whether the step is claimed only when its batch begins: one that waits for others may yet be left
// to another worker. A redelivered step waits for nobody.
func (x *execution) claimsLater() bool { return x.feed.gather != nil && x.delivered <= 1 }

// prepare does what has to be done before a handler is called. It reports false where it must not be.
func (x *execution) prepare() bool {
	if x.doubted {
		x.leaveDoubted()
		return false
	}
	if x.mayStand && !x.stillOpen() {
		return false
	}
	if x.mayStand && x.step.Stream != "" && x.step.Claim == "" && !x.claim() { // who had it before may have handed over steps
		return false
	}
	if x.late(x.taken) {
		x.leaveToOwner()
		return false
	}
	if x.delivered <= 1 && !x.unseal() { // before the claim: who can't do it has not begun
		return false
	}
	if x.step.Claim != "" && !x.claimsLater() && !x.claim() {
		return false
	}
	if x.delivered > 1 && !x.unseal() { // after it: another worker may have begun
		return false
	}
	if x.delivered > x.e.config.MaxDeliveries {
		x.fail(fault.New(fault.WorkerLost, "the step was handed to workers %d times and none of them survived it",
			x.delivered-1).
			WithHint("look for what in this step kills its worker: memory, a crash, an exit"))
		return false
	}
	return (!x.otherwise() || x.learn()) && (x.step.Handle == nil || x.fetch())
}

// unseal opens the secrets of the step for its handler. Where that can't be done the step fails: left to its lease it
// would come back to workers like this one.
func (x *execution) unseal() bool {
	if !x.step.Context.AnySealed() {
		return true
	}
	opened, err := x.step.Context.Open(func(key, value string) (string, error) {
		return x.e.config.SecretsKey.Open(seal.About(x.attempt.Tenant, x.attempt.ID, key), value)
	})
	if err != nil {
		x.fail(fault.As(err))
		return false
	}
	x.opened.Store(&opened)
	x.info.Context = opened
	return true
}

// stillOpen reports whether an attempt that may stand has no record yet, and its run is not over. One that is not open is
// acknowledged and dropped.
func (x *execution) stillOpen() bool {
	found, err := x.exists(x.step.Result)
	if err != nil {
		return false
	}
	if found {
		x.drop(true)
	}
	return !found && (x.step.Claim != "" || x.step.Stream != "" || x.runStands())
}

// runStands finds out whether a run is over, whose records are removed soon after: a step that was cancelled stays in
// its queue while its worker has it, and where that worker died it may come to another long after. Nobody who hosts a
// tool may read plans; but a claim is refused where the plan is gone. It decides nothing for a tool that may run more
// than once.
func (x *execution) runStands() bool {
	_, decision, err := claimant{x: x}.create("looking whether the run is over")
	if err == nil && decision == kv.Gone {
		x.drop(true)
	}
	return err == nil && decision != kv.Gone
}

// exists reads a record's subject from the leader, again and again until there is an answer or the execution ends.
func (x *execution) exists(subject string) (found bool, err error) {
	err = x.again("reading a record", nil, func() error {
		entry, err := x.e.store.Ledger.Read(x.base, subject)
		if isNotFound(err) {
			return nil
		}
		found = entry != nil
		return err
	})
	return found, err
}

// claim makes sure that an at_most_once step is executed by this delivery alone.
func (x *execution) claim() bool {
	mine, decision, err := claimant{x: x}.create("claiming the attempt")
	switch {
	case err != nil:
		return false
	case decision == kv.Written:
		x.nonce = mine.Nonce
		return true
	case decision == kv.Decided:
		return x.claimed(mine)
	default: // the run is over
		x.drop(true)
		return false
	}
}

// claimed looks at a claim that was there already. It reports true where it turns out to be this execution's own, whose
// acknowledgement was lost.
func (x *execution) claimed(mine wire.Claim) bool {
	there, found, err := claimant{x: x}.read()
	switch {
	case err != nil:
		return false
	case found && there == mine:
		x.nonce = mine.Nonce
		return x.planStands()
	case found && there.Seq == x.seq && x.step.Claim == "":
		x.fail(fault.New(fault.ToolFailed, "a worker had begun to write this answer, may have handed over steps of it, and was lost").
			WithHint("the next attempt is told what has begun"))
		return false
	case found && there.Seq == x.seq:
		x.fail(fault.New(fault.OutcomeUnknown, "a worker began this step and was lost; the tool may run at most once").
			WithHint("find out whether it took effect before submitting it anew"))
		return false
	default: // claimed for another message of the same attempt, or purged with its run
		x.drop(true)
		return false
	}
}

// claimant writes and reads the claim of an attempt, which says who alone goes on with it. Errors that are final are not tried
// again; nil: none is.
type claimant struct {
	x     *execution
	final func(error) bool
}

// create creates a claim, as long as the run stands. Whose it is that was there already, read says.
func (c claimant) create(doing string) (mine wire.Claim, decision kv.Decision, err error) {
	x, ledger := c.x, c.x.e.store.Ledger
	mine = wire.Claim{Nonce: nuid.Next(), Seq: x.seq}
	fence := &kv.Fence{Subject: subjects.PlanRecord(x.attempt.Run, ledger.Shards()), Seq: x.attempt.Generation}
	err = x.again(doing, c.final, func() (err error) {
		h, body := mine.Message(x.e.config.Name)
		decision, _, err = ledger.Create(x.base, subjects.ClaimRecord(x.attempt, ledger.Shards()), h, body, fence)
		return err
	})
	return mine, decision, err
}

// read reads the claim that is there.
func (c claimant) read() (there wire.Claim, found bool, err error) {
	x, ledger := c.x, c.x.e.store.Ledger
	err = x.again("reading the claim", c.final, func() error {
		entry, err := ledger.Read(x.base, subjects.ClaimRecord(x.attempt, ledger.Shards()))
		if isNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		there, found = wire.ParseClaim(entry.Data), true
		return nil
	})
	return there, found, err
}

// planStands is the fence of a claim whose creation was only found out about afterwards.
func (x *execution) planStands() bool {
	stands := false
	err := x.again("reading the plan", nil, func() error {
		entry, err := x.e.store.Ledger.Read(x.base, subjects.PlanRecord(x.attempt.Run, x.e.store.Ledger.Shards()))
		if isNotFound(err) {
			return nil
		}
		stands = err == nil && entry.Seq == x.attempt.Generation
		return err
	})
	if err == nil && !stands {
		x.drop(true)
	}
	return err == nil && stands
}

// fetch replaces the handle by the arguments it stands for, within the memory set aside for them.
func (x *execution) fetch() bool {
	size := x.step.Handle.Size
	if x.e.memory.Acquire(x.base, size) != nil {
		return false
	}
	x.heavy = size
	err := x.again("fetching the arguments", blobLost, func() (err error) {
		x.args, err = x.e.store.Archive.Blob(x.base, x.step.Handle)
		return err
	})
	if err == nil {
		return true
	}
	if blobLost(err) {
		f := fault.New(fault.ToolTerminal, "the arguments, kept apart for their size, can't be read: %v", err)
		if fault.CodeOf(err) == fault.Permission {
			f.Hint = x.permit()
		}
		x.fail(f)
	}
	return false
}

// blobLost reports whether a blob can't be had by waiting.
func blobLost(err error) bool {
	switch fault.CodeOf(err) {
	case fault.NotFound, fault.Internal, fault.TooLarge, fault.Permission:
		return true
	}
	return false
}

func isNotFound(err error) bool { return err != nil && fault.CodeOf(err) == fault.NotFound }

// retries returns the waits between two tries of what NATS did not do.
func retries() backoff.Backoff { return backoff.Between(50*time.Millisecond, 5*time.Second) }

// again tries until do succeeds, its error is final (nil: none is), or the execution's context ends; then it gives the
// error. The lease is kept meanwhile.
func (x *execution) again(doing string, final func(error) bool, do func() error) error {
	for waits := retries(); ; {
		err := do()
		if err == nil || final != nil && final(err) {
			return err
		}
		if x.base.Err() != nil {
			return errors.Join(context.Cause(x.base), err)
		}
		wait := waits.Next()
		x.log().Warn("trying again soon", "what", doing, "error", err, "wait", wait)
		if !backoff.Pause(x.base, wait) {
			return context.Cause(x.base)
		}
	}
}
