package bench

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/bench"
)

// The floor is a step's bare way through JetStream: publish to a work queue, pull, create the record once, acknowledge,
// notice the record through an ordered consumer. Its streams lie beside Stepjet's on the same server, with the same
// replicas, shards and ways of storing, and no more settings than that way needs. There is no plan, no run, no history,
// no event, no purge, no message id; arguments are fixed and results are not looked at.
const (
	floorQueue   = "FLOOR_QUEUE"
	floorRecords = "FLOOR_RECORDS_" // and the shard
	floorDurable = "floor"
)

func floorOwn(stream string) bool {
	return stream == floorQueue || strings.HasPrefix(stream, floorRecords) || strings.HasSuffix(stream, "_"+floorBlobs)
}

// floorName names a step: floor.q.<kind>.<shard>.<run>.<step>.<attempt> in the queue, the same with r for its record.
func floorName(letter, kind string, shard, run, step, attempt int) string {
	b := make([]byte, 0, 64)
	b = append(b, "floor."...)
	b = append(b, letter...)
	b = append(b, '.')
	b = append(b, kind...)
	for _, n := range [...]int{shard, run, step, attempt} {
		b = append(b, '.')
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return string(b)
}

type floorStep struct {
	kind                      string
	shard, run, step, attempt int
}

func parseFloor(subject string) (s floorStep, ok bool) {
	rest := subject[min(len("floor.q."), len(subject)):]
	s.kind, rest, ok = strings.Cut(rest, ".")
	for _, n := range [...]*int{&s.shard, &s.run, &s.step, &s.attempt} {
		var digits string
		digits, rest, _ = strings.Cut(rest, ".")
		var err error
		if *n, err = strconv.Atoi(digits); err != nil {
			return s, false
		}
	}
	return s, ok
}

// setUpFloor creates the floor's streams.
func setUpFloor(ctx context.Context, nc *nats.Conn, l Layout) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	queue := jetstream.StreamConfig{
		Name: floorQueue, Subjects: []string{"floor.q.>", "floor.later.>", "floor.sentinel"},
		Retention: jetstream.WorkQueuePolicy,
		Storage:   jetstream.FileStorage, Replicas: l.Replicas(), AllowMsgSchedules: true, AllowMsgTTL: true,
		AllowRollup: true,
	}
	if l.Store().StepsAsync {
		queue.PersistMode = jetstream.AsyncPersistMode
	}
	configs := []jetstream.StreamConfig{queue}
	for i := range l.ShardCount() {
		n := strconv.Itoa(i)
		configs = append(configs, jetstream.StreamConfig{
			Name: floorRecords + n, Subjects: []string{"floor.r.*." + n + ".>"}, Storage: jetstream.FileStorage,
			Replicas:          l.Replicas(),
			MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, // create-once
		})
	}
	for _, cfg := range configs {
		if _, err := js.CreateStream(ctx, cfg); err != nil {
			return fault.Wrap(fault.Internal, err, "creating the floor's stream "+cfg.Name)
		}
	}
	// A work queue that empties has its file removed; one message that nobody takes keeps it.
	if _, err := js.Publish(ctx, "floor.sentinel", nil); err != nil {
		return err
	}
	if _, err := js.CreateConsumer(ctx, floorQueue, jetstream.ConsumerConfig{
		Durable: floorDurable, AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: "floor.q.>", MaxAckPending: toolLimit,
		MaxDeliver: -1,
	}); err != nil {
		return err
	}
	_, err = js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: floorBlobs, Storage: jetstream.FileStorage,
		Replicas: l.Replicas()})
	return err
}

// floor drives shapes through JetStream alone: one hard-wired count of what each step still waits for.
type floor struct {
	*bare
	shards int
	failed chan error

	mu   sync.Mutex // held for each record
	load *load
	runs int // so far, so that no name is used twice
}

// load is a shape under way.
type load struct {
	shape    Shape
	more     func() bool // whether another run begins
	open     map[int]*floorRun
	times    []time.Duration
	finished chan struct{}
}

// floorRun is a run under way: for each step, how many it still waits for.
type floorRun struct {
	waits []int32
	left  int
	began time.Time
}

// floorBody stands for resolved arguments.
var floorBody = []byte(`{"x":1}`)

func newFloor(ctx context.Context, nc *nats.Conn, l Layout) (*floor, error) {
	f := &floor{shards: l.ShardCount(), failed: make(chan error, 1)}
	var err error
	if f.bare, err = newBare(nc, f.fails); err != nil {
		return nil, err
	}
	for i := range f.shards {
		if err := f.follow(ctx, floorRecords+strconv.Itoa(i), f.recorded); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *floor) fails(err error) {
	select {
	case f.failed <- err:
	default: // the first is enough
	}
}

// clear removes the records of earlier rounds.
func (f *floor) clear(ctx context.Context) error {
	for i := range f.shards {
		s, err := f.js.Stream(ctx, floorRecords+strconv.Itoa(i))
		if err != nil {
			return err
		}
		if err := s.Purge(ctx); err != nil {
			return err
		}
	}
	return nil
}

// drive takes runs of a shape through, and gives how long each took. It goes on until so many runs are through, or,
// where lasting isn't zero, for so long.
func (f *floor) drive(ctx context.Context, s Shape, lasting time.Duration) ([]time.Duration, error) {
	l := &load{shape: s, open: map[int]*floorRun{}, finished: make(chan struct{})}
	f.mu.Lock()
	last, until := f.runs+s.Runs, time.Now().Add(lasting)
	l.more = func() bool { return f.runs < last }
	if lasting > 0 {
		l.more = func() bool { return time.Now().Before(until) }
	}
	f.load = l
	for len(l.open) < s.InFlight && l.more() {
		f.begin(l)
	}
	f.mu.Unlock()
	select {
	case <-l.finished:
		return l.times, nil
	case err := <-f.failed:
		return nil, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(lasting + 2*time.Minute):
		return nil, fault.New(fault.Internal, "the floor is stuck at %s: %d runs under way, %d over", s.Name, len(l.open),
			len(l.times))
	}
}

func (f *floor) begin(l *load) {
	r := &floorRun{waits: slices.Clone(l.shape.graph.waits), left: l.shape.Steps, began: time.Now()}
	l.open[f.runs] = r
	for step, n := range r.waits {
		if n == 0 {
			f.send(l, f.runs, step)
		}
	}
	f.runs++
}

func (f *floor) send(l *load, run, step int) {
	f.publish(&nats.Msg{Subject: floorName("q", l.shape.floorKind(step), run%f.shards, run, step, 1), Data: floorBody},
		nil)
}

// recorded takes a record, and publishes what waited for it alone.
func (f *floor) recorded(m *nats.Msg) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, ok := parseFloor(m.Subject)
	l := f.load
	if !ok || l == nil || l.open[at.run] == nil {
		f.fails(fault.New(fault.Internal, "a record of the floor that nobody waits for: %s", m.Subject))
		return
	}
	if len(m.Data) == 1 && m.Data[0] == floorError {
		f.later(at)
		return
	}
	r := l.open[at.run]
	for _, next := range l.shape.graph.next[at.step] {
		if r.waits[next]--; r.waits[next] == 0 {
			f.send(l, at.run, next)
		}
	}
	if r.left--; r.left > 0 {
		return
	}
	l.times = append(l.times, time.Since(r.began))
	delete(l.open, at.run)
	if l.more() {
		f.begin(l)
	} else if len(l.open) == 0 {
		close(l.finished)
	}
}

// later schedules the second attempt of a step.
func (f *floor) later(at floorStep) {
	subject := floorName("q", at.kind, at.shard, at.run, at.step, at.attempt+1)
	f.publish(&nats.Msg{Subject: "floor.later" + strings.TrimPrefix(subject, "floor.q"), Data: floorBody,
		Header: nats.Header{
			"Nats-Schedule":        {"@at " + time.Now().Add(retryPause).UTC().Format(time.RFC3339Nano)},
			"Nats-Schedule-Target": {subject},
		}}, nil)
}

// floorRound measures the floor once.
func (w *world) floorRound(ctx context.Context, f *floor, s Shape, lasting time.Duration) (Figures, error) {
	got, err := w.Timed(s.Shape, func() (runs, steps []float64, err error) {
		times, err := f.drive(ctx, s, lasting)
		for _, t := range times {
			runs = append(runs, bench.MS(t))
			steps = append(steps, bench.MS(t)/float64(s.Depth))
		}
		return runs, steps, err
	})
	if err != nil {
		return got, err
	}
	return got, f.clear(ctx)
}
