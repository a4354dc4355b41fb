package conformance

import (
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// myself is what this package writes into its own records, to tell them from the worker's.
const myself = "stepjet-conformance"

// witness listens beside the worker to what it publishes: signs to JetStream and records. All of it comes through one
// channel, so what one connection sent in an order is heard in that order.
type witness struct {
	mu      sync.Mutex
	signs   []sign
	records []published
	tells   map[string][]tell
}

// tell is a tool's word that it ran to its end.
type tell struct {
	place int
	at    time.Time
}

// sign is a sign with its place in the order of all that was heard.
type sign struct {
	kv.Sign
	place int
	at    time.Time
}

// published is a record that was offered to the ledger, whether the ledger took it or not.
type published struct {
	*nats.Msg
	place int
	at    time.Time
}

// ears bounds what may wait to be heard; a burst of 200 steps is some thousand messages.
const ears = 1 << 16

// listen subscribes; stop ends it.
func (w *witness) listen(nc *nats.Conn, t tool.Registered, shards int) (stop func(), err error) {
	all := append(kv.SignSubjects(t), telling+">")
	for shard := range shards {
		all = append(all, subjects.LedgerPrefix(shard)+">")
	}
	heard := make(chan *nats.Msg, ears)
	var subs []*nats.Subscription
	done, ended := make(chan struct{}), make(chan struct{})
	stop = func() {
		for _, sub := range subs {
			_ = sub.Unsubscribe() // it fails only on a closed connection
		}
		close(done)
		<-ended
	}
	mine := ownInbox(nc)
	go func() {
		defer close(ended)
		for place := 0; ; place++ {
			select {
			case m := <-heard:
				if !strings.HasPrefix(m.Reply, mine) {
					w.hear(t, m, place)
				}
			case <-done:
				return
			}
		}
	}()
	for _, subject := range all {
		sub, err := nc.ChanSubscribe(subject, heard)
		if err != nil {
			stop()
			return nil, kv.Fault(err)
		}
		subs = append(subs, sub)
	}
	if err := nc.Flush(); err != nil {
		stop()
		return nil, kv.Fault(err)
	}
	return stop, nil
}

// ownInbox returns what the reply subjects of a connection's own requests begin with.
func ownInbox(nc *nats.Conn) string {
	inbox := nc.NewRespInbox()
	return inbox[:strings.LastIndexByte(inbox, '.')+1]
}

func (w *witness) hear(t tool.Registered, m *nats.Msg, place int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.HasPrefix(m.Subject, telling) {
		if w.tells == nil {
			w.tells = map[string][]tell{}
		}
		w.tells[m.Subject] = append(w.tells[m.Subject], tell{place, time.Now()})
		return
	}
	if _, ok := subjects.ParseRecord(m.Subject); ok {
		if header(m.Header, subjects.HeaderWorker) != myself {
			w.records = append(w.records, published{m, place, time.Now()})
		}
		return
	}
	if s, ok := kv.ParseSign(t, m); ok {
		w.signs = append(w.signs, sign{s, place, time.Now()})
	}
}

// told returns what tools told on a subject.
func (w *witness) told(subject string) []tell {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tells[subject]
}

// about returns the signs about one message of the step stream.
func (w *witness) about(seq uint64) (of []sign) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.signs {
		if s.StreamSeq == seq && s.Kind != kv.Managed {
			of = append(of, s)
		}
	}
	return of
}

// kind returns the signs of one kind.
func (w *witness) kind(k kv.SignKind) (of []sign) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.signs {
		if s.Kind == k {
			of = append(of, s)
		}
	}
	return of
}

// offered returns what the worker published on a ledger subject.
func (w *witness) offered(subject string) (of []published) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.records {
		if r.Subject == subject {
			of = append(of, r)
		}
	}
	return of
}

// header reads a header by its exact name.
func header(h nats.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}
