package kv

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/internal/version"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

const (
	headerTTL = "Nats-TTL"
	// memberRenewal is how often a member's key is written anew.
	memberRenewal = memberTTL / 3
	// memberRescan is how often members are looked for that were not heard of.
	memberRescan = time.Second
	// memberPatience is how long after its last sign of life a member is taken for gone, should the server's own
	// notice of that not come.
	memberPatience = memberTTL + 500*time.Millisecond
)

// Members are the live orchestrators (subjects.MembersBucket): a key for each, which it renews and which expires when
// it does not. What a member says of itself is for the others to divide the partitions by; nothing that decides rests
// on it.
type Members struct {
	*account
	archive  *Archive
	registry *Registry
}

// Member is a live orchestrator, as its key tells.
type Member struct {
	ID string
	// Serves has a bit for each partition whose runs the member has at hand: whoever owned it before may let go of it.
	Serves uint64
	// Leaving says that it is about to end: it takes nothing over any more, and goes on with what it has until others
	// serve that, or for a few seconds.
	Leaving bool
	// Lacks names what runs of the ledger need and the member does not know (wire.Need), separated by commas; empty: it
	// knows all.
	Lacks string
}

var _ [64]struct{} = [subjects.Partitions]struct{}{} // as many as Serves has bits

// Membership is the own place among the members.
type Membership struct {
	s       *Members
	id      string
	subject string
	changed func([]Member)
	stop    func() // ends run and waits for it

	mu    sync.Mutex
	own   Member
	marks []Mark     // own
	heard heardMarks // of the others
	// stored is when the server stored the own key, and came when this process heard of it.
	stored, came time.Time
	touch        chan struct{} // own was changed

	// What follows belongs to one goroutine, run.
	seq      uint64    // of the own key
	written  time.Time // when it was last renewed
	news     chan memberNews
	seen     map[string]*seenMember
	complete bool // the first reading is over
	needed   bool // and that of what runs need
	told     []Member
	looked   time.Time
	pulse    pulse
}

// Join keeps a member's key alive until Leave is called, and reports the live members, sorted by their ids: once when
// they are known, then whenever anything of them changes, from one goroutine. A member that leaves is gone at once,
// one whose process dies within two seconds, since it is not connected any more; one that falls silent after 3 s, by
// the server's notice that its key expired or because its renewals ceased. But while the own key can't be renewed,
// nobody is taken for gone for want of renewals. Ids are unique to a process. Errors as those of Create.
func (s *Members) Join(ctx context.Context, id string, changed func(members []Member)) (*Membership, error) {
	m := &Membership{
		s: s, id: id, subject: memberPrefix + id, changed: changed, own: Member{ID: id}, touch: make(chan struct{}, 1),
		seen: map[string]*seenMember{}, news: make(chan memberNews, 64),
	}
	work, cancel := context.WithCancel(s.ctx)
	err := m.listen(work)
	if err == nil {
		err = s.retry(ctx, m.renew)
	}
	if err == nil {
		err = m.follow(work)
	}
	if err == nil {
		err = m.followNeeds(work)
	}
	done := make(chan struct{})
	if err == nil && !s.spawn(func() { defer close(done); m.run(work) }) {
		err = errClosed()
	}
	if err != nil {
		cancel()
		m.closeInboxes()
		return nil, Fault(err)
	}
	m.stop = sync.OnceFunc(func() {
		cancel()
		<-done
		end, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		m.leave(end)
	})
	return m, nil
}

// Said returns what each live orchestrator says of itself, by its id. Each key is read by itself: in a snapshot of the
// bucket a key is missing that was renewed while it was made. Errors: Permission, and those of reading.
func (s *Members) Said(ctx context.Context) (map[string]wire.Member, error) {
	var keys []Entry
	err := s.guarded(ctx, apiPrefix, func(ctx context.Context) (err error) {
		keys, err = s.entries(ctx, subjects.BucketStream(subjects.MembersBucket), memberPrefix+">")
		return err
	})
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	said := map[string]wire.Member{}
	for _, e := range keys {
		if operation(e.Header) == "" { // else it expired, or was removed
			said[strings.TrimPrefix(e.Subject, memberPrefix)] = wire.ParseMember(e.Data)
		}
	}
	return said, nil
}

var memberPrefix = subjects.BucketSubject(subjects.MembersBucket, "")

// Serve tells the others which partitions this member serves. It does not wait.
func (m *Membership) Serve(partitions uint64) { m.tell(func(own *Member) { own.Serves = partitions }) }

// Retire tells the others that this member is about to leave. It does not wait.
func (m *Membership) Retire() { m.tell(func(own *Member) { own.Leaving = true }) }

// Mark tells the others of marks, with the next renewal of the key, within a second. It does not wait.
func (m *Membership) Mark(marks []Mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.marks = marks
}

// Marks returns what the others have told, also those that are gone: of each partition the most, those of the life of
// the ledger last that was heard of last.
func (m *Membership) Marks() []Mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.heard.all()
}

// Stored returns when the server stored the own key, by the server's clock, and how long ago this process heard of
// that: the time that servers have, for who must not trust the own clock. It is zero before the first word of it.
func (m *Membership) Stored() (at time.Time, ago time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stored.IsZero() {
		return time.Time{}, 0
	}
	return m.stored, time.Since(m.came)
}

// Leave removes the key and returns once changed is not called any more; it must not be called from within changed.
// More calls do nothing.
func (m *Membership) Leave() { m.stop() }

func (m *Membership) tell(change func(*Member)) {
	m.mu.Lock()
	change(&m.own)
	m.mu.Unlock()
	select {
	case m.touch <- struct{}{}:
	default:
	}
}

func (m *Membership) self() Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.own
}

// said is what the own key says.
func (m *Membership) said() wire.Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return wire.Member{
		Serves: m.own.Serves, Leaving: m.own.Leaving, Pulse: m.pulse.subject, Marks: m.marks, Tenants: m.s.archive.tenants.digest(), Knows: m.s.cfg.Knows.Names(),
		Version: version.Stepjet(),
	}
}

// renew writes the key anew, with a new time to live. It names the sequence that it replaces, so that two processes of
// one id would notice; where another sequence is there (the key expired, or an answer was lost) it goes on from that.
func (m *Membership) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*memberRenewal)
	defer cancel()
	err := m.write(ctx, wire.Versioned())
	if apiCode(err) != codeWrongLastSequence {
		return err
	}
	m.seq = 0
	if e, err := m.s.read(ctx, m.subject); err == nil {
		m.seq = e.Seq
	}
	return m.write(ctx, wire.Versioned())
}

func (m *Membership) write(ctx context.Context, h nats.Header) error {
	h[headerTTL] = []string{strconv.Itoa(int(memberTTL/time.Second)) + "s"}
	ack, err := m.s.put(ctx, &nats.Msg{Subject: m.subject, Header: h, Data: m.said().Body()}, jetstream.WithExpectLastSequencePerSubject(m.seq))
	if err == nil {
		m.seq, m.written = ack.Sequence, time.Now()
	}
	return err
}

// leave puts a marker in the key's place, which tells the others at once and expires as the key would have.
func (m *Membership) leave(ctx context.Context) {
	marker := deletion()
	if apiCode(m.write(ctx, marker)) != codeWrongLastSequence {
		return // if it failed, the key expires
	}
	if e, err := m.s.read(ctx, m.subject); err == nil { // a renewal was on its way, and nobody waited for its answer
		m.seq = e.Seq
		_ = m.write(ctx, marker)
	}
}
