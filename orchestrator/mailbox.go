package orchestrator

import (
	"sync"

	"github.com/stepjet/stepjet/kv"
)

// mailbox carries records and completions to the loop. Completions never block, because they come from goroutines that
// the loop's own publishes wait for; records do once too many are waiting, which slows the cursor down.
type mailbox struct {
	mu     sync.Mutex
	room   sync.Cond
	items  []item
	bytes  int
	closed bool
	wake   chan struct{}
}

type item struct {
	do    func() // or nil, and entry is a record
	entry kv.Entry
	from  *cursor
}

// mailboxBytes and mailboxItems bound the records that wait for the loop.
const (
	mailboxBytes = 64 << 20
	mailboxItems = 16384
)

func newMailbox() *mailbox {
	m := &mailbox{wake: make(chan struct{}, 1)}
	m.room.L = &m.mu
	return m
}

func (m *mailbox) post(do func()) {
	m.mu.Lock()
	m.items = append(m.items, item{do: do})
	m.mu.Unlock()
	m.signal()
}

func (m *mailbox) record(e kv.Entry, from *cursor) {
	m.mu.Lock()
	for !m.closed && (m.bytes > mailboxBytes || len(m.items) > mailboxItems) {
		m.room.Wait()
	}
	m.items = append(m.items, item{entry: e, from: from})
	m.bytes += len(e.Data)
	m.mu.Unlock()
	m.signal()
}

func (m *mailbox) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// take swaps the waiting items for an empty slice.
func (m *mailbox) take(empty []item) []item {
	m.mu.Lock()
	items := m.items
	m.items, m.bytes = empty[:0], 0
	m.mu.Unlock()
	m.room.Broadcast()
	return items
}

// close lets blocked senders go; what they send is not read any more.
func (m *mailbox) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.room.Broadcast()
}
