package orchestrator

import "context"

// largeRoom is the memory, in bytes, that jobs may take together for large values. What a plan or a tool makes large waits
// its turn; the other runs' jobs don't wait with it.
const largeRoom = 128 << 20

// memory admits the jobs that need much of it, in the order they came. It belongs to the loop.
type memory struct {
	*env
	taken int64
	queue []largeJob
}

type largeJob struct {
	bytes int64
	do    func(ctx context.Context)
}

// reserve runs a job that needs about so many bytes of memory, as soon as there is room. One that needs more than all of it
// runs alone.
func (m *memory) reserve(bytes int64, do func(ctx context.Context)) {
	m.queue = append(m.queue, largeJob{bytes: min(bytes, largeRoom), do: do})
	m.admit()
}

func (m *memory) admit() {
	for len(m.queue) > 0 && m.taken+m.queue[0].bytes <= largeRoom {
		x := m.queue[0]
		m.queue[0] = largeJob{}
		m.queue = m.queue[1:]
		m.taken += x.bytes
		m.job(func(ctx context.Context) {
			x.do(ctx)
			m.post(func() {
				m.taken -= x.bytes
				m.admit()
			})
		})
	}
}
