package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// What clients of living runs say to questions.
const (
	sayApprove = "approve"
	sayEdit    = "edit"
	sayReject  = "reject"
	sayValue   = "value"
)

// answers answers what the run asks, until ctx ends. Each client has a mind of its own; who is first decides.
func (x *liverRun) answers(ctx context.Context) {
	seen, done := map[string]bool{}, map[string]bool{}
	for x.waits(ctx) {
		all, err := x.c.Questions(ctx, x.run)
		if err != nil {
			continue
		}
		for _, q := range all {
			if !seen[q.Digest] {
				seen[q.Digest] = true
				x.events.Add(Event{Kind: evQuestion, Run: x.run, Tenant: x.c.Tenant(), Generation: q.Generation, Step: q.Step, Revision: q.Revision,
					Digest: q.Digest, Args: valueDigest(q.Arguments)})
			}
			if !done[q.Digest] && x.answersNow(q) {
				done[q.Digest] = x.answer(ctx, q)
			}
		}
	}
}

// waits waits for a while, or until the client is through with a change: an answer is to meet the next one. It reports
// false where it is told to end.
func (x *liverRun) waits(ctx context.Context) bool {
	select {
	case <-x.news:
		return true
	case <-time.After(40 * time.Millisecond):
		return true
	case <-ctx.Done():
		return false
	}
}

// answersNow reports whether it is time to answer: the gate is answered in the middle of what the client changes.
func (x *liverRun) answersNow(q *outcome.Question) bool {
	if q.Step != liveGate {
		return true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.made >= min(x.plan.opens[x.k], len(x.plan.changes[x.k]))
}

// answer answers a question. It reports false where it is not known what became of it.
func (x *liverRun) answer(ctx context.Context, q *outcome.Question) bool {
	by := fmt.Sprint("c", x.k)
	if lot(x.run, q.Step, x.k)%8 == 3 { // to something that nobody asked
		forged := *q
		forged.Digest = reversed(q.Digest)
		_, err := x.c.Approve(ctx, &forged, client.Answer{By: by})
		x.events.Add(Event{Kind: evForged, Run: x.run, Tenant: x.c.Tenant(), Step: q.Step, Revision: q.Revision, Digest: forged.Digest,
			Code: string(fault.CodeOf(err))})
	}
	e := Event{Kind: evAnswered, Run: x.run, Tenant: x.c.Tenant(), Step: q.Step, Revision: q.Revision, Digest: q.Digest, Status: x.mind(q)}
	n := lot(x.run, q.Step, x.k, "n") % 50
	var err error
	switch e.Status {
	case sayApprove:
		_, err = x.c.Approve(ctx, q, client.Answer{By: by})
	case sayEdit:
		_, err = x.c.Approve(ctx, q, client.Answer{By: by, Arguments: fmt.Appendf(nil, `{"n":%d,"of":[]}`, n)})
	case sayReject:
		_, err = x.c.Reject(ctx, q, client.Answer{By: by})
	case sayValue:
		value := fmt.Appendf(nil, `{"v":%d}`, n)
		if q.Step == liveGate {
			value = fmt.Appendf(nil, `%d`, n)
		}
		_, err = x.c.Answer(ctx, q, json.RawMessage(value), client.Answer{By: by})
	}
	e.Code = string(fault.CodeOf(err))
	x.events.Add(e)
	return err == nil || !passes(fault.CodeOf(err)) || fault.CodeOf(err) == fault.Conflict
}

// mind is what the client says to a question. To plans all say the same, and what somebody waits for is never rejected.
func (x *liverRun) mind(q *outcome.Question) string {
	switch {
	case q.Kind == outcome.Ask:
		return sayValue
	case q.Revision > 0:
		if lot(x.run, q.By)%5 == 0 && !strings.Contains(q.By, "done") && !strings.Contains(q.By, "close") {
			return sayReject
		}
		return sayApprove
	case q.Step == subjects.RootScope:
		if lot(x.run)%8 == 0 {
			return sayReject
		}
		return sayApprove
	}
	return []string{sayApprove, sayEdit, sayReject, sayValue, sayApprove}[lot(x.run, q.Step, x.k, "mind")%5]
}

func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}
