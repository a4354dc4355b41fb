package kv

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/subjects"
)

const (
	headerTTL     = "Nats-TTL"
	memberRenewal = memberTTL / 3
	memberRescan  = time.Second
)

// Join keeps a member's key alive until leave is called, and reports the live members at once and whenever they change,
// from one goroutine. A watch tells of changes at once, also of keys that expired; a scan every second besides makes
// up for what a watch may miss. leave removes the key, so that the others need not wait for its end, and returns once
// changed is not called any more. Errors as those of Create.
func (s *Store) Join(ctx context.Context, id string, changed func(members []string)) (leave func(), err error) {
	bucket, err := s.js.KeyValue(ctx, subjects.MembersBucket)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	m := &membership{s: s, bucket: bucket, id: id, changed: changed}
	if err := m.renew(ctx); err != nil {
		return nil, s.explain(ctx, err)
	}
	work, cancel := context.WithCancel(s.ctx)
	done := make(chan struct{})
	if !s.spawn(func() { defer close(done); m.run(work) }) {
		cancel()
		return nil, errClosed()
	}
	return sync.OnceFunc(func() {
		cancel()
		<-done
		end, stop := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer stop()
		_ = bucket.Delete(end, id) // if that fails, the key expires
	}), nil
}

type membership struct {
	s       *Store
	bucket  jetstream.KeyValue
	id      string
	changed func([]string)
	seq     uint64
	known   []string
}

// renew writes the key again with a new time to live. It names the sequence that it replaces, so that two processes with
// one id would notice.
func (m *membership) renew(ctx context.Context) error {
	msg := &nats.Msg{
		Subject: "$KV." + subjects.MembersBucket + "." + m.id,
		Header:  nats.Header{headerTTL: {strconv.Itoa(int(memberTTL/time.Second)) + "s"}},
	}
	ack, err := m.s.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequencePerSubject(m.seq))
	if err == nil {
		m.seq = ack.Sequence
		return nil
	}
	if apiCode(err) != codeWrongLastSequence {
		return err
	}
	// The key expired, or an answer was lost: what is there now is the start.
	m.seq = 0
	if e, readErr := m.s.Read(ctx, msg.Subject); readErr == nil {
		m.seq = e.Seq
	}
	return err
}

func (m *membership) run(ctx context.Context) {
	renew, rescan := time.NewTicker(memberRenewal), time.NewTicker(memberRescan)
	defer renew.Stop()
	defer rescan.Stop()
	updates := m.watch(ctx)
	m.scan(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-renew.C:
			if err := m.renew(ctx); err != nil && ctx.Err() == nil {
				m.s.cfg.Logger.Warn("the member key could not be renewed; tried again in a moment", "member", m.id, "error", err)
				_ = m.renew(ctx)
			}
		case <-rescan.C:
			m.scan(ctx)
		case _, ok := <-updates:
			if !ok {
				updates = nil // the scans go on
				continue
			}
			m.scan(ctx)
		}
	}
}

// watch gives a channel that has something whenever a key may have come or gone; nil where it can't be had.
func (m *membership) watch(ctx context.Context) <-chan jetstream.KeyValueEntry {
	w, err := m.bucket.WatchAll(ctx, jetstream.MetaOnly())
	if err != nil {
		return nil
	}
	context.AfterFunc(ctx, func() { _ = w.Stop() })
	return w.Updates()
}

// scan reads who is there, from the leader, and reports it if it changed.
func (m *membership) scan(ctx context.Context) {
	one, cancel := context.WithTimeout(ctx, memberTTL)
	defer cancel()
	lister, err := m.bucket.ListKeysFiltered(one, ">")
	if err != nil {
		return // nobody is known to have gone; the next scan tells
	}
	var now []string
	for key := range lister.Keys() {
		now = append(now, key)
	}
	if one.Err() != nil {
		return
	}
	slices.Sort(now)
	if !slices.Equal(now, m.known) {
		m.known = now
		m.changed(slices.Clone(now))
	}
}
