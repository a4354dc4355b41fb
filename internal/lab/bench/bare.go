package bench

import (
	"bytes"
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
)

// bare speaks to JetStream with as little as can be, and with nothing of Stepjet's: asynchronous publishes whose
// answers come to one subscription, pull requests for many messages at once, an ordered push consumer. It repairs
// nothing; what goes wrong ends the measurement.
type bare struct {
	nc    *nats.Conn
	js    jetstream.JetStream
	inbox string
	next  atomic.Uint64
	waits sync.Map // token → func()
	fail  func(error)
}

func newBare(nc *nats.Conn, fail func(error)) (*bare, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	b := &bare{nc: nc, js: js, inbox: nc.NewInbox() + ".", fail: fail}
	return b, b.subscribe(b.inbox+"*", b.answered)
}

func (b *bare) subscribe(subject string, each nats.MsgHandler) error {
	sub, err := b.nc.Subscribe(subject, each)
	if err != nil {
		return err
	}
	return sub.SetPendingLimits(-1, -1)
}

// publish stores a message and calls stored, if it isn't nil, once the server has said so.
func (b *bare) publish(m *nats.Msg, stored func()) {
	token := b.next.Add(1)
	if stored != nil {
		b.waits.Store(token, stored)
	}
	m.Reply = b.inbox + strconv.FormatUint(token, 36)
	if err := b.nc.PublishMsg(m); err != nil {
		b.fail(err)
	}
}

var refusal = []byte(`"error"`)

func (b *bare) answered(m *nats.Msg) {
	if len(m.Data) == 0 || bytes.Contains(m.Data, refusal) {
		b.fail(fault.New(fault.Internal, "JetStream refused a publish of the floor: %s %v", m.Data, m.Header))
		return
	}
	token, err := strconv.ParseUint(m.Subject[len(b.inbox):], 36, 64)
	if err != nil {
		return
	}
	if stored, ok := b.waits.LoadAndDelete(token); ok {
		stored.(func())()
	}
}

// pull takes messages of a durable consumer, up to slots at a time, and asks for more when half of them have come.
func (b *bare) pull(stream, durable string, slots int, each func(*nats.Msg)) error {
	subject := jetstream.DefaultAPIPrefix + "CONSUMER.MSG.NEXT." + stream + "." + durable
	inbox := b.nc.NewInbox()
	asked := 0
	ask := func() {
		n := slots - asked
		asked = slots
		if err := b.nc.PublishRequest(subject, inbox, fmtBatch(n)); err != nil {
			b.fail(err)
		}
	}
	if err := b.subscribe(inbox, func(m *nats.Msg) {
		if m.Reply == "" {
			b.fail(fault.New(fault.Internal, "a pull request of the floor ended: %v", m.Header))
			return
		}
		asked--
		each(m)
		if asked <= slots/2 {
			ask()
		}
	}); err != nil {
		return err
	}
	ask()
	return nil
}

func fmtBatch(n int) []byte {
	return append(strconv.AppendInt([]byte(`{"batch":`), int64(n), 10), '}')
}

// follow calls each with what is stored in a stream from now on, in its order.
func (b *bare) follow(ctx context.Context, stream string, each func(*nats.Msg)) error {
	inbox := b.nc.NewInbox()
	if err := b.subscribe(inbox, func(m *nats.Msg) {
		if len(m.Data) == 0 && m.Header.Get("Status") == "100" { // flow control, or a heartbeat
			if reply := max(m.Reply, m.Header.Get("Nats-Consumer-Stalled")); reply != "" {
				_ = b.nc.Publish(reply, nil) // a lost connection shows elsewhere
			}
			return
		}
		each(m)
	}); err != nil {
		return err
	}
	_, err := b.js.CreatePushConsumer(ctx, stream, jetstream.ConsumerConfig{
		DeliverSubject: inbox, DeliverPolicy: jetstream.DeliverNewPolicy, AckPolicy: jetstream.AckNonePolicy,
		FlowControl: true, IdleHeartbeat: 500 * time.Millisecond, MemoryStorage: true, Replicas: 1,
		InactiveThreshold: 30 * time.Second,
	})
	return err
}
