package living

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/journal"
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
func (x *taking) answers(ctx context.Context) {
	seen, done := map[string]bool{}, map[string]bool{}
	for x.waits(ctx) {
		all, err := x.Questions(ctx, x.run)
		if err != nil {
			continue
		}
		for _, q := range all {
			if !seen[q.Digest] {
				seen[q.Digest] = true
				x.Events.Add(journal.Event{Kind: journal.Question, Run: x.run, Tenant: x.Tenant(), Generation: q.Generation, Step: q.Step, Revision: q.Revision,
					Digest: q.Digest, Args: Digest(q.Arguments)})
			}
			if !done[q.Digest] && x.answersNow(q) {
				done[q.Digest] = x.answer(ctx, q)
			}
		}
	}
}

// waits waits for a while, or until the client is through with a change: an answer is to meet the next one. It reports
// false where it is told to end.
func (x *taking) waits(ctx context.Context) bool {
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
func (x *taking) answersNow(q *outcome.Question) bool {
	if q.Step != liveGate {
		return true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.made >= min(x.plan.opens[x.Number], len(x.plan.Changes[x.Number]))
}

// answer answers a question. It reports false where it is not known what became of it.
func (x *taking) answer(ctx context.Context, q *outcome.Question) bool {
	by := fmt.Sprint("c", x.Number)
	if lot(x.run, q.Step, x.Number)%8 == 3 { // to something that nobody asked
		forged := *q
		forged.Digest = reversed(q.Digest)
		_, err := x.Approve(ctx, &forged, client.Answer{By: by})
		x.Events.Add(journal.Event{Kind: journal.Forged, Run: x.run, Tenant: x.Tenant(), Step: q.Step, Revision: q.Revision, Digest: forged.Digest,
			Code: string(fault.CodeOf(err))})
	}
	e := journal.Event{Kind: journal.Answered, Run: x.run, Tenant: x.Tenant(), Step: q.Step, Revision: q.Revision, Digest: q.Digest, Status: x.mind(q)}
	n := lot(x.run, q.Step, x.Number, "n") % 50
	var err error
	switch e.Status {
	case sayApprove:
		_, err = x.Approve(ctx, q, client.Answer{By: by})
	case sayEdit:
		_, err = x.Approve(ctx, q, client.Answer{By: by, Arguments: fmt.Appendf(nil, `{"n":%d,"of":[]}`, n)})
	case sayReject:
		_, err = x.Reject(ctx, q, client.Answer{By: by})
	case sayValue:
		value := fmt.Appendf(nil, `{"v":%d}`, n)
		if q.Step == liveGate {
			value = fmt.Appendf(nil, `%d`, n)
		}
		_, err = x.Answer(ctx, q, json.RawMessage(value), client.Answer{By: by})
	}
	e.Code = string(fault.CodeOf(err))
	x.Events.Add(e)
	return err == nil || !passes(fault.CodeOf(err)) || fault.CodeOf(err) == fault.Conflict
}

// mind is what the client says to a question. To plans all say the same, and what somebody waits for is never rejected.
func (x *taking) mind(q *outcome.Question) string {
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
	return []string{sayApprove, sayEdit, sayReject, sayValue, sayApprove}[lot(x.run, q.Step, x.Number, "mind")%5]
}

func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}
