package orchestrator

import "github.com/stepjet/stepjet/machine"

// line is what one run has of one tool: the calls that wait for room, in their order, and how many are out.
type line struct {
	run    *run
	window *window
	calls  fifo[held]
	out    int
	inTurn bool // it stands in the window's turns
	single bool // the run began while the tool was sequential-only

	ofRun, ofTenant *burden
	light           int64 // how many bytes a call may have that doesn't wait for bytes
	weight          func(held) int64
	awaitsBytes     bool // it stands in a burden's queue
}

// full reports whether the run may have no more of the tool out for now. A run that began with a tool that took one call at
// a time keeps to that: of its own calls no two are out together, also once the tool takes many.
func (x *line) full() bool {
	return x.out >= x.window.share || x.single && x.window.limit > 1 && x.out > 0
}

// held is a call that waits for room: a dispatch for now, and how often it was sent again. It is small because of a backlog
// there may be millions.
type held struct{ step, item, attempt, repair int32 }

func holding(d machine.Dispatch, repair int) held {
	return held{int32(d.Step), int32(d.Item), int32(d.Attempt), int32(repair)}
}

func (h held) dispatch() machine.Dispatch {
	return machine.Dispatch{Call: machine.Call{Step: int(h.step), Item: int(h.item)}, Attempt: int(h.attempt)}
}

// turns say whose call is next: tenants take turns by their weights, and the runs of a tenant one by one.
type turns struct {
	weights map[string]int // of tenants; 1 where there is none
	order   fifo[*tenant]
	tenants map[string]*tenant
}

type tenant struct {
	name  string
	left  int // of its turn
	lines fifo[*line]
}

// join lets a line take turns.
func (t *turns) join(x *line) {
	if x.inTurn {
		return
	}
	x.inTurn = true
	of := t.tenants[x.run.id.Tenant]
	if of == nil {
		of = &tenant{name: x.run.id.Tenant, left: t.weight(x.run.id.Tenant)}
		if t.tenants == nil {
			t.tenants = map[string]*tenant{}
		}
		t.tenants[of.name] = of
		t.order.push(of)
	}
	of.lines.push(x)
}

func (t *turns) weight(tenant string) int { return max(t.weights[tenant], 1) }

// serve gives the line whose turn it is to do, which tells whether the line is to have another turn.
func (t *turns) serve(do func(*line) (again bool)) {
	of := t.order.front()
	x := of.lines.pop()
	if do(x) {
		of.lines.push(x)
	} else {
		x.inTurn = false
	}
	of.left--
	switch {
	case of.lines.len() == 0:
		t.order.pop()
		delete(t.tenants, of.name)
	case of.left <= 0:
		t.order.pop()
		of.left = t.weight(of.name)
		t.order.push(of)
	}
}

func (t *turns) empty() bool { return t.order.len() == 0 }
