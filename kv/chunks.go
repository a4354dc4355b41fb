package kv

import (
	"context"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// chunks reads a blob: by direct gets of many messages, which need no consumer (limited.go). Of what lies on the chunks'
// subject the first are the object's own; whoever may write blobs can add others only behind them.
type chunks struct {
	s       *Store
	sub     *nats.Subscription
	subject string // of the chunks
	from    uint64 // sequence to go on from
	left    uint32 // chunks to come
	data    []byte
	handle  *outcome.Handle
}

func (s *Store) readChunks(ctx context.Context, nuid string, n uint32, h *outcome.Handle) ([]byte, error) {
	sub, err := s.nc.SubscribeSync(s.nc.NewInbox())
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }() // a closed connection has none left to end
	c := &chunks{s: s, sub: sub, subject: subjects.BlobChunksOf(h.Bucket, nuid), from: 1, left: n, handle: h}
	c.data = make([]byte, 0, h.Size)
	for c.left > 0 { // the server sends as much as it likes of what was asked for
		before := c.left
		if err := s.guarded(ctx, subjects.DirectRead(subjects.BlobsStream(h.Bucket)), c.more); err != nil {
			return nil, err
		}
		if c.left == before {
			return nil, jetstream.ErrObjectNotFound // not all of it; perhaps a replica that lags behind
		}
	}
	return c.data, nil
}

// more asks once and takes what comes.
func (c *chunks) more(ctx context.Context) error {
	body := `{"seq":` + strconv.FormatUint(c.from, 10) + `,"next_by_subj":` + strconv.Quote(c.subject) + `,"batch":` + strconv.Itoa(int(c.left)) + `}`
	if err := c.s.nc.PublishRequest(subjects.DirectRead(subjects.BlobsStream(c.handle.Bucket)), c.sub.Subject, []byte(body)); err != nil {
		return err
	}
	for {
		m, err := c.sub.NextMsgWithContext(ctx)
		if err != nil {
			return err
		}
		switch status(m) {
		case "":
		case "204": // the end of what it sends
			return nil
		case "404":
			return jetstream.ErrObjectNotFound
		case "503":
			return nats.ErrNoResponders
		default:
			return errStored
		}
		e, err := parseDirect(m)
		if err != nil {
			return err
		}
		if !wire.Known(e.Header) {
			return wire.Newer("the blob " + c.handle.Name)
		}
		if int64(len(c.data)+len(e.Data)) > c.handle.Size {
			return moreThanItSays(c.handle)
		}
		c.data, c.from, c.left = append(c.data, e.Data...), e.Seq+1, c.left-1
	}
}
