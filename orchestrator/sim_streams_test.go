package orchestrator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/agent/parts"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// In a sixth of the worlds with an agent another agent lets steps begin while its planner writes. Its workers die between
// two steps, are handed the attempt again, go on to hand over steps of an attempt that is over, and answer with another plan
// than the one of which they have handed over the beginning.

const (
	simWritten = "written.0/a" // the agent
	simWriter  = "writer/a"    // its planner
	simPayer   = "payer/a"     // a tool that is hinted destructive
)

const simStreamReply = "_INBOX.streamed."

// writes reports whether this is such a world.
func (w *world) writes() bool { return w.bug == none && w.withAgents() && w.seed/11%6 == 3 }

// registerWriter puts the agent and its tools into the registry.
func (w *world) registerWriter() {
	if !w.writes() {
		return
	}
	yes := true
	for _, name := range []string{simWriter, simPayer} {
		w.agentTools = append(w.agentTools, name)
		c := tool.Contract{Mode: tool.FanOutBounded, Limit: 3, MaxAttempts: 5, Timeout: 3e9, ErrorPropagation: tool.FailFast, Backoff: tool.Backoff{Initial: 25e7, Max: 1e9}, PartContent: w.carries()}
		d := &tool.Definition{Name: name}
		if name == simPayer {
			d.Annotations = &tool.Annotations{DestructiveHint: &yes}
		}
		w.knobs.tools[name] = tool.Registered{Name: name, Definition: d, Contract: c, Digest: "d" + name, AckWait: 2e9, Revision: 1}
		w.steps.consumers[name] = &consumer{tool: name, limit: c.Limit, ackWait: 2e9, leases: map[uint64]time.Duration{}}
		w.templates.kept["d"+name] = d
	}
	w.registerAgent(simWritten, fmt.Sprintf(`{"planner":{"tool":%q,"mode":"plan"},"tools":[{"tool":%q%s},%q],"stream_plan":true}`, simWriter, simOpener, w.artifact("Written", "", "", writtenSink), simPayer))
}

// submitWriter submits a run that calls it.
func (w *world) submitWriter() {
	if !w.writes() {
		return
	}
	body := fmt.Appendf(nil, `{"steps":[{"id":"a","tool":%q}]}`, simWritten)
	w.truths.agents[plan.Digest(body)], w.truths.writers[plan.Digest(body)] = true, true
	w.at(w.knobs.faults/4, func() { w.submit(subjects.NewRun("t", "writer"), body, nil) })
}

// simWrites is what its planner hands over, in the order in which it writes it; of each step, what it waits for.
var simWrites = []struct{ id, after, step string }{
	{"p", "", `{"id":"p","tool":"payer/a","arguments":{"n":9}}`},
	{"b", "a", `{"id":"b","tool":"opener/a","arguments":{"n":"$ref:a.n"}}`},
	{"a", "", `{"id":"a","tool":"opener/a","arguments":{"n":1}}`},
	{"c", "b", `{"id":"c","tool":"opener/a","depends_on":["b"],"arguments":{"n":3}}`},
	{"d", "", `{"id":"d","tool":"opener/a","arguments":{"n":4}}`},
}

// writesWhole is the answer behind what was handed over: in a third of the worlds it lacks a step, in a third one is another.
func (w *world) writesWhole(round int) string {
	if round > 1 || round == 1 && w.writesKind() != 2 {
		return fmt.Sprintf(`{"steps":[{"id":"e","tool":"opener/a","arguments":{"n":"$ref:r%d.b.n"}}],"output":{"n":"$ref:e.n"}}`, round-1)
	}
	var steps []string
	for _, x := range simWrites {
		switch {
		case w.writesKind() == 1 && x.id == "d":
		case w.writesKind() == 2 && x.id == "a" && round == 0:
			steps = append(steps, `{"id":"a","tool":"opener/a","arguments":{"n":2}}`)
		default:
			steps = append(steps, x.step)
		}
	}
	return `{"steps":[` + strings.Join(steps, ",") + `]}`
}

func (w *world) writesKind() int64 { return w.seed / 66 % 3 }

// simStreams is what an observer of the ledger knows of what planners of a run have handed over.
type simStreams struct {
	claims map[string]string // by planner's call and attempt: the nonce of the one that counts
	ended  map[string]uint64 // by planner's call and attempt: where its record stands
	over   map[string]int    // by planner's call: attempts that have one
	added  map[string]simAdd // by call
	done   map[string]uint64 // by call: where its success stands
	force  map[string]bool   // by scope and number: whether the amendment counts
}

// simAdd is where a step was added, and by which attempt.
type simAdd struct {
	seq     uint64
	planner string
	attempt int
}

func newSimStreams() *simStreams {
	return &simStreams{claims: map[string]string{}, ended: map[string]uint64{}, over: map[string]int{}, added: map[string]simAdd{}, done: map[string]uint64{}, force: map[string]bool{}}
}

func attemptKeyOf(call string, n int) string { return call + " " + strconv.Itoa(n) }

// claimRecorded takes note of a claim: it counts where it stands before the record of its attempt, and behind that of the one before.
func (s *simStreams) claimRecorded(a subjects.Attempt, body []byte) {
	if s == nil || a.Tool != simWriter || s.over[a.Step] != a.Number-1 {
		return
	}
	if key := attemptKeyOf(a.Step, a.Number); s.claims[key] == "" {
		s.claims[key] = wire.ParseClaim(body).Nonce
	}
}

// stepRecorded takes note of what decided an attempt.
func (s *simStreams) stepRecorded(a subjects.Attempt, seq uint64, err *fault.Error) {
	switch {
	case s == nil:
	case a.Tool == simWriter && s.over[a.Step] == a.Number-1:
		if err == nil {
			s.done["answered "+attemptKeyOf(a.Step, a.Number)] = seq
		}
		s.over[a.Step] = a.Number
		s.ended[attemptKeyOf(a.Step, a.Number)] = seq
	case err == nil:
		s.done[a.Step] = seq
	}
}

// streamAmended takes note of an amendment by which a planner hands over steps, and finds out whether it counts.
func (t *truths) streamAmended(x *truth, rec subjects.Record, e *kv.Entry) {
	a, s := wire.ParseAmend(e.Data), x.streams
	planner := subjects.OwnCall(subjects.ScopeOf(rec.Step), "plan")
	if a.Streamed == nil || a.Round == nil || len(a.Add) == 0 {
		t.w.violate("I8", "an amendment of what a planner has begun that none has handed over: %s %s", e.Subject, e.Data)
		return
	}
	for _, step := range a.Add {
		if !slices.ContainsFunc(simWrites, func(x struct{ id, after, step string }) bool { return x.step == string(step) && x.id != "p" }) {
			t.w.violate("A9", "a planner has begun %s", step)
		}
	}
	counts := !x.stopped && s.over[planner] == a.Streamed.Attempt-1 && s.claims[attemptKeyOf(planner, a.Streamed.Attempt)] == a.Streamed.Nonce && a.Streamed.Nonce != ""
	for _, step := range a.Add {
		_, twice := s.added[subjects.InScope(rec.Step, idIn(step))]
		counts = counts && !twice
	}
	s.force[attemptKeyOf(rec.Step, rec.Number)] = counts
	if !counts {
		t.w.stats["an amendment of an attempt that was over"]++
		return
	}
	t.w.stats["a planner handed over steps"]++
	for _, step := range a.Add {
		s.added[subjects.InScope(rec.Step, idIn(step))] = simAdd{e.Seq, planner, a.Streamed.Attempt}
	}
}

func idIn(step []byte) string {
	var s struct{ ID string }
	_ = json.Unmarshal(step, &s)
	return s.ID
}

// mayBegin reports whether a step of what a planner has begun began before the attempt ended that has handed it over: by the ledger alone.
func (s *simStreams) mayBegin(call string) bool {
	add, is := s.added[call]
	end, ended := s.ended[attemptKeyOf(add.planner, add.attempt)]
	if !is {
		return false
	}
	scope, id := subjects.ScopeOf(call), call[strings.LastIndexByte(call, '/')+1:]
	k := slices.IndexFunc(simWrites, func(x struct{ id, after, step string }) bool { return x.id == id })
	if after := simWrites[k].after; after != "" {
		before := subjects.InScope(scope, after)
		done, is := s.done[before]
		if !is || ended && done > end && !s.succeeded(add) {
			return false
		}
	}
	return true
}

// succeeded reports whether the planner has answered in the attempt that has handed a step over: then all of it runs.
func (s *simStreams) succeeded(add simAdd) bool {
	_, is := s.done["answered "+attemptKeyOf(add.planner, add.attempt)]
	return is
}

// streamDispatched checks what is sent of such an agent.
func (t *truths) streamDispatched(x *truth, a subjects.Attempt) {
	s := x.streams
	scope := subjects.ScopeOf(a.Step)
	id := a.Step[strings.LastIndexByte(a.Step, '/')+1:]
	switch {
	case a.Tool == simWriter:
	case strings.HasSuffix(scope, "/=stream"):
		if a.Tool == simPayer {
			t.w.violate("A9", "%s is hinted destructive, and began before the answer was whole", a.MessageID())
		}
		if !s.mayBegin(a.Step) {
			t.w.violate("A9", "%s was dispatched, and nobody whose attempt was out has handed it over, or it had not begun when that ended", a.MessageID())
		}
		t.w.stats["a step began while its planner wrote"]++
	case !x.told["round "+scope]:
		t.w.violate("A1", "%s was dispatched before its round was decided", a.MessageID())
	default:
		if len(x.out[subjects.InScope(subjects.OwnCall(scope, "stream"), id)]) > 0 {
			t.w.violate("A9", "%s had begun before the answer was whole, and was made again", a.MessageID())
		}
	}
}

// writerPlays answers a call of the planner, which is told of all that has begun.
func (w *world) writerPlays(a subjects.Attempt, args []byte) reference.Reply {
	var r struct {
		Round int
		Began []struct{ ID string }
	}
	whole, err := parts.NewKeeper(parts.DefaultKept).Whole(context.Background(), args, func(_ context.Context, name string) ([]byte, error) { return w.blobs[name], nil })
	if err != nil || json.Unmarshal(whole, &r) != nil {
		w.violate("A3", "a planner was asked with %s", args)
		return reference.Reply{Body: []byte(`{"output":null}`)}
	}
	x := w.truths.of(a.Run, a.Generation)
	scope := subjects.OwnCall(subjects.ScopeOf(a.Step), "stream")
	for call, add := range x.streams.added {
		if subjects.ScopeOf(call) != scope || add.attempt >= a.Number || !x.streams.mayBegin(call) {
			continue
		}
		id := call[strings.LastIndexByte(call, '/')+1:]
		if !slices.ContainsFunc(r.Began, func(b struct{ ID string }) bool { return b.ID == id }) {
			w.violate("A9", "attempt %d of %s is not told that %s has begun: %s", a.Number, a.Step, id, whole)
		}
		w.stats["a planner was told what has begun"]++
	}
	if w.writesKind() == 1 && r.Round == 1 && len(x.out[subjects.InScope("a/=0/=stream", "d")]) > 0 && !bytes.Contains(whole, []byte("your answer does not have it")) {
		w.violate("A9", "a planner is not told that its answer lacked what had begun: %s", whole)
	}
	return reference.Reply{Body: []byte(w.writesWhole(r.Round))}
}

// writing hands over steps while the answer is written, in the first rounds.
func (h *hand) writing(m *message, step *wire.Step) {
	nonce := h.claims[m.attempt]
	if nonce == "" {
		h.nonces++
		mine := wire.Claim{Nonce: h.name + "/" + strconv.Itoa(h.nonces), Seq: m.seq}
		header, body := mine.Message(h.name)
		d, _, _ := h.store.Create(context.Background(), step.Stream, header, body, &kv.Fence{Subject: subjects.PlanRecord(m.attempt.Run, h.store.Shards()), Seq: m.attempt.Generation})
		if d != kv.Written {
			if e := h.found(step.Stream); e == nil || wire.ParseClaim(e.Data) != mine {
				return
			}
		}
		nonce = mine.Nonce
	}
	if strings.HasPrefix(m.attempt.Step, "a/=0/") || h.w.writesKind() == 2 && strings.HasPrefix(m.attempt.Step, "a/=1/") {
		for n := 0; n < len(simWrites); n++ {
			add := []json.RawMessage{[]byte(simWrites[n].step)}
			if n++; h.w.chance(2) && n < len(simWrites) {
				add = append(add, []byte(simWrites[n].step))
			} else {
				n--
			}
			h.sleep(h.w.upTo(80 * time.Millisecond))
			h.dies("while it wrote")
			said := nonce
			if h.w.chance(9) {
				said = "somebody else's"
			}
			body, _ := wire.HandOver{Nonce: said, Add: add}.Body()
			for range 1 + h.w.Intn(2) {
				for _, o := range h.w.owners {
					o.after(h.w.latency(), func() {
						takeHandedOver(o.svc, &nats.Msg{Subject: subjects.Stream(m.attempt), Reply: simStreamReply + m.attempt.ID, Data: body})
					})
				}
			}
		}
		h.sleep(h.w.upTo(80 * time.Millisecond))
	}
}

// streamAnswered takes the answer to who has handed over steps.
func (t *truths) streamAnswered(m *nats.Msg) (is bool) {
	if _, is = strings.CutPrefix(m.Subject, simStreamReply); !is {
		return false
	}
	if err := wire.ParseRefusal(m.Header, m.Data); err != nil {
		t.w.stats["steps were refused: "+string(fault.CodeOf(err))]++
		return true
	}
	if over, ok := wire.ParseHandedOver(m.Data); !ok || len(over.Begun)+len(over.Held) == 0 {
		t.w.violate("A9", "steps that were handed over were answered with %s", m.Data)
	}
	t.w.stats["steps were answered"]++
	return true
}

// streamsAlike: each owner takes those amendments for valid that count by the ledger alone.
func (o *orch) streamsAlike(r *run, x *truth) {
	if x.streams == nil || r.machine == nil || !machine.Settled(r.machine) || x.stopped {
		return
	}
	for _, a := range r.machine.Amendments() {
		counts, known := x.streams.force[attemptKeyOf(a.Scope, a.Revision)]
		if !known || counts != a.InForce() {
			o.w.violate("I11", "%s makes of %s %d: in force %v (%v), and by the ledger %v", o.name, a.Scope, a.Revision, a.InForce(), a.Stale(), counts)
		}
		o.w.stats["an amendment of a planner was read"]++
	}
}

// checkStreams: all is over, and where nothing but the tools had a say the agent came to what its planner says.
func (t *truths) checkStreams(x *truth, doc *outcome.Run) {
	for call := range x.streams.added {
		if n := x.effects[call]; n > 0 {
			t.w.stats["a call that had begun"]++
		}
	}
	if x.swayed() || x.reused {
		return
	}
	for step, records := range x.records {
		for n, err := range records {
			if err != nil && (!strings.HasSuffix(step, "/=plan") || x.final[step] && !x.succeeded[step] || n == 0) {
				return
			}
		}
	}
	got, _ := doc.Outcome.Results.Get("a")
	if doc.Status != outcome.Succeeded || string(got) != `{"n":1}` {
		t.w.violate("A5", "the agent came to %s: %s", got, doc.Outcome.JSON())
	}
	t.w.stats["an agent that streams compared with its script"]++
}
