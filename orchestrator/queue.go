package orchestrator

import "github.com/stepjet/stepjet/machine"

// queue holds the calls of one tool that its window has no room for yet, and hands them out fairly: tenants take turns
// by their weights, the runs of a tenant take turns one by one, and the calls of a run come in their order.
type queue struct {
	weights map[string]int // of tenants; 1 where there is none
	turns   fifo[*tenantQueue]
	tenants map[string]*tenantQueue
	held    int
}

type tenantQueue struct {
	name string
	left int // of its turn
	runs fifo[*runQueue]
	byID map[*run]*runQueue
}

type runQueue struct {
	run   *run
	calls fifo[held]
}

// held is a call that waits for room.
type held struct {
	dispatch machine.Dispatch
	repair   int
}

func (q *queue) push(r *run, h held) {
	if q.tenants == nil {
		q.tenants = map[string]*tenantQueue{}
	}
	t := q.tenants[r.id.Tenant]
	if t == nil {
		t = &tenantQueue{name: r.id.Tenant, left: q.weight(r.id.Tenant), byID: map[*run]*runQueue{}}
		q.tenants[t.name] = t
		q.turns.push(t)
	}
	of := t.byID[r]
	if of == nil {
		of = &runQueue{run: r}
		t.byID[r] = of
		t.runs.push(of)
	}
	of.calls.push(h)
	q.held++
}

func (q *queue) weight(tenant string) int { return max(q.weights[tenant], 1) }

// pop takes out the call whose turn it is. It must not be called on an empty queue.
func (q *queue) pop() (*run, held) {
	t := q.turns.front()
	of := t.runs.pop()
	h := of.calls.pop()
	q.held--
	if of.calls.len() > 0 {
		t.runs.push(of)
	} else {
		delete(t.byID, of.run)
	}
	t.left--
	switch {
	case t.runs.len() == 0:
		q.turns.pop()
		delete(q.tenants, t.name)
	case t.left == 0:
		q.turns.pop()
		t.left = q.weight(t.name)
		q.turns.push(t)
	}
	return of.run, h
}
