package kv

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// sighted is what is known of one member.
type sighted struct {
	Member
	pulse   string // where it listens
	marks   []Mark
	renewed time.Time // when its key was last seen written, by the own clock
	heard   time.Time // last sign of life: a renewal or an answer
	deaf    time.Time // since when nobody listens there; zero: somebody does
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
	answered bool // it answered a pulse
	deaf     bool // nobody listens where it should
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

func (m *Membership) run(ctx context.Context) {
	defer m.deafen()
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
	case n.lost:
		m.s.spawn(func() { m.followAgain(ctx) }) // those who left meanwhile go when their renewals do not come
		return
	case n.answered:
		if x != nil {
			x.heard, x.deaf = now, time.Time{}
		}
		return
	case n.deaf:
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
		}
		m.seen[n.id] = &sighted{Member: Member{n.id, said.Serves, said.Leaving}, pulse: said.Pulse, marks: said.Marks, renewed: now, heard: now}
	}
	m.report()
}

func (m *Membership) storedAt(at, came time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stored, m.came = at, came
}

// expire forgets those of whom nothing was heard. Where this process itself did not run, or can't renew its own key, it has
// no right to say so: everybody is given time to be heard of again.
func (m *Membership) expire() {
	now := time.Now()
	asleep := now.Sub(m.looked) > 2*memberRescan
	m.looked = now
	if asleep || now.Sub(m.written) > 2*memberRenewal || !m.s.nc.IsConnected() {
		for _, x := range m.seen {
			x.renewed, x.heard, x.deaf = now, now, time.Time{}
		}
		return
	}
	maps.DeleteFunc(m.seen, func(id string, x *sighted) bool {
		return id != m.id && now.Sub(x.renewed) > memberPatience && !x.credible(now)
	})
	m.report()
}

// report tells who is there, if anything of that has changed. The own id is among them from the start.
func (m *Membership) report() {
	if !m.complete {
		return
	}
	all := []Member{m.self()}
	for id, x := range m.seen {
		if id != m.id {
			all = append(all, x.Member)
		}
	}
	m.heed()
	slices.SortFunc(all, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	if !slices.Equal(all, m.told) {
		m.told = all
		m.changed(slices.Clone(all))
	}
}

// heed keeps the others' marks at hand.
func (m *Membership) heed() {
	var all []Mark
	for id, x := range m.seen {
		if id != m.id {
			all = append(all, x.marks...)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heard = all
}
