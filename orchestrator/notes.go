package orchestrator

import (
	"sync"
	"time"

	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// What the components of a loop note of a run, each for itself. It is memory, never truth: another owner finds it out
// again.

// audience knows whether anybody listens to the events of a run. Nearly always nobody does, and an event for each step
// is a good part of what a step costs; so now and then an event asks for an answer, which nobody gives: but where
// nobody listens at all the server says so. Until it does, somebody is assumed to listen. Whoever reads the state of a
// run (Watch does, once it has subscribed) counts as a listener too, so that nothing is missed from there on.
type audience struct {
	token uint64    // of its questions; 0 before the first
	asked time.Time // the last question
	none  bool      // the server's answer to it
}

// arrived lets the next event of a run be sent, whatever the server said.
func (a *audience) arrived() { a.asked = time.Time{} }

// lettersWritten are the calls of a run whose dead letters stand, as far as this process knows. Writing one again does
// no harm.
type lettersWritten struct {
	mu    sync.Mutex
	calls map[machine.Call]bool
}

func (w *lettersWritten) add(c machine.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[c] = true
}

func (w *lettersWritten) has(c machine.Call) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[c]
}

// askedPeople is what an owner knows of a run that asks people.
type askedPeople struct {
	entries map[machine.Call]questionEntry // that it has written, or is about to
	waiting map[machine.Call][]answerer    // who wait to be told what stands for their answer
}

// questionEntry is the entry of a question.
type questionEntry struct {
	number  int
	written bool
}

// answerer is told once a record was read that answers a question of a number.
type answerer struct {
	number int
	tell   func()
}

func (r *run) asks() *askedPeople {
	if r.people == nil {
		r.people = &askedPeople{entries: map[machine.Call]questionEntry{}, waiting: map[machine.Call][]answerer{}}
	}
	return r.people
}

// cleaner takes the secrets of a run out of what its workers say of failures: a second line behind the workers, of
// which one may not do so. It is made when the first error comes, since most runs have none.
type cleaner struct {
	made bool
	r    *wire.Redactor
}

// asked is what a step waits to be told.
type asked struct {
	step int
	what machine.Asked
}

// schemas are the input schemas of the tools of one run, by tool name.
type schemas map[string]*tool.Schema
