package orchestrator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/agent/parts"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/subjects"
)

// In half of the worlds with an agent its requests may have so few bytes that its rounds are cut again and again, and a tool
// makes a summary of them before, while owners die and take over, or two have the run. A summary is made once, stands in the
// place of what was cut, and between two cuts no byte changes of what requests begin with.

// shrinks reports whether this is such a world.
func (w *world) shrinks() bool { return w.seed/44%2 == 0 }

// simContext is what bounds the requests of the agent of a world, and what it is told.
func (w *world) simContext() string {
	if w.shrinks() {
		return fmt.Sprintf(`{"summary":%q,"total_bytes":4096,"result_bytes":512},"instructions":%q`, simDigest, strings.Repeat("Go on. ", 200))
	}
	return fmt.Sprintf(`{"summary":%q}`, simDigest)
}

// simSummaries are the requests of an agent's planner, and the summaries in them.
type simSummaries struct {
	beginning []byte         // of the planner's last request, up to the end of its rounds
	round     int            // whose
	upTo      int            // the last round that a summary was asked for
	said      map[int]string // by the round before whose planner was asked; those that a record has
}

// beginningOf is what a request begins with, up to the end of its rounds.
func beginningOf(whole []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(whole))
	if _, err := d.Token(); err != nil {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil
		}
		if name == "rounds" {
			return whole[:d.InputOffset()-1]
		}
	}
	return nil
}

// goesOn checks that a request begins as the planner's last one did, unless a cut was made since.
func (t *truths) goesOn(x *truth, a subjects.Attempt, round int, whole []byte) {
	s := &x.summaries
	if round < s.round { // it was handed out once more
		return
	}
	beginning := beginningOf(whole)
	cut := false
	for n := s.round; n < round; n++ {
		var p struct{ Head, Cut json.RawMessage }
		if err := json.Unmarshal(t.part(subjects.PartName(a.Run, a.Generation, "a", n)), &p); err != nil {
			t.w.violate("A11", "%s: the part of round %d: %v", a.MessageID(), n, err)
		}
		cut = cut || p.Cut != nil && string(p.Cut) != "null"
	}
	switch {
	case beginning == nil:
		t.w.violate("A11", "%s is asked without rounds: %s", a.MessageID(), whole)
	case cut:
		t.w.stats["a request behind a cut"]++
	case !bytes.HasPrefix(beginning, s.beginning):
		t.w.violate("A11", "%s is asked with %s, which does not begin with %s", a.MessageID(), whole, s.beginning)
	case s.beginning != nil:
		t.w.stats["a request that begins as the one before"]++
	}
	if a.Tool == simPlanner {
		s.beginning, s.round = beginning, round
	}
}

// summaryAsked checks what is asked of who makes a summary, and answers it.
func (t *truths) summaryAsked(x *truth, a subjects.Attempt, args []byte) reference.Reply {
	var r struct {
		Round     int
		Final     bool
		Most      int64 `json:"max_output_tokens"`
		Summarize struct{ Rounds [2]int }
	}
	whole, err := t.w.wholeOf(args)
	if bad := json.Unmarshal(whole, &r); err != nil || bad != nil || !r.Final || a.Step != subjects.OwnCall(subjects.Iteration("a", r.Round), "summary") {
		t.w.violate("A11", "a summary of %s: %s: %v", a.MessageID(), args, err)
		return reference.Reply{Body: []byte(`""`)}
	}
	s := &x.summaries
	if last := r.Summarize.Rounds[1]; r.Summarize.Rounds[0] != 0 || last > r.Round-2 || last < s.upTo || last == s.upTo && x.effects[a.Step] == 0 {
		t.w.violate("A11", "%s is to summarise the rounds %v, and one was made up to %d", a.MessageID(), r.Summarize.Rounds, s.upTo)
	}
	s.upTo = r.Summarize.Rounds[1]
	t.w.stats["a summary was asked for"]++
	t.goesOn(x, a, r.Round-1, whole)
	if t.w.seed/88%3 == 0 && r.Round%2 == 0 {
		return reference.Reply{Err: &reference.Err{Code: string(fault.ToolTerminal), Message: "too much"}}
	}
	return reference.Reply{Body: x.spent.takes(a, fmt.Sprintf(`{"output":%q}`, summaryOfSim(r.Round)), int64(len(whole)), r.Most)}
}

func summaryOfSim(round int) string { return fmt.Sprintf("what came before round %d", round) }

// summaryRecorded notes the summary that a record has.
func (t *truths) summaryRecorded(x *truth, a subjects.Attempt, owner bool, body []byte) {
	if owner {
		return
	}
	if x.summaries.said == nil {
		x.summaries.said = map[int]string{}
	}
	segments, _ := subjects.ParseStepToken(subjects.ScopeOf(a.Step))
	round := segments[len(segments)-1].Number
	if x.summaries.said[round] = summaryOfSim(round); !bytes.Contains(body, []byte(summaryOfSim(round))) {
		t.w.violate("A11", "%s returned %s", a.MessageID(), body)
	}
	t.w.stats["a summary stands"]++
}

// summaryTold checks that a request has the summary that was made before it, and the planner waits for one that is being made.
func (t *truths) summaryTold(x *truth, a subjects.Attempt, round int, whole []byte) {
	s := &x.summaries
	if said := s.said[round]; said != "" {
		if !bytes.Contains(whole, fmt.Appendf(nil, `"summary":%q`, said)) {
			t.w.violate("A11", "%s is asked with %s, which does not have the summary %q", a.MessageID(), whole, said)
		}
		t.w.stats["a planner was told a summary"]++
	}
	t.goesOn(x, a, round, whole)
}

// summaryDispatched checks that a planner waits for the summary before it.
func (t *truths) summaryDispatched(x *truth, a subjects.Attempt) {
	before := subjects.OwnCall(subjects.ScopeOf(a.Step), "summary")
	if a.Tool == simPlanner && x.out[before] != nil && !x.final[before] {
		t.w.violate("A11", "%s was dispatched while its summary is made", a.MessageID())
	}
}

// isCut reports whether a request has not all of its rounds any more.
func isCut(whole []byte) bool {
	return bytes.Contains(whole, []byte(`"cut":true`)) || bytes.Contains(whole, []byte(`"summary":"`)) || bytes.Contains(whole, []byte(`{"rounds":[`))
}

// wholeOf puts a request together of its parts.
func (w *world) wholeOf(args []byte) ([]byte, error) {
	return parts.NewKeeper(parts.DefaultKept).Whole(context.Background(), args, func(_ context.Context, name string) ([]byte, error) {
		return w.blobs[name], nil
	})
}

// asksAhead reports whether a call is one that is made before its round is decided: of its planner, or a summary.
func asksAhead(a subjects.Attempt) bool {
	return a.Tool == simPlanner || a.Tool == simDigest && strings.HasSuffix(a.Step, "/=summary")
}
