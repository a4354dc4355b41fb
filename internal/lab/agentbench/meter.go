package agentbench

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/subjects"
)

// Written is what was stored into streams: names, headers and bodies of all messages.
type Written struct {
	// Records are messages of the ledger, and Ledger their bytes; Parts are the bytes of the rounds' parts, Calls those of
	// the calls that were sent to workers, History those of the documents of runs, which are written once a run is over.
	Records int64 `json:"records"`
	Ledger  int64 `json:"ledger_bytes"`
	Parts   int64 `json:"part_bytes"`
	Calls   int64 `json:"call_bytes"`
	History int64 `json:"history_bytes"`
}

func (w Written) all() int64 { return w.rounds() + w.History }

// rounds is what was written while the agent went on.
func (w Written) rounds() int64 { return w.Ledger + w.Parts + w.Calls }

func (w Written) less(o Written) Written {
	return Written{w.Records - o.Records, w.Ledger - o.Ledger, w.Parts - o.Parts, w.Calls - o.Calls, w.History - o.History}
}

// meter listens to what is published for streams. All messages pass through one channel, in the server's order.
type meter struct {
	nc     *nats.Conn
	subs   []*nats.Subscription
	heard  chan *nats.Msg
	mark   string // a subject on which read asks
	read   chan Written
	closed chan struct{}
	sum    Written
	chunks int64 // bytes of a blob whose name has not come
}

// What the subjects begin with that are told apart: of chunks of blobs and of what names them, too.
var (
	ledger  = subjects.LedgerPrefix(0)
	history = subjects.BucketSubject(subjects.HistoryBucket, "")
	chunk   = strings.TrimSuffix(subjects.BlobsSubjects("")[0], ">")
	about   = strings.TrimSuffix(subjects.BlobsSubjects("")[1], ">")
	steps   = strings.TrimSuffix(subjects.StepsSubjects(0)[0], ">")
)

// meterRoom is how many messages may wait to be counted.
const meterRoom = 1 << 18

func newMeter(ctx context.Context, js jetstream.JetStream, nc *nats.Conn) (*meter, error) {
	m := &meter{nc: nc, heard: make(chan *nats.Msg, meterRoom), mark: nats.NewInbox(), read: make(chan Written), closed: make(chan struct{})}
	all := []string{m.mark}
	streams := js.ListStreams(ctx)
	for s := range streams.Info() {
		all = append(all, s.Config.Subjects...)
	}
	if err := streams.Err(); err != nil {
		return nil, err
	}
	for _, subject := range all {
		sub, err := nc.ChanSubscribe(subject, m.heard)
		if err != nil {
			return nil, err
		}
		m.subs = append(m.subs, sub)
	}
	go m.count()
	return m, nil
}

// now returns what was written up to now.
func (m *meter) now() (Written, error) {
	if err := m.nc.Publish(m.mark, nil); err != nil {
		return Written{}, err
	}
	return <-m.read, nil
}

// count counts until the meter is closed.
func (m *meter) count() {
	for {
		var msg *nats.Msg
		select {
		case msg = <-m.heard:
		case <-m.closed:
			return
		}
		size := int64(msg.Size() - len(msg.Reply))
		switch s := msg.Subject; {
		case s == m.mark:
			m.read <- m.sum
		case strings.HasPrefix(s, ledger):
			m.sum.Records++
			m.sum.Ledger += size
		case strings.HasPrefix(s, history):
			m.sum.History += size
		case strings.HasPrefix(s, chunk), strings.HasPrefix(s, about):
			m.blob(msg, size)
		case strings.HasPrefix(s, steps):
			m.sum.Calls += size
		}
	}
}

// blob counts the messages of a blob: its chunks, and behind them one with its name. One run is measured at a time, and
// its owner writes one blob after the other.
func (m *meter) blob(msg *nats.Msg, size int64) {
	m.chunks += size
	var blob struct{ Name string }
	if !strings.HasPrefix(msg.Subject, about) || json.Unmarshal(msg.Data, &blob) != nil {
		return
	}
	if strings.Contains(blob.Name, "/=part.") {
		m.sum.Parts += m.chunks
	} else {
		m.sum.History += m.chunks
	}
	m.chunks = 0
}

func (m *meter) close() {
	for _, s := range m.subs {
		_ = s.Unsubscribe() // the connection ends soon
	}
	close(m.closed)
}
