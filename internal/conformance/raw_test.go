package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/internal/conformance"
	"github.com/stepjet/stepjet/subjects"
)

// raw is a worker written as somebody would who has only docs/protocol.md and a stock client, with one bug or none.
type raw struct {
	bug string

	nc      *nats.Conn
	js      jetstream.JetStream
	blobs   jetstream.ObjectStore
	reg     registration
	last    atomic.Pointer[json.RawMessage]
	mu      sync.Mutex
	running map[string]context.CancelFunc
	done    sync.Map // keys of steps
}

// registration is what a worker reads of the answer to its registration.
type registration struct {
	Stream    string `json:"stream"`
	Consumer  string `json:"consumer"`
	Cancel    string `json:"cancel"`
	AckWaitMS int64  `json:"ack_wait_ms"`
}

func (w *raw) has(bugs ...string) bool { return slices.Contains(bugs, w.bug) }

const rawSlots = 8

// rawWorker is the worker as conformance starts it: each start is a new one.
func rawWorker(bug string) func(context.Context, *nats.Conn) error {
	return func(ctx context.Context, nc *nats.Conn) error {
		w := &raw{bug: bug, nc: nc, running: map[string]context.CancelFunc{}}
		return w.run(ctx)
	}
}

func (w *raw) run(ctx context.Context) (err error) {
	if w.has("dies") {
		return errors.New("no such module")
	}
	if w.js, err = jetstream.New(w.nc); err != nil {
		return err
	}
	if w.blobs, err = w.js.ObjectStore(ctx, subjects.BlobsBucket); err != nil {
		return err
	}
	if err := w.register(ctx); err != nil {
		return err
	}
	if w.has("own consumer") {
		_, err = w.js.CreateConsumer(ctx, w.reg.Stream, jetstream.ConsumerConfig{FilterSubject: subjects.ToolFilter(conformance.DefaultTool, 0)})
		return err
	}
	consumer, err := w.js.Consumer(ctx, w.reg.Stream, w.reg.Consumer)
	if err != nil {
		return err
	}
	if !w.has("no cancel") {
		sub, err := w.nc.Subscribe(w.reg.Cancel, w.cancelled)
		if err != nil {
			return err
		}
		defer func() { _ = sub.Unsubscribe() }()
	}
	return w.serve(ctx, consumer)
}

func (w *raw) register(ctx context.Context) error {
	if w.has("no registration") {
		w.reg = registration{"STEPS_0", conformance.DefaultTool, "cancel." + conformance.DefaultTool + ".>", 2000}
		return nil
	}
	def := `{"name":"conformance","inputSchema":{"type":"object"},"x-orchestration":{"max_concurrency":40}}`
	m, err := w.nc.RequestWithContext(ctx, "api.tools.register.conformance", []byte(def))
	if err != nil {
		return err
	}
	return json.Unmarshal(m.Data, &w.reg)
}

// serve takes steps, one for each slot.
func (w *raw) serve(ctx context.Context, consumer jetstream.Consumer) error {
	var slots sync.WaitGroup
	failed := make(chan error, rawSlots)
	n, batch := rawSlots, 1
	if w.has("hoards") {
		n, batch = 2, 16
	}
	if w.has("fetches ahead") {
		n, batch = 1, 6
	}
	for range n {
		slots.Go(func() {
			for ctx.Err() == nil {
				if w.has("silent") {
					<-ctx.Done()
					return
				}
				if w.has("asks once", "asks for long") {
					w.ask()
				}
				got, err := consumer.Fetch(batch, jetstream.FetchMaxWait(500*time.Millisecond))
				if err != nil {
					failed <- err
					return
				}
				for m := range got.Messages() {
					if err := w.step(m); err != nil {
						failed <- err
						return
					}
				}
			}
		})
	}
	slots.Wait()
	if w.has("never ends") {
		for w.nc.Status() != nats.CLOSED {
			time.Sleep(10 * time.Millisecond)
		}
	}
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// ask asks for a step as one does who thinks that no request is ever lost. What comes of it is nobody's.
func (w *raw) ask() {
	body := ""
	if w.has("asks for long") {
		body = `{"batch":1,"expires":20000000000}`
	}
	m := &nats.Msg{Subject: "$JS.API.CONSUMER.MSG.NEXT." + w.reg.Stream + "." + w.reg.Consumer, Data: []byte(body)}
	_ = w.nc.PublishMsg(m) // without a reply subject the server hands nothing out
}

func (w *raw) cancelled(m *nats.Msg) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stop := w.running[strings.Join(strings.Split(m.Subject, ".")[2:], ".")]; stop != nil {
		stop()
	}
}

// step does one step; an error ends the slot.
func (w *raw) step(m jetstream.Msg) error {
	h, meta, t := m.Headers(), must(m.Metadata()), strings.Split(m.Subject(), ".")
	if v := h.Get("Stepjet-Version"); v > "1" && !w.has("any version") && (v != "junk" || !w.has("runs versions of words")) {
		if w.has("acks versions") {
			return m.Ack()
		}
		return nil
	}
	result := h.Get("Stepjet-Result")
	if own := fmt.Sprintf("$KV.runs_0.%s.step.%s.%s.%s", strings.Join(t[3:7], "."), t[2], t[7], t[8]); result != own && !w.has("forged") {
		if w.has("dies of foreign") {
			return errors.New("Cannot read properties of undefined")
		}
		return m.Ack()
	}
	if w.has("first attempts") && h.Get("Stepjet-Attempt") != "1" {
		return m.Ack()
	}
	if w.has("attempt one") {
		result = result[:strings.LastIndexByte(result, '.')] + ".1"
	}
	if _, done := w.done.LoadOrStore(h.Get("Stepjet-Key"), true); done && w.has("remembers steps") {
		return m.Ack()
	}
	if w.has("ack first") {
		_ = m.Ack()
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !w.has("no heartbeat", "hoards") {
		defer w.beat(m)()
	}
	name := strings.Join(t[4:], ".")
	w.mu.Lock()
	w.running[name] = cancel
	w.mu.Unlock()
	defer func() { w.mu.Lock(); delete(w.running, name); w.mu.Unlock() }()
	if w.has("drops on drain") {
		return w.abandon(m, h)
	}
	x := &work{}
	status, body, handle, goOn := w.attempt(ctx, m, h, meta, name, x)
	if !goOn {
		return nil
	}
	return w.record(m, result, status, body, handle, x)
}

// abandon ends a slot in the middle of a step.
func (w *raw) abandon(m jetstream.Msg, h nats.Header) error {
	if strings.Contains(string(m.Data()), "slept") {
		time.Sleep(time.Second)
		return errors.New("killed")
	}
	return w.record(m, h.Get("Stepjet-Result"), "ok", []byte(`"hello"`), "", &work{})
}

func (w *raw) beat(m jetstream.Msg) (stop func()) {
	_ = m.InProgress()
	tick := time.NewTicker(time.Duration(w.reg.AckWaitMS) * time.Millisecond / 3)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-tick.C:
				_ = m.InProgress()
			case <-done:
				return
			}
		}
	}()
	return func() { tick.Stop(); close(done) }
}

func failure(code, message string) (status string, body []byte) {
	body, _ = json.Marshal(map[string]any{"code": code, "message": message, "retryable": code == "tool_failed"})
	return "error", body
}

// attempt looks whether the step is to be executed, and does so. goOn is false where it was acknowledged already.
func (w *raw) attempt(ctx context.Context, m jetstream.Msg, h nats.Header, meta *jetstream.MsgMetadata, name string, x *work) (status string, body []byte, handle string, goOn bool) {
	if meta.NumDelivered > 1 && !w.has("no look") && w.read(h.Get("Stepjet-Result")) != nil {
		_ = m.Ack()
		return
	}
	if at, err := time.Parse(time.RFC3339Nano, h.Get("Stepjet-Start-By")); err == nil && time.Now().After(at) && !w.has("begins late") {
		status, body = failure("timeout", "too late")
		return status, body, "", true
	}
	if c := h.Get("Stepjet-Claim"); c != "" && !w.has("no claim", "claims late") {
		switch w.claim(c, meta.Sequence.Stream) {
		case "lost":
			status, body = failure("outcome_unknown", "its worker was lost")
			return status, body, "", true
		case "elsewhere":
			_ = m.Ack()
			return
		}
	}
	if meta.NumDelivered > 5 && !w.has("no worker_lost") {
		status, body = failure("worker_lost", "nobody survives it")
		return status, body, "", true
	}
	status, body, handle = w.execute(ctx, m, h, name, x)
	if c := h.Get("Stepjet-Claim"); c != "" && w.has("claims late") {
		w.claim(c, meta.Sequence.Stream)
	}
	return status, body, handle, status != ""
}

// claim returns "" for the worker's own claim.
func (w *raw) claim(subject string, seq uint64) string {
	nonce := nuid.Next()
	if w.has("constant nonce") {
		nonce = "raw"
	}
	body := fmt.Appendf(nil, `{"nonce":%q,"seq":%d}`, nonce, seq)
	if w.has("claim body") {
		body = []byte("mine")
	}
	m := &nats.Msg{Subject: subject, Header: nats.Header{"Stepjet-Version": {"1"}}, Data: body}
	if _, err := w.js.PublishMsg(context.Background(), m, jetstream.WithExpectLastSequencePerSubject(0)); err == nil || w.has("ignores claims") {
		return ""
	}
	var there struct {
		Nonce string
		Seq   uint64
	}
	_ = json.Unmarshal(w.read(subject), &there)
	if there.Seq == seq {
		return "lost"
	}
	return "elsewhere"
}

// read returns the last message of a ledger subject; nil for none.
func (w *raw) read(subject string) []byte {
	stream, err := w.js.Stream(context.Background(), "KV_runs_0")
	if err != nil {
		return nil
	}
	m, err := stream.GetLastMsgForSubject(context.Background(), subject)
	if err != nil {
		return nil
	}
	return m.Data
}
