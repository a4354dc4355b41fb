package orchestrator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// In half of the worlds with agents, and where a planner hands over steps, what some of their calls return goes to sinks. Whoever owns the run when it ends, all of it
// has gone there by then, and nothing else: so says whoever sees the records and the sinks.

// sinks reports whether this is such a world.
func (w *world) sinks() bool { return w.bug == loseObjects || w.seed/11%2 == 0 || w.writes() }

// asksAround is when a late call is captured in a world: in some, as long as nothing has shut the gate of others, and where that
// was in another round than the first one.
func (w *world) asksAround() string {
	if w.seed/22%2 == 0 || w.judges() { // of a result that is judged no record says when it was let pass
		return ""
	}
	return `$state == 'open' and $round > 0 and $called["opener/a"]`
}

// artifact is what an entry of such a world says of its results.
func (w *world) artifact(typ, path, when, sink string) string {
	if !w.sinks() {
		return ""
	}
	more := ""
	for name, text := range map[string]string{"path": path, "when": when} {
		if text != "" {
			more += fmt.Sprintf(`%q:%q,`, name, text)
		}
	}
	return fmt.Sprintf(`,"artifact":{"type":%q,%s"sink":%s}`, typ, more, sink)
}

// What the entries say: of late calls, of those by "more", of the opener of the agent below, and of that of a planner which
// hands over steps.
const (
	lateSinks   = `[{"subject":"late.calls"},{"bucket":"late"}]`
	moreSink    = `{"subject":"more"}`
	clerkSink   = `{"bucket":"seen"}`
	writtenSink = `[{"bucket":"written"},{"subject":"written"}]`
)

// sinksOf are where what a call returned goes, and by which part of it.
func sinksOf(x *truth, token, tool string) (to []string, path string) {
	segments, _ := subjects.ParseStepToken(token)
	rounds := 0
	for _, s := range segments {
		if s.Kind == subjects.IterationSegment {
			rounds++
		}
	}
	id := token[strings.LastIndexByte(token, '/')+1:]
	switch {
	case x.streams != nil && rounds == 1 && tool == simOpener && !strings.Contains(token, "/=stream/"):
		return []string{"$KV.sinks.t.written.", "sink.t.written"}, ""
	case x.streams != nil:
		return nil, ""
	case rounds == 2 && tool == simOpener && strings.HasPrefix(id, "x"):
		return []string{"$KV.sinks.t.seen."}, ""
	case rounds == 1 && tool == simLate:
		return []string{"sink.t.late.calls", "$KV.sinks.t.late."}, ""
	case rounds == 1 && tool == simOpener && strings.HasPrefix(id, "both="):
		return []string{"sink.t.more"}, "i"
	}
	return nil, ""
}

// simSunk is what has gone to sinks of a run, and what calls returned that workers have answered.
type simSunk struct {
	objects map[string]simObject // by message id
	results map[string][]byte    // by step token
	shut    bool                 // a call has shut the gate of others
	behind  map[string]bool      // late calls that came behind it
}

type simObject struct{ subject, step, value string }

// returned notes what a worker returned.
func (x *truth) returned(a subjects.Attempt, r *wire.Result) {
	if strings.HasPrefix(r.Worker, ownerMark) {
		return
	}
	if x.sunk.results == nil {
		x.sunk.results = map[string][]byte{}
	}
	x.sunk.results[a.Step] = r.Body
	if x.shuts(a.Step) {
		x.sunk.shut = true
	}
	if x.sunk.shut && a.Tool == simLate {
		if x.sunk.behind == nil {
			x.sunk.behind = map[string]bool{}
		}
		x.sunk.behind[a.Step] = true
	}
}

// uncaptured reports whether the condition of an entry does not hold for what a late call of a world has returned.
func (x *truth) uncaptured(w *world, step, tool string) bool {
	return tool == simLate && w.asksAround() != "" && (x.sunk.behind[step] || strings.HasPrefix(step, "a/=0/"))
}

// begunAs names the call by which a step of a round was made: another where it had begun before its planner's answer was whole.
func (x *truth) begunAs(step string) string {
	early := subjects.InScope(subjects.OwnCall(subjects.ScopeOf(step), "stream"), step[strings.LastIndexByte(step, '/')+1:])
	if x.streams == nil || x.sunk.results[early] == nil {
		return step
	}
	return early
}

// stands reports whether what a step returned may go to sinks: its record stands, and that of its round.
func (x *truth) stands(w *world, step string) bool {
	if x.streams == nil {
		return x.succeeded[step]
	}
	early := x.begunAs(step)
	if early != step {
		w.stats["an object of a call that had begun"]++
	}
	return x.succeeded[early] && x.told["round "+subjects.ScopeOf(step)]
}

// sunk takes what is published to a sink, which has it once for each message id.
func (t *truths) sunk(subject string, h nats.Header, body []byte) {
	var o wire.Sunk
	if err := json.Unmarshal(body, &o); err != nil {
		t.w.violate("A10", "%s is no object: %v", body, err)
		return
	}
	t.checkI10(subject, body)
	x, id := t.of(subjects.NewRun(o.Tenant, o.Run), o.Generation), h["Nats-Msg-Id"]
	switch {
	case x == nil || len(id) != 1:
		t.w.violate("A10", "an object of nobody was sent to %s: %s", subject, body)
		return
	case x.gone:
		t.w.stats["an object of a run that was purged"]++
		return
	case !x.stands(t.w, o.Step):
		t.w.violate("A10", "what %s returned was sent to %s before its record stood: %s", o.Step, subject, body)
	}
	if x.sunk.objects == nil {
		x.sunk.objects = map[string]simObject{}
	}
	now := simObject{subject, o.Step, string(o.Value)}
	before, again := x.sunk.objects[id[0]]
	switch {
	case !again:
		x.sunk.objects[id[0]] = now
		t.w.stats["an object went to a sink"]++
	case before != now:
		t.w.violate("A10", "two owners sent under %s what is not the same: %v and %v", id[0], before, now)
	default:
		t.w.stats["an object went to a sink again"]++
	}
}

// checkSunk checks what sinks have when a run is over.
func (t *truths) checkSunk(x *truth, doc *outcome.Run) {
	if !x.agent || !t.w.sinks() {
		return
	}
	went, came := map[string]simObject{}, map[string]bool{}
	for _, o := range x.sunk.objects {
		went[o.step+" "+o.subject] = o
	}
	eachStep(doc.Steps, func(st *outcome.Step) {
		came[st.ID] = st.Status == outcome.StepSucceeded
		result, known := x.sunk.results[x.begunAs(st.ID)]
		to, path := sinksOf(x, st.ID, st.Tool)
		if !came[st.ID] || !known {
			return
		}
		if len(to) > 0 && x.uncaptured(t.w, st.ID, st.Tool) {
			for sink, o := range went {
				if o.step == st.ID {
					t.w.violate("A10", "what %s returned is at %s, and the condition of its entry does not hold for it", st.ID, sink)
				}
			}
			t.w.stats["an object that is not taken, for what is around it"]++
			return
		}
		if len(to) > 0 && st.Tool == simLate && t.w.asksAround() != "" {
			t.w.stats["an object that is taken, for what is around it"]++
		}
		if path != "" {
			var members map[string]json.RawMessage
			if _ = json.Unmarshal(result, &members); members[path] == nil {
				return
			}
			result = members[path]
		}
		for _, sink := range to {
			if strings.HasSuffix(sink, ".") {
				sink = subjects.BucketSubject(subjects.SinksBucket, subjects.SinkKey(x.id, x.gen, strings.Split(sink, ".")[3], st.ID))
			}
			o, is := went[st.ID+" "+sink]
			if !is || o.value != string(bytes.TrimSpace(result)) {
				t.w.violate("A10", "the run is over, and what %s returned, %s, is at %s as %q", st.ID, result, sink, o.value)
			}
			t.w.stats["an object was where it belongs"]++
		}
	})
	for _, o := range went {
		if !came[o.step] {
			t.w.violate("A10", "%s went to %s as what %s returned, which did not succeed", o.value, o.subject, o.step)
		}
	}
}
