package kv

import (
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// More asks for up to n steps beyond those asked for already, of what is there within wait. It is for those who take
// several steps at once: they come without a slot of their own (Delivery.Extra), so no Release follows them. The
// request ends with wait, so nothing is drawn away from other workers for longer. One that is lost is not repeated.
func (p *Puller) More(n int, wait time.Duration) {
	p.mu.Lock()
	n -= p.asked
	if p.draining || n <= 0 || wait <= 0 {
		p.mu.Unlock()
		return
	}
	if p.extra == nil {
		fresh, err := p.listen(p.takeExtra)
		if err != nil { // the connection is closed for good
			p.mu.Unlock()
			return
		}
		p.extra = fresh
	}
	if end := time.Now().Add(wait); end.After(p.until) {
		p.until = end
	}
	to := p.extra.prefix
	p.mu.Unlock()
	size := strconv.Itoa(n)
	_ = p.s.nc.PublishRequest(p.next, to+size, []byte(`{"batch":`+size+`,"expires":`+strconv.FormatInt(int64(wait), 10)+`}`))
}

// Limit bounds how many steps may be asked for at a time, besides those of More: 0 for none. Requests that are out
// stay out.
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

// Free returns the number of free slots.
func (p *Puller) Free() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.free
}

// takeExtra takes a step of More. What the server says of such a request is of no matter: it ends by itself.
func (p *Puller) takeExtra(on *inbox, m *nats.Msg) {
	if status(m) != "" {
		return
	}
	if d := p.delivery(on, m); d != nil {
		d.Extra = true
		p.call(d)
	}
}

// Anew turns to new inboxes, for who no longer trusts what may be on its way to the old ones. That is still handed
// on, and can be told by Delivery.Asked from what is asked for from now on.
func (p *Puller) Anew() {
	p.mu.Lock()
	extra := p.extra
	p.extra = nil
	p.mu.Unlock()
	if extra != nil {
		_ = extra.sub.Drain() // fails only if it is closed already
	}
	_ = p.reopen() // fails only where nothing is asked for any more
}

// Since is when the inbox that steps are asked for on was opened: what came of earlier ones has an earlier
// Delivery.Asked.
func (p *Puller) Since() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inbox.opened
}

// A pull request lives for pullExpires at the server, which says every pullHeartbeat that it is there; after more
// than two silent intervals it is taken for lost. After a refusal the next request waits for pullPause. A request
// doesn't live long, for while a server of a cluster is silent, the others go on sending steps to who asked through
// it: each of them is lost until its lease ends.
const (
	pullExpires   = 5 * time.Second
	pullHeartbeat = 2 * time.Second
	pullSilence   = 4500 * time.Millisecond
	pullPause     = 250 * time.Millisecond
)

// Where a process takes the steps of more than manyPullers tools, those for which nothing came lately ask less often,
// for thousands that ask every few seconds keep a server busy: then a request that a silent server lost is noticed
// later. These times are for up to idlePullers tools; more take them in proportion, but at most idleMost times as
// long.
const (
	manyPullers   = 100
	idleAfter     = 30 * time.Second
	idleExpires   = 30 * time.Second
	idleHeartbeat = 12 * time.Second
	idleSilence   = 27 * time.Second
	idlePullers   = 1000
	idleMost      = 4
)

// due returns how long nothing need be looked at: until a request counts as lost, or another may be sent after a
// refusal. All else is told.
func (p *Puller) due() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch now := time.Now(); {
	case p.again.After(now):
		return p.again.Sub(now)
	case p.asked > 0:
		return max(p.heard.Add(p.silence).Sub(now), pullPause)
	}
	return pullExpires
}

// wake has watch look anew at when something is due, which is sooner than it knows.
func (p *Puller) wake() {
	select {
	case p.sooner <- struct{}{}:
	default: // it is told already
	}
}

// pullRequest is the body of a request.
func pullRequest(size string, expires, heartbeat time.Duration) []byte {
	b := make([]byte, 0, 96)
	b = append(b, `{"batch":`...)
	b = append(b, size...)
	b = append(b, `,"expires":`...)
	b = strconv.AppendInt(b, int64(expires), 10)
	b = append(b, `,"idle_heartbeat":`...)
	b = strconv.AppendInt(b, int64(heartbeat), 10)
	return append(b, '}')
}

// control takes a status: 100 is a heartbeat, all others end a request.
func (p *Puller) control(on *inbox, m *nats.Msg, code string) {
	if code == "100" {
		p.mu.Lock()
		p.heard = time.Now()
		p.mu.Unlock()
		return
	}
	if code == "503" || code == "409" && strings.EqualFold(first(m.Header, "Description"), consumerDeleted) {
		p.mu.Lock()
		lost := p.lost
		p.mu.Unlock()
		lost()
	}
	left, ok := number(first(m.Header, "Nats-Pending-Messages"))
	if !ok {
		left, _ = number(m.Subject[min(len(on.prefix), len(m.Subject)):])
	}
	p.unasked(on, int(min(left, 1<<30)), code != "408") // 408: only its time was over
	p.ask()
}

// consumerDeleted is what a request ends with whose consumer is deleted meanwhile; one that comes later is answered
// by nobody.
const consumerDeleted = "Consumer Deleted"

// Lost lets do be told whenever it seems that the tool has no consumer to ask; do must not wait.
func (p *Puller) Lost(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = do
}
