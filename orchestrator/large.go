package orchestrator

import "context"

// largeRoom is the memory, in bytes, that jobs may take together for large values. What a plan or a tool makes large waits
// its turn; the other runs' jobs don't wait with it.
const largeRoom = 128 << 20

// larges are the jobs that wait for memory, in the order they came. They belong to the loop.
type larges struct {
	taken int64
	queue []largeJob
}

type largeJob struct {
	bytes int64
	do    func(ctx context.Context)
}

// large runs a job that needs about so many bytes of memory, as soon as there is room. One that needs more than all of it
// runs alone.
func (l *loop) large(bytes int64, do func(ctx context.Context)) {
	l.larges.queue = append(l.larges.queue, largeJob{bytes: min(bytes, largeRoom), do: do})
	l.admit()
}

func (l *loop) admit() {
	q := &l.larges
	for len(q.queue) > 0 && q.taken+q.queue[0].bytes <= largeRoom {
		x := q.queue[0]
		q.queue[0] = largeJob{}
		q.queue = q.queue[1:]
		q.taken += x.bytes
		l.job(func(ctx context.Context) {
			x.do(ctx)
			l.post(func() {
				q.taken -= x.bytes
				l.admit()
			})
		})
	}
}
