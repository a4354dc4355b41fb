package orchestrator

import (
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/kv"
)

// audience knows whether anybody listens to the events of a run. Nearly always nobody does, and an event for each step is
// a good part of what a step costs; so now and then an event asks for an answer, which nobody gives: but where nobody
// listens at all the server says so. Until it does, somebody is assumed to listen. Whoever reads the state of a run
// (Watch does, once it has subscribed) counts as a listener too, so that nothing is missed from there on.
type audience struct {
	token uint64    // of its questions; 0 before the first
	asked time.Time // the last question
	none  bool      // the server's answer to it
}

// askEvery is how long the server's word counts: one who subscribes to a run that goes on misses that much at most.
const askEvery = 250 * time.Millisecond

// arrived lets the next event of a run be sent, whatever the server said.
func (a *audience) arrived() { a.asked = time.Time{} }

// tell sends an event of a run, if somebody may listen. Nothing rests on it: core NATS, at most once.
func (l *loop) tell(r *run, subject string, body func() []byte) {
	a, now := &r.audience, l.clock.Now()
	if now.Sub(a.asked) < askEvery {
		if !a.none {
			l.publish(subject, body())
		}
		return
	}
	if a.token == 0 {
		l.lastToken++
		a.token = l.lastToken
		l.listeners[a.token] = r
	}
	a.asked, a.none = now, false
	l.sent(subject, l.bus.PublishRequest(subject, l.answers+strconv.FormatUint(a.token, 36), body()))
}

// nobody takes the server's word that nobody listens to a run.
func (l *loop) nobody(token uint64) {
	if r := l.listeners[token]; r != nil {
		r.audience.none = true
	}
}

// unheard forgets a run that has no more to tell.
func (l *loop) unheard(r *run) { delete(l.listeners, r.audience.token) }

// hearNobody subscribes to what the server says of events that nobody listens to.
func (l *loop) hearNobody(nc *nats.Conn) (stop func(), err error) {
	l.answers = nc.NewInbox() + "."
	sub, err := nc.Subscribe(l.answers+"*", func(m *nats.Msg) {
		token, err := strconv.ParseUint(m.Subject[min(len(l.answers), len(m.Subject)):], 36, 64)
		if err == nil && kv.NoResponders(m) {
			l.post(func() { l.nobody(token) })
		}
	})
	if err != nil {
		return nil, kv.Fault(err)
	}
	return func() { _ = sub.Unsubscribe() }, nil // the connection may be gone already; then so is the subscription
}
