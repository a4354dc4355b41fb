package kv

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// Gathering is what the lease of a tool's gathering worker says. Nothing rests on it: two that gather for a moment make smaller
// batches, and none gathers for as long as a lease at most.
type Gathering struct {
	ID     string `json:"id"` // of who holds it, unique
	Worker string `json:"worker,omitempty"`
	Free   bool   `json:"free,omitempty"` // it was given back
}

// ParseGathering reads a message on subjects.Gather; false for one of another form.
func ParseGathering(m *nats.Msg) (g Gathering, ok bool) {
	if !wire.Known(m.Header) || json.Unmarshal(m.Data, &g) != nil {
		return g, false
	}
	return g, g.ID != ""
}

// gatherTimeout bounds a request about the lease: whoever gets no answer gathers without it.
const gatherTimeout = time.Second

// Gather writes the lease of a tool where the last that was written of it has the sequence expected, 0 for none, and gives
// the new sequence. ok is false where another was faster. Errors: NotReady where there is no such bucket, Permission, Timeout.
func (s *Store) Gather(ctx context.Context, tool string, g Gathering, expected uint64) (seq uint64, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, gatherTimeout)
	defer cancel()
	subject := subjects.Gather(tool)
	body, err := json.Marshal(g)
	if err != nil {
		return 0, false, err
	}
	ack, err := s.put(ctx, &nats.Msg{Subject: subject, Header: wire.Versioned(), Data: body},
		jetstream.WithExpectLastSequencePerSubject(expected), jetstream.WithRetryAttempts(0))
	if apiCode(err) == codeWrongLastSequence {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, Fault(err)
	}
	return ack.Sequence, true, nil
}

// Gathers gives the lease of a tool and its sequence; both are zero where nobody has it. Errors as those of Gather.
func (s *Store) Gathers(ctx context.Context, tool string) (g Gathering, seq uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, gatherTimeout)
	defer cancel()
	answer, err := s.exchange(ctx, &nats.Msg{Subject: subjects.DirectGet(subjects.BucketStream(subjects.GatherBucket), subjects.Gather(tool))})
	if err != nil {
		return g, 0, Fault(err)
	}
	e, err := parseDirect(answer)
	if apiCode(err) == codeMessageNotFound {
		return g, 0, nil
	}
	if err != nil {
		return g, 0, Fault(err)
	}
	g, _ = ParseGathering(&nats.Msg{Header: e.Header, Data: e.Data}) // one of another form is nobody's
	g.Free = g.Free || g.ID == ""
	return g, e.Seq, nil
}
