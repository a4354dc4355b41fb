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

// announcer tells whoever listens what happens to runs. Nothing rests on it: core NATS, at most once.
type announcer struct {
	*env
	listeners map[uint64]*run // runs that may have some, by the token of their audience
	lastToken uint64
	answers   string // prefix of the subjects on which the server says that there are none
}

func newAnnouncer(e *env) *announcer { return &announcer{env: e, listeners: map[uint64]*run{}} }

// askEvery is how long the server's word counts: one who subscribes to a run that goes on misses that much at most.
const askEvery = 250 * time.Millisecond

// arrived lets the next event of a run be sent, whatever the server said.
func (a *audience) arrived() { a.asked = time.Time{} }

// tell sends an event of a run, if somebody may listen.
func (a *announcer) tell(r *run, subject string, body func() []byte) {
	of, now := &r.audience, a.clock.Now()
	if now.Sub(of.asked) < askEvery {
		if !of.none {
			a.publish(subject, body())
		}
		return
	}
	if of.token == 0 {
		a.lastToken++
		of.token = a.lastToken
		a.listeners[of.token] = r
	}
	of.asked, of.none = now, false
	a.sent(subject, a.bus.PublishRequest(subject, a.answers+strconv.FormatUint(of.token, 36), body()))
}

// nobody takes the server's word that nobody listens to a run.
func (a *announcer) nobody(token uint64) {
	if r := a.listeners[token]; r != nil {
		r.audience.none = true
	}
}

// forget drops a run that has no more to tell.
func (a *announcer) forget(r *run) { delete(a.listeners, r.audience.token) }

// watchNoResponders subscribes to what the server says of events that nobody listens to.
func (a *announcer) watchNoResponders(nc *nats.Conn) (stop func(), err error) {
	a.answers = nc.NewInbox() + "."
	sub, err := nc.Subscribe(a.answers+"*", func(m *nats.Msg) {
		token, err := strconv.ParseUint(m.Subject[min(len(a.answers), len(m.Subject)):], 36, 64)
		if err == nil && kv.NoResponders(m) {
			a.post(func() { a.nobody(token) })
		}
	})
	if err != nil {
		return nil, kv.Fault(err)
	}
	return func() { _ = sub.Unsubscribe() }, nil // the connection may be gone already; then so is the subscription
}
