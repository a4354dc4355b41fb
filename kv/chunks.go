package kv

import (
	"context"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/subjects"
)

// readChunks reads a blob for a limited store: by direct gets of many messages instead of a consumer (limited.go).
func (s *Store) readChunks(ctx context.Context, info *jetstream.ObjectInfo) ([]byte, error) {
	data := make([]byte, 0, info.Size)
	inbox := s.nc.NewInbox()
	sub, err := s.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }() // a closed connection has none left to end
	request := subjects.DirectRead(subjects.BlobsStream())
	chunks := strconv.Quote(subjects.BlobChunksOf(info.NUID))
	for from, left := uint64(1), info.Chunks; left > 0; {
		// The server sends as much as it likes of what was asked for, and says so at the end.
		body := `{"seq":` + strconv.FormatUint(from, 10) + `,"next_by_subj":` + chunks + `,"batch":` + strconv.Itoa(int(left)) + `}`
		before := left
		err := s.guarded(ctx, request, func(ctx context.Context) error {
			if err := s.nc.PublishRequest(request, inbox, []byte(body)); err != nil {
				return err
			}
			for {
				m, err := sub.NextMsgWithContext(ctx)
				if err != nil {
					return err
				}
				if st := status(m); st == "204" {
					return nil
				} else if st != "" {
					return chunkError(m, st)
				}
				e, err := parseDirect(m)
				if err != nil {
					return err
				}
				data, from, left = append(data, e.Data...), e.Seq+1, left-1
			}
		})
		if err != nil {
			return nil, err
		}
		if left == before {
			return nil, jetstream.ErrObjectNotFound // not all of it; perhaps a replica that lags behind
		}
	}
	return data, nil
}

func chunkError(m *nats.Msg, st string) error {
	switch {
	case st == "404":
		return jetstream.ErrObjectNotFound
	case m.Header.Get("Status") == "503":
		return nats.ErrNoResponders
	}
	return errStored
}
