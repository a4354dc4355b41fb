package chaos

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/worker"
)

// worker hosts all tools. Each call is logged as it begins, when it has its effect (the line in the log is the effect)
// and when it ends.
func (r *Role) worker(ctx context.Context, nc *nats.Conn, log *slog.Logger) error {
	events, err := journal.Open(r.Log, r.Name)
	if err != nil {
		return err
	}
	keys, err := r.keyring()
	if err != nil {
		return err
	}
	w, err := worker.New(nc, worker.Config{Name: r.Name, MaxDeliveries: r.MaxDeliveries, DrainTimeout: 10 * time.Second,
		SecretsKey: keys, Logger: log})
	if err != nil {
		return err
	}
	h := &host{events: events, die: r.Die}
	for _, def := range definitions() {
		if err := w.HandleRaw(def, h.call); err != nil {
			return err
		}
	}
	go func() { <-w.Ready(); ready() }()
	return w.Run(ctx)
}

type host struct {
	events *journal.Log
	die    *Point
	calls  atomic.Int64
}

func (h *host) call(ctx context.Context, args json.RawMessage) (worker.Output, error) {
	info, _ := worker.InfoFrom(ctx)
	e := journal.Event{
		Kind: journal.Begin, Tenant: info.Tenant, Run: info.Run, Generation: info.Generation, Step: info.Step, Tool: info.Tool,
		Attempt:  info.Attempt,
		Delivery: info.Delivery, Key: info.Key, Args: valueDigest(args), Secret: secretOwner(info),
	}
	h.events.Add(e)
	if info.Tool == "poison" {
		die()
	}
	h.mayDie(false)
	select {
	case <-time.After(pauseOf(info.Run, info.Key, info.Attempt)):
	case <-ctx.Done():
		e.Kind, e.Code = journal.End, "given up: "+context.Cause(ctx).Error()
		h.events.Add(e)
		return worker.Output{}, context.Cause(ctx)
	}
	e.Kind = journal.Effect
	h.events.Add(e)
	h.mayDie(true)
	out, err := reply(info, args)
	e.Kind = journal.End
	if err != nil {
		e.Code = err.Error()
	}
	h.events.Add(e)
	return out, err
}

// mayDie kills the process if its Point is in the tool and this is the moment.
func (h *host) mayDie(after bool) {
	if h.die != nil && h.die.Text == inTool && h.die.After == after && h.calls.Add(1) == int64(h.die.Nth) {
		die()
	}
}

// reply is what the run's script says.
func reply(info worker.Info, args []byte) (worker.Output, error) {
	w := WorkOf(info.Run)
	if w == nil {
		return worker.Output{}, worker.Terminal(fault.New(fault.Internal, "nobody here submits a run %q", info.Run))
	}
	a := w.Call(info.Step, info.Tool, args, info.Attempt)
	if a.Err != nil {
		return worker.Output{}, &fault.Error{Code: fault.Code(a.Err.Code), Message: a.Err.Message, Retryable: a.Err.Retryable}
	}
	return worker.Output{Body: a.Body, Text: a.Text}, nil
}

// Every run brings a secret along, which names the run, so that whoever finds it elsewhere knows whose it was.
const (
	secretKey  = "token"
	secretMark = "s3cret-of:"
)

func secretOf(tenant, run string) string { return secretMark + tenant + "/" + run }

func secretOwner(info worker.Info) string {
	s, _ := info.Context.Get(secretKey)
	return strings.TrimPrefix(s, secretMark)
}
