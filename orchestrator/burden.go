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

func (b *burden) wake(send func(*window)) {
	for n := b.waiting.len(); n > 0 && !b.full(); n-- {
		x := b.waiting.pop()
		b.claim()
		x.awaitsBytes = false
		x.window.turn(x)
		send(x.window)
	}
}
