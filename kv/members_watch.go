package kv

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// seenMember is what is known of one member.
type seenMember struct {
	Member
	pulse   string // where it listens
	knows   []string
	renewed time.Time // when its key was last seen written, by the own clock
	heard   time.Time // last sign of life: a renewal or an answer
	unheard time.Time // since when nobody listens there; zero: somebody does
}

// memberNews is one thing that the watch or a pulse tells.
type memberNews struct {
	id       string
	body     []byte // of its key
	stored   time.Time
	gone     bool // it left
	expired  bool // its key did
	complete bool
	lost     bool
	needs    bool // what the ledger needs: complete, lost, or something of it has changed
	answered bool // it answered a pulse
	unheard  bool // nobody listens where it should
}

// follow reads the keys that are there, then all changes, into news.
func (m *Membership) follow(ctx context.Context) error {
	_, err := m.s.newCursor(ctx, "KV_"+subjects.MembersBucket, []string{memberPrefix + ">"},
		func(e Entry) {
			n := memberNews{id: strings.TrimPrefix(e.Subject, memberPrefix), body: e.Data, stored: e.Time}
			n.expired = first(e.Header, jetstream.MarkerReasonHeader) != ""
			n.gone = !n.expired && operation(e.Header) != ""
			m.note(ctx, n)
		},
		func(uint64) { m.note(ctx, memberNews{complete: true}) },
		func(error) { m.note(ctx, memberNews{lost: true}) })
	return err
}

func (m *Membership) note(ctx context.Context, n memberNews) {
	select {
	case m.news <- n:
	case <-ctx.Done():
	}
}

// followAgain reads anew after the watch was lost.
func (m *Membership) followAgain(ctx context.Context) {
	for m.follow(ctx) != nil && m.s.pause(ctx, memberRescan) {
	}
}

// followNeeds reads what the runs of the ledger need, then all changes, into news.
func (m *Membership) followNeeds(ctx context.Context) error {
	return m.s.registry.needs.follow(ctx,
		func() { m.note(ctx, memberNews{needs: true}) },
		func() { m.note(ctx, memberNews{needs: true, complete: true}) },
		func() { m.note(ctx, memberNews{needs: true, lost: true}) })
}

func (m *Membership) followNeedsAgain(ctx context.Context) {
	for m.followNeeds(ctx) != nil && m.s.pause(ctx, memberRescan) {
	}
}

func (m *Membership) run(ctx context.Context) {
	defer m.closeInboxes()
	m.looked = time.Now()
	renew, rescan, pulse := time.NewTicker(memberRenewal), time.NewTicker(memberRescan), time.NewTicker(pulseEvery)
	defer renew.Stop()
	defer rescan.Stop()
	defer pulse.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-m.news:
			m.hear(ctx, n)
		case <-m.touch:
			m.renewed(ctx)
			m.report()
		case <-renew.C:
			m.renewed(ctx)
		case <-rescan.C:
			m.expire()
		case <-pulse.C:
			m.feel()
		}
	}
}

func (m *Membership) renewed(ctx context.Context) {
	if err := m.renew(ctx); err != nil && ctx.Err() == nil {
		m.s.cfg.Logger.Warn("the member key could not be renewed; it is tried again", "member", m.id, "error", err)
	}
}

// hear takes what the watch or a pulse tells.
func (m *Membership) hear(ctx context.Context, n memberNews) {
	now, x := time.Now(), m.seen[n.id]
	switch {
	case n.needs && n.lost:
		m.s.spawn(func() { m.followNeedsAgain(ctx) }) // what was read stands until then
		return
	case n.needs:
		m.needed = m.needed || n.complete
	case n.lost:
		m.s.spawn(func() { m.followAgain(ctx) }) // those who left meanwhile go when their renewals do not come
		return
	case n.answered:
		if x != nil {
			x.heard, x.unheard = now, time.Time{}
		}
		return
	case n.unheard:
		m.silent(x, now)
	case n.complete:
		m.complete = true
	case n.gone, n.expired && (x == nil || !x.credible(now)):
		delete(m.seen, n.id)
	case n.expired:
	default:
		said := wire.ParseMember(n.body)
		if n.id == m.id {
			m.storedAt(n.stored, now)
		} else {
			m.heed(said.Marks)
		}
		m.seen[n.id] = &seenMember{Member: Member{ID: n.id, Serves: said.Serves, Leaving: said.Leaving}, pulse: said.Pulse, knows: said.Knows, renewed: now, heard: now}
	}
	m.report()
}

// storedAt takes when a server stored the own key.
func (m *Membership) storedAt(at, came time.Time) {
	m.s.archive.tenants.stands(at)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stored, m.came = at, came
}

// expire forgets those of whom nothing was heard. Where this process itself did not run, or can't renew its own key,
// it has no right to say so: everybody is given time to be heard of again.
func (m *Membership) expire() {
	now := time.Now()
	asleep := now.Sub(m.looked) > 2*memberRescan
	m.looked = now
	if asleep || now.Sub(m.written) > 2*memberRenewal || !m.s.nc.IsConnected() {
		for _, x := range m.seen {
			x.renewed, x.heard, x.unheard = now, now, time.Time{}
		}
		return
	}
	maps.DeleteFunc(m.seen, func(id string, x *seenMember) bool {
		return id != m.id && now.Sub(x.renewed) > memberPatience && !x.credible(now)
	})
	m.report()
}

// report tells who is there, if anything of that has changed. The own id is among them from the start.
func (m *Membership) report() {
	if !m.complete || !m.needed {
		return
	}
	needs, self := m.s.registry.needs.all(), m.self()
	self.Lacks = wire.Lacking(needs, m.s.cfg.Knows.Names())
	all := []Member{self}
	for id, x := range m.seen {
		if id != m.id {
			other := x.Member
			other.Lacks = wire.Lacking(needs, x.knows)
			all = append(all, other)
		}
	}
	slices.SortFunc(all, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	if !slices.Equal(all, m.told) {
		m.told = all
		m.changed(slices.Clone(all))
	}
}

// heed keeps marks of another at hand.
func (m *Membership) heed(marks []Mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heard.hear(marks)
}

// A member listens on an inbox of its own, which stands in its key, and the others ask there now and then. When a
// process dies its connection closes, and from then on the server answers that nobody is listening: that is known at
// once, and no load makes it look so, while a lease has to be long enough for a process that is merely slow. The
// lease remains for those that fall silent with their connection open (a machine without power, a cut cable).
type pulse struct {
	subject string // where this member listens
	answers string // where it hears of the others, with the trailing dot
	subs    []*nats.Subscription
}

const (
	// pulseEvery is how often each of the others is asked.
	pulseEvery = 250 * time.Millisecond
	// pulseGone is how long nobody may have been listening until a member is taken for gone. One that is connected to
	// a server that ended comes back to another within about half a second.
	pulseGone = time.Second
	// pulseMissed is how long its key must not have been renewed besides: in a cluster whose servers don't all reach
	// each other, nobody may be heard listening who is well.
	pulseMissed = memberRenewal + memberRenewal/2
	// pulseCredit is how long an answer counts as a sign of life though the key is not renewed, which nobody can do
	// while the members' bucket has no leader.
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
		unheard := NoResponders(a)
		m.note(ctx, memberNews{id: a.Subject[len(m.pulse.answers):], unheard: unheard, answered: !unheard})
	})
	m.pulse.subs = []*nats.Subscription{asked}
	if err != nil {
		m.closeInboxes()
		return err
	}
	m.pulse.subs = append(m.pulse.subs, heard)
	return nil
}

// closeInboxes closes the inboxes.
func (m *Membership) closeInboxes() {
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
func (m *Membership) silent(x *seenMember, now time.Time) {
	switch {
	case x == nil:
	case x.unheard.IsZero():
		x.unheard = now
	case now.Sub(x.unheard) >= pulseGone && now.Sub(x.renewed) >= pulseMissed:
		delete(m.seen, x.ID)
	}
}

// credible reports whether a member is alive though its key is not renewed.
func (x *seenMember) credible(now time.Time) bool {
	return now.Sub(x.heard) < memberRenewal && now.Sub(x.renewed) < pulseCredit
}
