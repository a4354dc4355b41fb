package orchestrator

import (
	"context"
	"sync"
	"time"

	"github.com/stepjet/stepjet/kv"
)

// mailbox carries records and completions to the loop. Completions never block, because they come from goroutines that
// the loop's own publishes wait for; records do once too many are waiting, which slows the cursor down.
type mailbox struct {
	mu     sync.Mutex
	room   sync.Cond
	items  []item
	bytes  int
	closed bool
	wake   chan struct{}
}

type item struct {
	do    func() // or nil, and entry is a record
	entry kv.Entry
	from  *cursor
}

// mailboxBytes and mailboxItems bound the records that wait for the loop.
const (
	mailboxBytes = 64 << 20
	mailboxItems = 16384
)

func newMailbox() *mailbox {
	m := &mailbox{wake: make(chan struct{}, 1)}
	m.room.L = &m.mu
	return m
}

func (m *mailbox) post(do func()) {
	m.mu.Lock()
	m.items = append(m.items, item{do: do})
	m.mu.Unlock()
	m.signal()
}

func (m *mailbox) record(e kv.Entry, from *cursor) {
	m.mu.Lock()
	for !m.closed && (m.bytes > mailboxBytes || len(m.items) > mailboxItems) {
		m.room.Wait()
	}
	m.items = append(m.items, item{entry: e, from: from})
	m.bytes += len(e.Data)
	m.mu.Unlock()
	m.signal()
}

func (m *mailbox) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// take swaps the waiting items for an empty slice.
func (m *mailbox) take(empty []item) []item {
	m.mu.Lock()
	items := m.items
	m.items, m.bytes = empty[:0], 0
	m.mu.Unlock()
	m.room.Broadcast()
	return items
}

// close lets blocked senders go; what they send is not read any more.
func (m *mailbox) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.room.Broadcast()
}

// jobs does what must wait for I/O, beside the loop, a bounded number at once and the rest in the order they came. Its
// goroutines stay: their stacks have grown already, and growing anew for each job was a sixteenth of the
// orchestrator's CPU.
type jobs struct {
	ctx  context.Context
	most int // goroutines

	mu      sync.Mutex
	queue   []func(context.Context)
	more    sync.Cond // a job came, or closing began
	working int       // goroutines
	idle    int       // of them, those that wait and are not called yet
	gone    chan struct{}
	closing bool
}

const (
	maxJobs    = 64 // of a process, shared out among its loops
	minOwnJobs = 16 // that a loop may have, however many there are
)

func newJobs(ctx context.Context, loops int) *jobs {
	j := &jobs{ctx: ctx, most: max(maxJobs/max(loops, 1), minOwnJobs), gone: make(chan struct{})}
	j.more.L = &j.mu
	context.AfterFunc(ctx, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.wakeAll()
	})
	return j
}

// wakeAll lets the idle see that they are to end. j.mu is held.
func (j *jobs) wakeAll() {
	j.idle = 0
	j.more.Broadcast()
}

func (j *jobs) add(do func(context.Context)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closing && j.working == 0 {
		return
	}
	j.queue = append(j.queue, do)
	switch {
	case j.idle > 0:
		j.idle--
		j.more.Signal()
	case j.working < j.most:
		j.working++
		go j.work()
	}
}

func (j *jobs) work() {
	for do := j.next(); do != nil; do = j.next() {
		do(j.ctx)
	}
}

// next waits for a job; nil: the goroutine is to end.
func (j *jobs) next() (do func(context.Context)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.queue) == 0 && !j.closing && j.ctx.Err() == nil {
		j.idle++
		j.more.Wait() // who calls it takes it off idle
	}
	if len(j.queue) == 0 || j.ctx.Err() != nil {
		j.working--
		if j.closing && j.working == 0 {
			close(j.gone)
		}
		return nil
	}
	do, j.queue[0] = j.queue[0], nil
	j.queue = j.queue[1:]
	return do
}

func (j *jobs) together(n int) (done, wait func()) {
	var left sync.WaitGroup
	left.Add(n)
	return left.Done, left.Wait
}

// close waits until all jobs are done, at most for patience.
func (j *jobs) close(patience time.Duration) {
	j.mu.Lock()
	j.closing = true
	none := j.working == 0
	j.wakeAll()
	j.mu.Unlock()
	if none {
		return
	}
	select {
	case <-j.gone:
	case <-time.After(patience):
	}
}

// largeRoom is the memory, in bytes, that jobs may take together for large values. What a plan or a tool makes large
// waits its turn; the other runs' jobs don't wait with it.
const largeRoom = 128 << 20

// memoryRoom is the memory for large values. A process has one, which its loops share.
type memoryRoom struct {
	mu    sync.Mutex
	taken int64
	queue []largeJob // in the order they came
}

type largeJob struct {
	bytes int64
	start func()
}

// memory admits the jobs of a loop that need much of it.
type memory struct {
	*env
	room *memoryRoom
}

// reserve runs a job that needs about so many bytes of memory, as soon as there is room. One that needs more than all
// of it runs alone.
func (m *memory) reserve(bytes int64, do func(ctx context.Context)) {
	x := largeJob{bytes: min(bytes, largeRoom)}
	x.start = func() {
		m.job(func(ctx context.Context) {
			do(ctx)
			m.room.admit(-x.bytes, nil)
		})
	}
	m.room.admit(0, &x)
}

// admit starts the jobs that there is room for, after bytes have changed and one was added.
func (r *memoryRoom) admit(change int64, add *largeJob) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken += change
	if add != nil {
		r.queue = append(r.queue, *add)
	}
	for len(r.queue) > 0 && r.taken+r.queue[0].bytes <= largeRoom {
		x := r.queue[0]
		r.queue[0] = largeJob{}
		r.queue = r.queue[1:]
		r.taken += x.bytes
		x.start()
	}
}
