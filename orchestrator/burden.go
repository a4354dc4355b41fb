package orchestrator

// A window counts calls. What calls cost the server, its disk and the workers' memory is their bytes, so those that are
// out are counted too, over all tools: of each run, and of each tenant. Where a bound is reached, only a call of few
// bytes goes still; the others wait in their lanes until something of theirs is decided.

// bounds are for the arguments that are out, in bytes. A call goes while less than a bound is out, so that one which is
// larger than the bound itself goes too, and what is out together may be more by one call.
type bounds struct{ run, tenant, light int64 }

// shipped are the bounds of a real orchestrator. 16 MiB of a run keep a round trip of a server that writes 100 MB/s
// under a fifth of a second, and are 64 calls of the largest arguments that travel in a message. 64 MiB of a tenant are
// half of the memory that large values may take (largeRoom), so no tenant takes all of it. Calls of a KiB wait for no
// bytes: 10,000 of them are less than one run's bound.
var shipped = bounds{run: 16 << 20, tenant: 64 << 20, light: 1 << 10}

// burden is the bytes that a run, or a tenant, has out.
type burden struct {
	of      string // whose, for people
	bytes   int64
	most    int64
	waiting fifo[*lane] // refused for bytes; there are some only while the bound is reached
	lanes   int         // that refer to it
	stake   stake       // of a tenant, in what the loops of the process share
}

func (b *burden) full() bool { return b != nil && b.stake.full(b.bytes, b.most) }

// add counts bytes that went, or were decided.
func (b *burden) add(bytes int64) {
	b.bytes += bytes
	b.stake.count(bytes)
	b.claim()
}

func (b *burden) claim() { b.stake.claim(b.bytes > 0 || b.waiting.len() > 0, b.waiting.len() > 0) }

// overfull returns the burden whose bound is reached, that of the run before that of the tenant; nil: none is.
func (x *lane) overfull() *burden {
	switch {
	case x.ofRun.full():
		return x.ofRun
	case x.ofTenant.full():
		return x.ofTenant
	}
	return nil
}

// stopped reports whether the first call of a lane, which has some, may not go now. Where that is for bytes, the lane
// waits for them.
func (x *lane) stopped() bool {
	if x.full() {
		return true
	}
	b := x.overfull()
	if b == nil || x.weight(x.calls.front()) <= x.light {
		return false
	}
	if !x.awaitsBytes {
		x.awaitsBytes = true
		b.waiting.push(x)
		b.claim()
	}
	return true
}

// loaded lets a lane take part in the burdens of its run and its tenant.
func (di *dispatcher) loaded(x *lane) {
	r := x.run
	if r.burden == nil {
		r.burden = &burden{of: "run", most: di.bounds.run}
	}
	of := di.burdens[r.id.Tenant]
	if of == nil {
		of = &burden{of: "tenant", most: di.bounds.tenant}
		di.burdens[r.id.Tenant] = of
		di.tenants.join(r.id.Tenant, &of.stake, di.post, func() { of.wake(di.dispatchHeld) })
	}
	of.lanes++
	x.ofRun, x.ofTenant, x.light = r.burden, of, di.bounds.light
	x.weight = func(h held) int64 {
		if r.phase != running {
			return 0 // it is not sent: nobody wants it any more
		}
		return r.argumentBytes(h.dispatch().Call)
	}
}

// weigh notes how many bytes a flight has, as soon as that is known or known better.
func (di *dispatcher) weigh(f *flight, bytes int64) {
	if f == nil || f.released {
		return
	}
	shrunk := bytes < f.bytes
	f.add(bytes - f.bytes)
	if shrunk { // never while a window is pumped: what is sent there had no bytes before
		di.eased(f.lane)
	}
}

func (f *flight) add(bytes int64) {
	f.bytes += bytes
	for _, b := range []*burden{f.lane.ofRun, f.lane.ofTenant} {
		if b != nil {
			b.add(bytes)
		}
	}
}

// eased lets those go on that waited for bytes, as far as there is room: the tenant's other runs before the run that
// made room. It must not be called while a window is pumped.
func (di *dispatcher) eased(x *lane) {
	x.ofTenant.wake(di.dispatchHeld)
	x.ofRun.wake(di.dispatchHeld)
	x.ofTenant.stake.leave()
}

func (b *burden) wake(send func(*window)) {
	for n := b.waiting.len(); n > 0 && !b.full(); n-- {
		x := b.waiting.pop()
		b.claim()
		x.awaitsBytes = false
		x.window.turn(x)
		send(x.window)
	}
}

// unloaded takes a lane of a run that is over, or another's, out of its tenant's burden.
func (di *dispatcher) unloaded(x *lane) {
	if x.ofTenant.lanes--; x.ofTenant.lanes == 0 {
		delete(di.burdens, x.run.id.Tenant)
		di.tenants.quit(x.run.id.Tenant, &x.ofTenant.stake)
	}
}
