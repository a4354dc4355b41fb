package client

import (
	"bytes"
	"context"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// A rejected run leaves its id free, so more than one plan may come under one id, one after the other. Each has a
// generation, the sequence in its acknowledgement, and what is told of a run says of which it is. A rejection with a
// lower generation than that of the plan which is waited for is an earlier plan's.

// rejectionOf returns the generation of a rejection that was announced; 0 where an older orchestrator announced it.
func rejectionOf(raw []byte) (generation uint64, rejected bool) {
	if !bytes.Contains(raw, []byte(outcome.Rejected)) { // hardly ever does one
		return 0, false
	}
	var o outcome.Outcome
	if o.UnmarshalJSON(raw) != nil || o.Status != outcome.Rejected {
		return 0, false
	}
	return o.Generation, true
}

// planned keeps what is known of the plan that an entry is waited for with, and gives the entry to wait for: another
// one where that was an earlier plan's. generation is 0 where it isn't known.
func (w *waits) planned(p *pending, digest string, generation uint64) *pending {
	w.mu.Lock()
	defer w.mu.Unlock()
	another := isDone(p) && (p.err != nil || p.rejection > 0 && p.rejection < generation) || p.generation > 0 && p.generation < generation
	if generation > 0 && another {
		run := p.run
		if p = w.runs[run.ID].Value(); p == nil || isDone(p) || p.generation != generation {
			p = w.add(run)
			p.hasty = true // it may be over: what was announced went to the other
		}
	}
	if digest != "" {
		p.digest = digest
	}
	p.generation = max(p.generation, generation)
	if p.early != nil && p.generation > 0 {
		raw, of := p.early, p.earlyOf
		p.early = nil
		if of >= p.generation {
			w.end(p, func() { p.raw, p.rejection = raw, of })
		}
	}
	return p
}

// reject takes an announced rejection, if it is of the plan that is waited for. Where that isn't known, the history is
// read.
func (w *waits) reject(p *pending, generation uint64, raw []byte) {
	w.mu.Lock()
	known := p.generation > 0 && generation > 0
	switch {
	case known && generation >= p.generation:
		w.end(p, func() { p.raw, p.rejection = raw, generation })
	case !known && generation > p.earlyOf:
		p.early, p.earlyOf = raw, generation
	}
	w.mu.Unlock()
	if !known {
		w.hurry(p.run.ID)
	}
}

// raise notes that a plan goes on under the id, so that no rejection of an earlier one is taken for its outcome.
func (w *waits) raise(p *pending, generation uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.generation = max(p.generation, generation)
	p.odd = 0
}

// oddReads is how often the rejection of an earlier plan must be found, and no plan, before it is believed that the
// later plan is gone: a replica may be behind for a moment. An orchestrator that doesn't know that rejected ids are
// free removes such a plan.
const oddReads = 3

// earlier reports whether a document is the rejection of an earlier plan than the one that is waited for.
func (w *waits) earlier(p *pending, doc *outcome.Run) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if doc.Status != outcome.Rejected || doc.Generation >= p.generation {
		return false
	}
	p.odd++
	return p.odd < oddReads
}

// latest returns the history of a run; or, where a later plan goes on under the id of a rejected one, the sequence of
// its record. Errors as those of History.
func (c *Client) latest(ctx context.Context, name subjects.Run) (doc *outcome.Run, active uint64, err error) {
	doc, err = c.store.Archive.History(ctx, name)
	if err != nil || doc.Status != outcome.Rejected {
		return doc, 0, err
	}
	record, err := c.store.Ledger.Read(ctx, subjects.PlanRecord(name, c.store.Ledger.Shards()))
	switch code := fault.CodeOf(err); {
	case err == nil && record.Seq > doc.Generation:
		return nil, record.Seq, nil
	case err == nil, code == fault.Permission:
		return doc, 0, nil
	case code != fault.NotFound:
		return nil, 0, err
	}
	doc, err = c.store.Archive.History(ctx, name) // a later one may have ended between the two
	return doc, 0, err
}

// leaving reports whether a plan record is of a run that was rejected and is about to be removed.
func (c *Client) leaving(ctx context.Context, name subjects.Run, generation uint64) bool {
	head, err := c.store.Archive.HistoryHead(ctx, name)
	return err == nil && head.Status == outcome.Rejected && head.Generation >= generation
}
