package kv

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

const (
	headerTTL = "Nats-TTL"
	// memberRenewal is how often a member's key is written anew.
	memberRenewal = memberTTL / 3
	// memberRescan is how often members are looked for that were not heard of.
	memberRescan = time.Second
	// memberPatience is how long after its last renewal a member is taken for gone, should the server's own notice of that
	// not come.
	memberPatience = memberTTL + 500*time.Millisecond
)

// Join keeps a member's key alive until leave is called, and reports the live members, sorted: once when they are known,
// then whenever they change, from one goroutine. A member that leaves is gone at once, one that dies after 3 s, by the
// server's notice that its key expired or because its renewals ceased; but while the own connection is away nobody is
// taken for gone. leave removes the key and returns once changed is not called any more; it must not be called from
// within changed. Ids are unique to a process. Errors as those of Create.
func (s *Store) Join(ctx context.Context, id string, changed func(members []string)) (leave func(), err error) {
	m := &membership{s: s, id: id, subject: memberPrefix + id, changed: changed, seen: map[string]time.Time{}, news: make(chan memberNews, 64)}
	if err := s.retry(ctx, m.renew); err != nil {
		return nil, err
	}
	work, cancel := context.WithCancel(s.ctx)
	if err := m.follow(work); err != nil {
		cancel()
		return nil, err
	}
	done := make(chan struct{})
	if !s.spawn(func() { defer close(done); m.run(work) }) {
		cancel()
		return nil, errClosed()
	}
	return sync.OnceFunc(func() {
		cancel()
		<-done
		end, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		m.leave(end)
	}), nil
}

var memberPrefix = subjects.BucketSubject(subjects.MembersBucket, "")

// membership is one member: what it keeps alive, and whom it knows. Except for news its fields belong to one goroutine.
type membership struct {
	s       *Store
	id      string
	subject string
	changed func([]string)
	seq     uint64 // of the own key
	news    chan memberNews

	seen     map[string]time.Time // when each member was last heard of, by the own clock
	complete bool                 // the first reading is over
	told     []string
	looked   time.Time
}

// memberNews is one thing that the watch tells.
type memberNews struct {
	id       string
	gone     bool
	complete bool
	lost     bool
}

// renew writes the key anew, with a new time to live. It names the sequence that it replaces, so that two processes of
// one id would notice; where another sequence is there (the key expired, or an answer was lost) it goes on from that.
func (m *membership) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, memberTTL)
	defer cancel()
	err := m.write(ctx, wire.Versioned())
	if apiCode(err) != codeWrongLastSequence {
		return err
	}
	m.seq = 0
	if e, err := m.s.Read(ctx, m.subject); err == nil {
		m.seq = e.Seq
	}
	return m.write(ctx, wire.Versioned())
}

func (m *membership) write(ctx context.Context, h nats.Header) error {
	h[headerTTL] = []string{strconv.Itoa(int(memberTTL/time.Second)) + "s"}
	ack, err := m.s.js.PublishMsg(ctx, &nats.Msg{Subject: m.subject, Header: h}, jetstream.WithExpectLastSequencePerSubject(m.seq))
	if err == nil {
		m.seq = ack.Sequence
	}
	return err
}

// leave puts a marker in the key's place, which tells the others at once and expires as the key would have.
func (m *membership) leave(ctx context.Context) {
	marker := deletion()
	if apiCode(m.write(ctx, marker)) != codeWrongLastSequence {
		return // if it failed, the key expires
	}
	if e, err := m.s.Read(ctx, m.subject); err == nil { // a renewal was on its way, and nobody waited for its answer
		m.seq = e.Seq
		_ = m.write(ctx, marker)
	}
}

// follow reads the keys that are there, then all changes, into news.
func (m *membership) follow(ctx context.Context) error {
	tell := func(n memberNews) {
		select {
		case m.news <- n:
		case <-ctx.Done():
		}
	}
	_, err := m.s.newCursor(ctx, "KV_"+subjects.MembersBucket, []string{memberPrefix + ">"},
		func(e Entry) {
			tell(memberNews{id: strings.TrimPrefix(e.Subject, memberPrefix), gone: operation(e.Header) != ""})
		},
		func(uint64) { tell(memberNews{complete: true}) },
		func(error) { tell(memberNews{lost: true}) })
	return err
}

// followAgain reads anew after the watch was lost.
func (m *membership) followAgain(ctx context.Context) {
	for m.follow(ctx) != nil && m.s.pause(ctx, memberRescan) {
	}
}

func (m *membership) run(ctx context.Context) {
	renew, rescan := time.NewTicker(memberRenewal), time.NewTicker(memberRescan)
	defer renew.Stop()
	defer rescan.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-m.news:
			m.hear(ctx, n)
		case <-renew.C:
			if err := m.renew(ctx); err != nil && ctx.Err() == nil {
				m.s.cfg.Logger.Warn("the member key could not be renewed; it is tried again", "member", m.id, "error", err)
			}
		case <-rescan.C:
			m.expire()
		}
	}
}

// hear takes what the watch tells.
func (m *membership) hear(ctx context.Context, n memberNews) {
	switch {
	case n.lost:
		m.s.spawn(func() { m.followAgain(ctx) }) // those who left meanwhile go when their renewals do not come
		return
	case n.complete:
		m.complete = true
	case n.gone:
		delete(m.seen, n.id)
	default:
		m.seen[n.id] = time.Now()
	}
	m.report()
}

// expire forgets those whose renewals ceased. Where this process itself did not run or was cut off it has no right to say
// so: everybody is given time to be heard of again.
func (m *membership) expire() {
	now := time.Now()
	asleep := now.Sub(m.looked) > 2*memberRescan
	m.looked = now
	if asleep || !m.s.nc.IsConnected() {
		for id := range m.seen {
			m.seen[id] = now
		}
		return
	}
	maps.DeleteFunc(m.seen, func(id string, at time.Time) bool { return id != m.id && now.Sub(at) > memberPatience })
	m.report()
}

// report tells who is there, if that has changed. The own id is among them from the start.
func (m *membership) report() {
	if !m.complete {
		return
	}
	m.seen[m.id] = time.Now()
	now := slices.Sorted(maps.Keys(m.seen))
	if !slices.Equal(now, m.told) {
		m.told = now
		m.changed(slices.Clone(now))
	}
}
