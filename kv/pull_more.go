package kv

import (
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// More asks for up to n steps beyond those asked for already, of what is there within wait. It is for those who take
// several steps at once: they come without a slot of their own (Delivery.Extra), so no Release follows them. The request
// ends with wait, so nothing is drawn away from other workers for longer. One that is lost is not repeated.
func (p *Puller) More(n int, wait time.Duration) {
	p.mu.Lock()
	n -= p.asked
	if p.draining || n <= 0 || wait <= 0 {
		p.mu.Unlock()
		return
	}
	if p.extra == nil {
		fresh, err := p.listen(p.surplus)
		if err != nil { // the connection is closed for good
			p.mu.Unlock()
			return
		}
		p.extra = fresh
	}
	if end := time.Now().Add(wait); end.After(p.until) {
		p.until = end
	}
	to := p.extra.inbox
	p.mu.Unlock()
	size := strconv.Itoa(n)
	_ = p.s.nc.PublishRequest(p.next, to+size, []byte(`{"batch":`+size+`,"expires":`+strconv.FormatInt(int64(wait), 10)+`}`))
}

// Limit bounds how many steps may be asked for at a time, besides those of More: 0 for none. Requests that are out stay out.
func (p *Puller) Limit(n int) {
	p.mu.Lock()
	p.most = n
	p.mu.Unlock()
	p.ask()
}

// Take takes a free slot without a step, for a Release later. It reports false if there is none.
func (p *Puller) Take() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free <= 0 {
		return false
	}
	p.free--
	return true
}

// Free gives the number of free slots.
func (p *Puller) Free() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.free
}

// surplus takes a step of More. What the server says of such a request is of no matter: it ends by itself.
func (p *Puller) surplus(on *line, m *nats.Msg) {
	if status(m) != "" {
		return
	}
	if d := p.delivery(on, m); d != nil {
		d.Extra = true
		p.call(d)
	}
}

// Anew turns to new inboxes, for who no longer trusts what may be on its way to the old ones. That is still handed on, and can be
// told by Delivery.Asked from what is asked for from now on.
func (p *Puller) Anew() {
	p.mu.Lock()
	extra := p.extra
	p.extra = nil
	p.mu.Unlock()
	if extra != nil {
		_ = extra.sub.Drain() // fails only if it is closed already
	}
	_ = p.turn() // fails only where nothing is asked for any more
}

// Since is when the inbox that steps are asked for on was opened: what came of earlier ones has an earlier Delivery.Asked.
func (p *Puller) Since() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.line.opened
}
