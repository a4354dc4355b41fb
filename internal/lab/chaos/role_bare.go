package chaos

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// bare uses JetStream without Stepjet, beside it and in the same faults: what stands still here is not Stepjet's doing.
// Each lane is a work queue of its own, kept as often as Stepjet's streams; a message is published, acknowledged,
// pulled and acknowledged, one after the other, by a client that gives each request half a second and asks again.
func (r *Role) bare(ctx context.Context, log *slog.Logger) error {
	events, err := journal.Open(r.Log, r.Name)
	if err != nil {
		return err
	}
	servers := strings.Split(r.URL, ",")
	var all sync.WaitGroup
	for i := range r.Parallel {
		o := kv.ConnectOptions{URL: servers[i%len(servers)], Name: r.Name, Logger: log} // and all that this one tells of
		nc, err := kv.Connect(ctx, o)
		if err != nil {
			return err
		}
		defer nc.Close()
		lane := &lane{name: fmt.Sprint("BARE_", i), nc: nc, events: events}
		if err := lane.make(ctx, len(servers)); err != nil {
			return err
		}
		all.Go(func() { lane.run(ctx) })
	}
	ready()
	all.Wait()
	return nil
}

type lane struct {
	name   string
	nc     *nats.Conn
	js     jetstream.JetStream
	events *journal.Log
}

func (l *lane) make(ctx context.Context, replicas int) (err error) {
	if l.js, err = jetstream.New(l.nc); err != nil {
		return err
	}
	_, err = l.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: l.name, Subjects: []string{l.name}, Retention: jetstream.WorkQueuePolicy, Replicas: replicas,
		Storage: jetstream.FileStorage,
	})
	if err != nil {
		return err
	}
	_, err = l.js.CreateConsumer(ctx, l.name, jetstream.ConsumerConfig{Durable: "all",
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: 2 * time.Second})
	return err
}

// bareTry is how long a request is waited for before it is made again.
const bareTry = 500 * time.Millisecond

func (l *lane) run(ctx context.Context) {
	next := subjects.ConsumerRequest("MSG.NEXT", l.name, "all")
	for ctx.Err() == nil {
		once := func(subject string, body []byte) (*nats.Msg, error) {
			trying, cancel := context.WithTimeout(ctx, bareTry)
			defer cancel()
			return l.nc.RequestWithContext(trying, subject, body)
		}
		m, err := once(l.name, []byte(l.name))
		if err != nil || !strings.Contains(string(m.Data), `"seq"`) {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		for ctx.Err() == nil {
			m, err = once(next, fmt.Appendf(nil, `{"batch":1,"expires":%d}`, bareTry))
			if err == nil && string(m.Data) == l.name {
				_ = m.Ack() // if it is lost, the message comes again
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		l.events.Add(journal.Event{Kind: journal.Bare, Run: l.name})
		time.Sleep(50 * time.Millisecond)
	}
}
