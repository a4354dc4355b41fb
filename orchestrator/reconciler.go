package orchestrator

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/subjects"
)

// reconciler compares what should be out with what is, and sends what was lost again.
type reconciler struct {
	*env
	runs       *runTable
	suspects   *suspects
	lifecycle  *lifecycle
	driver     *driver
	dispatcher *dispatcher
	decider    *decider
	reaper     *reaper

	noticed  time.Time                 // when a step stream was last seen to have lost what lay in it
	busy     [subjects.Partitions]bool // being compared
	attempts int                       // in these comparisons
	// reads is how many records or plans of a partition are read one by one. Where there are more, as after the restart
	// of an orchestrator with a backlog, all that lie in the partition are listed instead.
	reads int
}

const readsAtMost = 32

// expected is one attempt that should be out.
type expected struct {
	run      *run
	dispatch machine.Dispatch
	attempt  subjects.Attempt
	shard    int
	patience time.Duration // timeout of one execution and its lease
	once     bool          // at_most_once, or streams: its claim is looked at
	streams  bool          // it may hand over steps of an answer, and be made again
	held     bool          // back by this owner; somebody else may have sent it
	now      time.Time     // of the ledger, when this was asked
}

// sweep compares what should be out with what is, for every run that has waited for a whole interval.
func (rc *reconciler) sweep(now time.Time) {
	still := rc.runs.oldestFirst(func(r *run) bool { return !r.awaitingInput() && now.Sub(r.touched) >= rc.cfg.SweepEvery })
	for _, r := range still {
		switch r.phase {
		case running:
			rc.suspects.add(r, longGone)
		case awaiting: // its start may have come and been purged, all of it, before it was read
			rc.lifecycle.open(r)
		default: // the rest means nothing here
		}
	}
	rc.compare()
}

// lookEvery is how often is looked whether a step stream lost what lay in it.
const lookEvery = time.Second

// stepsLost compares all runs, after a step stream lost what lay in it, instead of waiting for the turn of each. What a
// worker had been given is not repeated before that worker is likely to be done: it is compared again and again, at
// longer and longer intervals up to that of the sweep, each time with the tools that have been seen to take less.
func (rc *reconciler) stepsLost() {
	noticed := rc.clock.Now()
	rc.noticed = noticed
	for gone := lookEvery; gone < rc.cfg.SweepEvery; gone *= 2 {
		rc.later(gone, func() {
			if rc.noticed != noticed {
				return // it was lost once more since
			}
			for _, r := range rc.runs.byID {
				if r.phase == running && !r.awaitingInput() {
					rc.suspects.add(r, gone)
				}
			}
			rc.suspects.compareSoon()
		})
	}
}

// late is more than this process knows of the servers' time too late.
const late = time.Second

// alone looks for what others sent of the runs of some partitions and this owner holds back, now that nobody else is at
// work there, or will hold back once it has read an input that others had read before. The rest that is out is as it was.
func (rc *reconciler) alone(partitions partitionSet) {
	for p := range partitions {
		if partitions[p] {
			rc.lifecycle.cursors.alone[p] = rc.lifecycle.times.now(subjects.LedgerShard(p, rc.store.Shards())).Add(late)
		}
	}
	for _, r := range rc.runs.byID {
		if partitions[r.id.Partition()] && r.phase == running && (r.lanes.Len() > 0 || r.awaitingInput() || r.uncompared) {
			r.uncompared = true
			rc.suspects.add(r, 0)
		}
	}
	rc.suspects.compareSoon()
}

// tooSoon reports whether an attempt is not to be looked for yet: this owner is sending it, which may take long where its
// inputs lie in blobs. Or, where what lay in the stream is gone for so long, its message was sent since, may be on its way
// there still, or a worker may be at it.
func (rc *reconciler) tooSoon(r *run, d machine.Dispatch, gone time.Duration) bool {
	if r.flights.At(d.Call).ours(d.Attempt) {
		return true
	}
	if gone == longGone || !d.At.IsZero() { // no worker is given what waits for its time
		return false
	}
	if f := r.flights.At(d.Call); f != nil && f.attempt == d.Attempt {
		lost := f.sent.IsZero() || f.seq.Load() > 0 && f.sent.Before(rc.noticed)
		return !lost || f.lane.window.slowest > gone
	}
	if d.Attempt == 1 {
		return true // it was not sent yet
	}
	w := rc.dispatcher.windows[r.step(d.Step).Tool] // a retry whose time has come takes no room
	return w != nil && w.slowest > gone
}

// compareAtOnce is about how many attempts are compared together; where there are more, the other partitions wait until
// these are done.
const compareAtOnce = 1 << 16

// compare starts the comparison of the suspects, a job for each partition. Two of one partition would send the same
// again, so that the second waits for the first.
func (rc *reconciler) compare() {
	all := rc.suspects.take()
	suspects := map[int][]*run{}
	for r := range all {
		suspects[r.id.Partition()] = append(suspects[r.id.Partition()], r)
	}
	for _, p := range slices.Sorted(maps.Keys(suspects)) {
		if rc.busy[p] || rc.attempts >= compareAtOnce {
			for _, r := range suspects[p] {
				rc.suspects.add(r, all[r])
			}
			continue
		}
		slices.SortFunc(suspects[p], older)
		list := rc.outstanding(suspects[p], all)
		if len(list) == 0 {
			rc.seen(suspects[p], true)
			continue
		}
		rc.busy[p] = true
		rc.attempts += len(list)
		rc.job(func(ctx context.Context) {
			whole := rc.compareWith(ctx, p, list)
			rc.post(func() {
				rc.compared(p, len(list))
				rc.seen(suspects[p], whole)
			})
		})
	}
}

// seen notes that what others sent of some runs is known, if all of it could be read. Where it could not, or what follows
// from the records is not known yet, the next sweep looks again. A run that is suspected anew is compared once more.
func (rc *reconciler) seen(runs []*run, whole bool) {
	for _, r := range runs {
		if !r.uncompared || r.phase != running {
			continue
		}
		_, anew := rc.suspects.runs[r]
		switch {
		case !whole || r.awaitingInput():
			rc.suspects.add(r, longGone) // also where less of it would be compared anew
		case !anew:
			r.uncompared = false
		}
	}
}

// compared ends the comparison of a partition. Once all are done, those that waited have their turn.
func (rc *reconciler) compared(partition, attempts int) {
	rc.busy[partition] = false
	if rc.attempts -= attempts; rc.attempts == 0 && len(rc.suspects.runs) > 0 {
		rc.suspects.compareSoon()
	}
}

// outstanding returns what should be out of some runs, as far as it may be looked for.
func (rc *reconciler) outstanding(runs []*run, gone map[*run]time.Duration) (list []expected) {
	for _, r := range runs {
		if r.phase != running {
			continue
		}
		holds := r.holds
		if r.uncompared { // what is not offered yet is not held back
			holds = heldBack(r)
		}
		rc.driver.outstanding(r, func(d machine.Dispatch, now time.Time) {
			held := holds(d)
			if held && !r.uncompared || !held && rc.tooSoon(r, d, gone[r]) {
				return
			}
			c := r.machine.Contract(d.Step)
			_, _, streams := machine.Streams(r.machine, d.Call)
			list = append(list, expected{
				streams: streams && !c.AtMostOnce, run: r, dispatch: d, attempt: r.attempt(d.Call, d.Attempt), shard: r.shard(d.Step), patience: c.Timeout + r.ackWait(d.Step), once: c.AtMostOnce || streams, held: held, now: now,
			})
		})
	}
	return list
}

// compareWith dispatches again what is neither on its way nor decided. The order matters: a worker creates the record
// before it takes the message away, so an attempt whose message is gone and that has no record after that is lost. And
// a plan is purged before its records, so if it stands after that, there never was one. It returns whether all of that
// could be read.
func (rc *reconciler) compareWith(ctx context.Context, partition int, list []expected) (whole bool) {
	pending := map[int]map[string]bool{} // by tool shard
	var missing, there []expected
	for _, x := range list {
		ids, ok := pending[x.shard]
		if !ok {
			var err error
			if ids, err = rc.store.Pending(ctx, x.shard, partition); err != nil {
				rc.log.Warn("the sweep can't see what is pending", "shard", x.shard, "error", err)
				return false
			}
			pending[x.shard] = ids
		}
		if ids[x.attempt.MessageID()] {
			if x.dispatch.At.IsZero() {
				there = append(there, x)
			}
			continue
		}
		if !x.held {
			missing = append(missing, x)
		}
	}
	rc.post(func() {
		for i := range there {
			rc.dispatcher.adopt(there[i].run, there[i].dispatch)
		}
	})
	open, whole := rc.undecided(ctx, partition, missing)
	return rc.repair(ctx, partition, open) && whole
}

// undecided returns those attempts of a partition that have no record, and whether all records could be read.
func (rc *reconciler) undecided(ctx context.Context, partition int, list []expected) (open []expected, whole bool) {
	shards := rc.store.Shards()
	whole = true
	if len(list) <= rc.reads {
		for _, x := range list {
			_, err := rc.store.Read(ctx, subjects.StepRecord(x.attempt, shards))
			if errors.Is(err, &fault.Error{Code: fault.NotFound}) {
				open, err = append(open, x), nil
			}
			whole = whole && err == nil
		}
		return open, whole
	}
	there, err := rc.store.Stored(ctx, subjects.LedgerShard(partition, shards), subjects.PartitionFilter(partition, shards))
	if err != nil {
		rc.log.Warn("the sweep can't see what is recorded", "partition", partition, "error", err)
		return nil, false
	}
	for _, x := range list {
		if there[subjects.StepRecord(x.attempt, shards)] == 0 {
			open = append(open, x)
		}
	}
	return open, true
}

// repair sends what was lost again, as far as its run goes on. It returns whether that could be read of all runs.
func (rc *reconciler) repair(ctx context.Context, partition int, lost []expected) (whole bool) {
	if len(lost) == 0 {
		return true
	}
	stands, whole := rc.standing(ctx, partition, lost)
	lost = slices.DeleteFunc(lost, func(x expected) bool {
		if !stands[x.run] || !x.once {
			return !stands[x.run]
		}
		claimed, err := rc.claimed(ctx, x)
		whole = whole && err == nil
		if claimed {
			return true
		}
		// A purge takes claims along, and takes the plan first: none is there only while its plan stands after the look.
		there, err := rc.stands(ctx, x.run)
		whole = whole && err == nil
		return !there
	})
	if len(lost) == 0 {
		return whole
	}
	rc.log.Info("dispatching again what is not on its way", "partition", partition, "steps", len(lost))
	rc.post(func() {
		for _, x := range lost {
			rc.sendAgain(x)
		}
	})
	return whole
}

// standing returns the runs whose plans are still there. Where one isn't, another owner has finished the run and purged
// it while this one was away. whole is that this could be read of all.
func (rc *reconciler) standing(ctx context.Context, partition int, lost []expected) (stands map[*run]bool, whole bool) {
	stands, whole = map[*run]bool{}, true
	var runs []*run
	for _, x := range lost {
		if _, known := stands[x.run]; !known {
			stands[x.run] = false
			runs = append(runs, x.run)
		}
	}
	if len(runs) > rc.reads {
		return rc.listed(ctx, partition, stands)
	}
	for _, r := range runs {
		there, err := rc.stands(ctx, r)
		stands[r], whole = there, whole && err == nil
	}
	return stands, whole
}

// listed is standing for many runs: by a list of the partition's plans. It can't tell a plan from one that was
// submitted under the same id since; the cursor brings that one, and whatever is dispatched of the other until then is
// an attempt that was decided before: it has the same idempotency key, and its record is refused.
func (rc *reconciler) listed(ctx context.Context, partition int, stands map[*run]bool) (map[*run]bool, bool) {
	shards := rc.store.Shards()
	plans, err := rc.store.Stored(ctx, subjects.LedgerShard(partition, shards), subjects.PartitionPlans(partition, shards))
	if err != nil {
		rc.log.Warn("the sweep can't see which plans stand", "partition", partition, "error", err)
		return nil, false
	}
	var gone []*run
	for r := range stands {
		stands[r] = plans[subjects.PlanRecord(r.id, shards)] > 0
		if !stands[r] {
			gone = append(gone, r)
		}
	}
	slices.SortFunc(gone, older)
	for _, r := range gone {
		rc.post(func() { rc.over(r) })
	}
	return stands, true
}

// stands reads one run's plan.
func (rc *reconciler) stands(ctx context.Context, r *run) (bool, error) {
	e, err := rc.store.Read(ctx, subjects.PlanRecord(r.id, rc.store.Shards()))
	if err == nil && e.Seq != r.generation || errors.Is(err, &fault.Error{Code: fault.NotFound}) {
		rc.post(func() { rc.over(r) })
		return false, nil
	}
	return err == nil, err
}

// over lets go of a run that came to its end without this owner. What was written for it too late is removed.
func (rc *reconciler) over(r *run) {
	if r.phase != running {
		return
	}
	rc.log.Info("a run was finished and purged by another owner", "tenant", r.id.Tenant, "run", r.id.Plain())
	rc.lifecycle.forget(r)
	rc.reaper.orphan(r.id, r.generation)
}

// claimed reports whether an at_most_once attempt may have begun. Once nobody can still be at it, nobody will ever know
// what became of it. One of which that can't be read is taken to have begun.
func (rc *reconciler) claimed(ctx context.Context, x expected) (bool, error) {
	e, err := rc.store.Read(ctx, subjects.ClaimRecord(x.attempt, rc.store.Shards()))
	if errors.Is(err, &fault.Error{Code: fault.NotFound}) {
		return false, nil
	}
	switch {
	case err != nil || x.now.Sub(e.Time) <= x.patience:
	case x.streams:
		rc.decider.fail(x.attempt, fault.New(fault.ToolFailed, "a worker had begun to write this answer, may have handed over steps of it, and was lost").
			WithHint("the next attempt is told what has begun"), x.run.trace)
	default:
		rc.decider.fail(x.attempt, fault.New(fault.OutcomeUnknown, "a worker had begun the step and was lost; whether it took effect is not known").
			WithHint("look at the tool's own system before you run it again"), x.run.trace)
	}
	return true, err
}

func (rc *reconciler) sendAgain(x expected) {
	if x.run.phase != running || !x.run.machine.Wanted(x.dispatch.Call, x.dispatch.Attempt) {
		return
	}
	f := x.run.flights.At(x.dispatch.Call)
	if f.ours(x.dispatch.Attempt) {
		return
	}
	if f == nil && x.dispatch.At.IsZero() {
		// This owner has not sent it, and the one before most likely had not either. Should it send it this very
		// moment, the stream takes only one of two regular dispatches.
		logOf(rc.log, &x.attempt, x.run.trace).Debug("dispatching what an earlier owner did not")
		rc.dispatcher.offer(x.run, x.dispatch, 0)
		return
	}
	x.run.repairs++
	logOf(rc.log, &x.attempt, x.run.trace).Debug("dispatching again what was lost")
	rc.dispatcher.offer(x.run, x.dispatch, x.run.repairs)
}
