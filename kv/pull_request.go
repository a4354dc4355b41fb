package kv

import (
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// A pull request lives for pullExpires at the server, which says every pullHeartbeat that it is there; after more than
// two silent intervals it is taken for lost. After a refusal the next request waits for pullPause. A request doesn't live
// long, for while a server of a cluster is silent, the others go on sending steps to who asked through it: each of them is
// lost until its lease ends.
const (
	pullExpires   = 5 * time.Second
	pullHeartbeat = 2 * time.Second
	pullSilence   = 4500 * time.Millisecond
	pullPause     = 250 * time.Millisecond
)

// Where a process takes the steps of more than manyPullers tools, those for which nothing came lately ask less often, for
// thousands that ask every few seconds keep a server busy: then a request that a silent server lost is noticed later. These
// times are for up to idlePullers tools; more take them in proportion, but at most idleMost times as long.
const (
	manyPullers   = 100
	idleAfter     = 30 * time.Second
	idleExpires   = 30 * time.Second
	idleHeartbeat = 12 * time.Second
	idleSilence   = 27 * time.Second
	idlePullers   = 1000
	idleMost      = 4
)

// idleTimes gives how long a request lives where nothing came lately, how often the server says that it does, and after how much silence
// it counts as lost.
func (s *Store) idleTimes() (expires, heartbeat, silence time.Duration) {
	times := time.Duration(min(max(s.pullers.Load()/idlePullers, 1), idleMost))
	return times * idleExpires, times * idleHeartbeat, times * idleSilence
}

// due gives how long nothing need be looked at: until a request counts as lost, or another may be sent after a refusal. All else is told.
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

// look has watch look anew at when something is due, which is sooner than it knows.
func (p *Puller) look() {
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
func (p *Puller) control(on *line, m *nats.Msg, code string) {
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
		left, _ = number(m.Subject[min(len(on.inbox), len(m.Subject)):])
	}
	p.unasked(on, int(min(left, 1<<30)), code != "408") // 408: only its time was over
	p.ask()
}

// consumerDeleted is what a request ends with whose consumer is deleted meanwhile; one that comes later is answered by nobody.
const consumerDeleted = "Consumer Deleted"

// Lost lets do be told whenever it seems that the tool has no consumer to ask; do must not wait.
func (p *Puller) Lost(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = do
}
