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

// surplus takes a step of More. What the server says of such a request is of no matter: it ends by itself.
func (p *Puller) surplus(_ *line, m *nats.Msg) {
	if status(m) != "" {
		return
	}
	if d := p.delivery(m); d != nil {
		d.Extra = true
		p.call(d)
	}
}
