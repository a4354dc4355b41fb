package chaos

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/journal"
)

// herd is many clients, each with a connection of its own. They all come back when their server does, and each submits
// a run at that moment and waits for it. When it is told to end it waits for those it has.
func (r *Role) herd(ctx context.Context, log *slog.Logger) error {
	events, err := journal.Open(r.Log, r.Name)
	if err != nil {
		return err
	}
	var runs sync.WaitGroup
	for i := range r.Parallel {
		if err := r.member(ctx, i, events, &runs, log); err != nil {
			return err
		}
	}
	ready()
	<-ctx.Done()
	runs.Wait()
	return nil
}

func (r *Role) member(ctx context.Context, i int, events *journal.Log, runs *sync.WaitGroup, log *slog.Logger) error {
	back := make(chan struct{}, 1)
	nc, err := nats.Connect(r.URL, nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond),
		nats.ReconnectJitter(200*time.Millisecond, 0),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), nats.ReconnectHandler(func(*nats.Conn) {
			select {
			case back <- struct{}{}:
			default: // it is at it
			}
		}))
	if err != nil {
		return err
	}
	var c *client.Client
	for c == nil {
		if c, err = client.New(ctx, nc, client.Config{Tenant: r.Tenant, Logger: log}); err != nil &&
			fault.CodeOf(err) != fault.NotReady {
			return err
		}
	}
	a := &agent{role: r, c: c, events: events}
	runs.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-back:
				run := fmt.Sprintf("%s-%s-%d-%d", kindSingle, r.Name, i, n)
				if s, err := a.submit(ctx, run, WorkOf(run).Plan); err == nil {
					a.wait(s)
				}
			}
		}
	})
	return nil
}
