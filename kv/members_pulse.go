package kv

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
)

// A member listens on an inbox of its own, which stands in its key, and the others ask there now and then. When a process
// dies its connection closes, and from then on the server answers that nobody is listening: that is known at once, and
// no load makes it look so, while a lease has to be long enough for a process that is merely slow. The lease remains for
// those that fall silent with their connection open (a machine without power, a cut cable).
type pulse struct {
	subject string // where this member listens
	answers string // where it hears of the others, with the trailing dot
	subs    []*nats.Subscription
}

const (
	// pulseEvery is how often each of the others is asked.
	pulseEvery = 250 * time.Millisecond
	// pulseGone is how long nobody may have been listening until a member is taken for gone. One that is connected to a server
	// that ended comes back to another within about half a second.
	pulseGone = time.Second
	// pulseMissed is how long its key must not have been renewed besides: in a cluster whose servers don't all reach each
	// other, nobody may be heard listening who is well.
	pulseMissed = memberRenewal + memberRenewal/2
	// pulseCredit is how long an answer counts as a sign of life though the key is not renewed, which nobody can do while
	// the members' bucket has no leader.
	pulseCredit = 15 * time.Second
)

// listen makes the member's inboxes. What comes there goes to news.
func (m *Membership) listen(ctx context.Context) error {
	m.pulse.subject, m.pulse.answers = m.s.nc.NewInbox(), m.s.nc.NewInbox()+"."
	asked, err := m.s.nc.Subscribe(m.pulse.subject, func(q *nats.Msg) { _ = q.Respond(nil) }) // at most once, as all of this
	if err != nil {
		return err
	}
	heard, err := m.s.nc.Subscribe(m.pulse.answers+"*", func(a *nats.Msg) {
		deaf := NoResponders(a)
		m.note(ctx, memberNews{id: a.Subject[len(m.pulse.answers):], deaf: deaf, answered: !deaf})
	})
	m.pulse.subs = []*nats.Subscription{asked}
	if err != nil {
		m.deafen()
		return err
	}
	m.pulse.subs = append(m.pulse.subs, heard)
	return nil
}

// deafen closes the inboxes.
func (m *Membership) deafen() {
	for _, sub := range m.pulse.subs {
		_ = sub.Unsubscribe() // fails only when the connection is closed
	}
}

// feel asks all others whether they are there. An id is one token of a subject, as it is one of a key.
func (m *Membership) feel() {
	if !m.s.nc.IsConnected() {
		return
	}
	for id, x := range m.seen {
		if id != m.id && x.pulse != "" {
			_ = m.s.nc.PublishRequest(x.pulse, m.pulse.answers+id, nil)
		}
	}
}

// silent takes the server's word that nobody listens where x should.
func (m *Membership) silent(x *sighted, now time.Time) {
	switch {
	case x == nil:
	case x.deaf.IsZero():
		x.deaf = now
	case now.Sub(x.deaf) >= pulseGone && now.Sub(x.renewed) >= pulseMissed:
		delete(m.seen, x.ID)
	}
}

// credible reports whether a member is alive though its key is not renewed.
func (x *sighted) credible(now time.Time) bool {
	return now.Sub(x.heard) < memberRenewal && now.Sub(x.renewed) < pulseCredit
}
