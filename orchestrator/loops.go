package orchestrator

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// A process has several loops, so that it uses all cores and a huge run shares its goroutine with few others. Each owns
// what its process owns of a fixed group of partitions, as an orchestrator of its own would: partitions never knew of
// each other, and so the loops needn't either. To other processes all of them are one member, which serves what any of
// them serves and tells the marks of all.
//
// What loops share is made for it: the registry, the cache of blobs and the room for large values lie behind locks that
// no step takes, and the room of a tool or a tenant (pool) is a few atomic numbers. Nothing of one loop waits for
// another.

// loops are those of one process.
type loops struct {
	all    []*loop
	shards int
	member membership

	mu       sync.Mutex
	served   []uint64 // by loop
	marks    [][]kv.Mark
	left     map[int]bool // have nothing any more that nobody else serves
	released func()       // nil: not about to stop
}

// membership is how a process speaks to the others.
type membership interface {
	Serve(partitions uint64)
	Mark(marks []kv.Mark)
	Marks() []kv.Mark
	Stored() (at time.Time, ago time.Duration)
}

// loopOf returns which of so many loops has a partition. As far as there are enough shards each loop has whole ones, so
// that the process reads each with one cursor.
func loopOf(partition, shards, loops int) int {
	at := subjects.LedgerShard(partition, shards)*(subjects.Partitions/shards) + partition/shards
	return at * loops / subjects.Partitions
}

func newLoops(ctx context.Context, p *self, store storage, reg *registry) *loops {
	n := p.cfg.loops(store.Shards())
	ls := &loops{
		shards: store.Shards(), served: make([]uint64, n), marks: make([][]kv.Mark, n), left: map[int]bool{},
	}
	in := newShared(n)
	var beginning atomic.Int64 // loops that have not owned anything yet
	beginning.Store(int64(n))
	for i := range n {
		l := newLoop(ctx, p, store, reg, in)
		l.partitions.mine = func(p int) bool { return loopOf(p, ls.shards, n) == i }
		l.partitions.gained = sync.OnceFunc(func() {
			if beginning.Add(-1) == 0 {
				close(p.ready)
			}
		})
		l.partitions.serves = func(set uint64) { ls.serve(i, set) }
		l.partitions.released = func() { ls.leave(i) }
		l.reaper.siblings = n - 1
		l.reaper.mark = func(marks []kv.Mark) { ls.mark(i, marks) }
		l.reaper.marks = func() []kv.Mark { return ls.others(i) }
		ls.all = append(ls.all, l)
	}
	return ls
}

// of returns the loop that has a partition, if this process does.
func (ls *loops) of(partition int) *loop { return ls.all[loopOf(partition, ls.shards, len(ls.all))] }

// each lets every loop do something.
func (ls *loops) each(do func(*loop)) {
	for _, l := range ls.all {
		l.post(func() { do(l) })
	}
}

// join makes the loops known to the other processes.
func (ls *loops) join(m membership) {
	ls.mu.Lock()
	ls.member = m
	ls.tellServed()
	ls.mu.Unlock()
	ls.each(func(l *loop) { l.times.pulse = m.Stored })
}

// serve takes what one loop has at hand.
func (ls *loops) serve(i int, set uint64) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.served[i] = set
	ls.tellServed()
}

// tellServed tells what all have at hand. ls.mu is held.
func (ls *loops) tellServed() {
	if ls.member != nil {
		ls.member.Serve(ls.together())
	}
}

func (ls *loops) together() (set uint64) {
	for _, s := range ls.served {
		set |= s
	}
	return set
}

// mark takes the marks of one loop, which take the place of its last.
func (ls *loops) mark(i int, marks []kv.Mark) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.marks[i] = marks
	if ls.member != nil {
		ls.member.Mark(slices.Concat(ls.marks...))
	}
}

// others returns the marks of all but one loop, and those of other processes.
func (ls *loops) others(i int) (all []kv.Mark) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for k, marks := range ls.marks {
		if k != i {
			all = append(all, marks...)
		}
	}
	if ls.member != nil {
		all = append(all, ls.member.Marks()...)
	}
	return all
}

// whenLeft calls do once, as soon as no loop has anything that nobody else serves.
func (ls *loops) whenLeft(do func()) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.released = sync.OnceFunc(do)
}

// leave notes that a loop has nothing that nobody else serves. It counts once the process is about to stop.
func (ls *loops) leave(i int) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.released == nil {
		return
	}
	ls.left[i] = true
	if len(ls.left) == len(ls.all) {
		ls.released()
	}
}

// run works until ctx ends.
func (ls *loops) run(ctx context.Context) {
	var running sync.WaitGroup
	for _, l := range ls.all {
		running.Go(func() { l.run(ctx) })
	}
	running.Wait()
}

// close ends cursors and waits for jobs, at most for the time given.
func (ls *loops) close(patience time.Duration) {
	var closing sync.WaitGroup
	for _, l := range ls.all {
		closing.Go(func() { l.close(patience) })
	}
	closing.Wait()
}

// owned returns the partitions that the loops own. Errors: the end of ctx.
func (ls *loops) owned(ctx context.Context) (owned partitionSet, err error) {
	for _, l := range ls.all {
		mine, err := look(ctx, l, l.cursors.set)
		if err != nil {
			return owned, err
		}
		owned.add(mine)
	}
	return owned, nil
}

// look returns what is seen on a loop. Errors: the end of ctx.
func look[T any](ctx context.Context, l *loop, see func() T) (seen T, err error) {
	return await(ctx, l, func(tell func(T)) { tell(see()) })
}

// await has a look begun on a loop, and returns what it tells that it saw: perhaps some turns later.
func await[T any](ctx context.Context, l *loop, begin func(tell func(T))) (seen T, err error) {
	answer := make(chan T, 1)
	l.post(func() {
		if ctx.Err() == nil { // else nobody waits
			begin(func(seen T) { answer <- seen })
		}
	})
	select {
	case seen = <-answer:
		return seen, nil
	case <-ctx.Done():
		return seen, kv.Fault(context.Cause(ctx))
	}
}

// watchNoResponders lets the announcers hear where nobody listens.
func (ls *loops) watchNoResponders(nc *nats.Conn) (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, end := range stops {
			end()
		}
	}
	for _, l := range ls.all {
		end, err := l.announcer.watchNoResponders(nc)
		if err != nil {
			stop()
			return nil, err
		}
		stops = append(stops, end)
	}
	return stop, nil
}
