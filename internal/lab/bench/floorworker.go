package bench

import (
	"context"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/bench"
)

// The kinds of steps of the floor; large results follow their letter with their size.
const (
	kindEcho  = "echo"
	kindFlaky = "flaky"
	kindBulk  = "bulk-"
	kindBlob  = "blob-" // as bulk, by way of the object store
)

// floorError is the record of an attempt that failed.
const floorError = '!'

const floorBlobs = "floor"

var ackBody = []byte("+ACK")

// floorWorker takes the floor's steps and records them without running anything.
type floorWorker struct {
	*bare
	blobs jetstream.ObjectStore
	bulk  sizes
}

// workFloor does so until the connection closes.
func workFloor(ctx context.Context, nc *nats.Conn, fail func(error)) error {
	b, err := newBare(nc, fail)
	if err != nil {
		return err
	}
	w := &floorWorker{bare: b}
	if w.blobs, err = b.js.ObjectStore(ctx, floorBlobs); err != nil {
		return err
	}
	return b.pull(floorQueue, floorDurable, bench.Slots, func(m *nats.Msg) { w.step(ctx, m) })
}

func (w *floorWorker) step(ctx context.Context, m *nats.Msg) {
	record := &nats.Msg{Subject: "floor.r" + strings.TrimPrefix(m.Subject, "floor.q"), Data: m.Data}
	at, ok := parseFloor(m.Subject)
	if !ok {
		w.fail(fault.New(fault.Internal, "a step of the floor that can't be read: %s", m.Subject))
		return
	}
	// a lost connection shows elsewhere
	done := func() { w.publish(record, func() { _ = w.nc.Publish(m.Reply, ackBody) }) }
	switch {
	case at.kind == kindFlaky:
		if at.attempt == 1 && (at.run*bench.DiamondSteps+at.step)%failOneIn == 0 {
			record.Data = []byte{floorError}
		}
	case strings.HasPrefix(at.kind, kindBulk):
		record.Data = w.bytes(at.kind[len(kindBulk):])
	case strings.HasPrefix(at.kind, kindBlob):
		body := w.bytes(at.kind[len(kindBlob):])
		record.Data = []byte(record.Subject) // the handle
		go func() {
			if _, err := w.blobs.PutBytes(ctx, record.Subject, body); err != nil {
				w.fail(err)
				return
			}
			done()
		}()
		return
	}
	done()
}

func (w *floorWorker) bytes(size string) []byte {
	n, _ := strconv.Atoi(size) // a size that can't be read gives an empty result
	return w.bulk.of(n)
}
