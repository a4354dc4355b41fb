package worker

import "sync/atomic"

// maxIdle bounds the goroutines that wait for the next execution. Their stacks have grown already, which is what makes
// them worth keeping: a fresh goroutine spends more on growing its own than Stepjet does on the step.
const maxIdle = 256

// task is what a pool runs: an execution, or a batch of them.
type task interface{ run() }

// pool runs each task in a goroutine of its own, taking an idle one where there is one. It never makes one wait.
type pool struct {
	next  chan task
	stop  chan struct{}
	idle  atomic.Int32
	tasks *tally
}

func newPool(tasks *tally) *pool {
	return &pool{next: make(chan task), stop: make(chan struct{}), tasks: tasks}
}

func (p *pool) run(x task) {
	select {
	case p.next <- x:
	default:
		p.tasks.add()
		go p.loop(x)
	}
}

func (p *pool) loop(x task) {
	defer p.tasks.done()
	for {
		x.run()
		x = nil
		if p.idle.Add(1) > maxIdle {
			p.idle.Add(-1)
			return
		}
		select {
		case x = <-p.next:
			p.idle.Add(-1)
		case <-p.stop:
			return
		}
	}
}

// close lets idle goroutines end. Nothing may be run after it.
func (p *pool) close() { close(p.stop) }
