//go:build !race

package orchestrator

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/orchestrator/agents"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// Random planners hand over steps, die, are asked again, and answer with what they have handed over or with something else. What
// owners make of it, each by the ledger alone, is held against a twin that knows none of their code (reference.Writing).

var streamed = flag.Int("streamed", 1000, "how many planners that hand over steps are held against their twin")

// streamTools are those of the agent. Its planner is tried as often as its contract says.
var streamTools = map[string]*tool.Definition{"find": {Name: "find"}, "pay": {Name: "pay", Annotations: &tool.Annotations{DestructiveHint: new(bool)}}, "planner": {Name: "planner"}}

type streamCatalog struct{}

func (streamCatalog) Definition(name string) (*tool.Definition, bool) {
	d, is := streamTools[name]
	return d, is
}
func (streamCatalog) Group(string) ([]string, bool) { return nil, false }
func (streamCatalog) Groups() []string              { return nil }
func (c streamCatalog) Searchable(string) []string  { return c.Names() }
func (streamCatalog) Names() []string               { return slices.Sorted(maps.Keys(streamTools)) }

// streamOwner is an owner of the run, as far as it has read the ledger.
type streamOwner struct {
	r    *run
	out  map[string]machine.Dispatch // what tools and planners are at, by token
	asks bool                        // the record of a round is to be made
}

// streamWorld is the ledger of a run of one agent, and who writes to it.
type streamWorld struct {
	*rand.Rand
	t      *testing.T
	seed   int64
	start  *wire.Start
	set    agentSet
	root   *plan.Plan
	ledger []entry
	nonces map[subjects.Attempt]string
	owner  *streamOwner
	twin   *reference.Writing
	draft  []string    // of the answer that is being written
	asked  string      // of who writes it
	late   *streamLate // an amendment that somebody is about to record
	calls  map[string]int
	stats  map[string]int
}

type streamLate struct {
	at  subjects.Record
	rec wire.Amend
}

var streamRun = subjects.NewRun("t", "r")

const streamScope = "a/=%d/=stream"

func newStreamWorld(t *testing.T, seed int64, stats map[string]int) *streamWorld {
	w := &streamWorld{Rand: rand.New(rand.NewSource(seed)), t: t, seed: seed, nonces: map[subjects.Attempt]string{}, calls: map[string]int{}, stats: stats}
	w.twin = &reference.Writing{Early: map[string]bool{"find": true}, Late: map[string]bool{"pay": true}, Most: 4}
	*streamTools["pay"].Annotations.DestructiveHint = true
	d, err := tool.ParseDefinition([]byte(`{"name":"writes","agent":{"planner":{"tool":"planner","mode":"plan"},"tools":["find","pay"],"stream_plan":true,"max_rounds":4}}`))
	require.NoError(t, err)
	a, report := agents.Read(d, streamCatalog{})
	require.NotNil(t, a, "%v", report.Problems)
	w.set = agentSet{defined: map[string]*agent.Definition{"writes": a}, templates: map[string]*plan.Template{"writes": {Name: "writes", Agent: agents.Of(a, plan.Report{})}}}
	once := tool.Contract{MaxAttempts: 1, Limit: 9, ErrorPropagation: tool.FailFast}
	again := once
	again.MaxAttempts = 3
	w.start = &wire.Start{Tools: map[string]*wire.FrozenTool{"find": {Contract: once}, "pay": {Contract: once}, "planner": {Contract: again}, "writes": {Contract: once, Agent: true}},
		Needs: slices.Collect(maps.Keys(wire.Ours()))}
	var parsed plan.Report
	w.root, parsed = plan.ParseLimited([]byte(`{"steps":[{"id":"a","tool":"writes"}]}`), nil, plan.Limits{Templates: w.set.templates})
	require.NotNil(t, w.root, "%v", parsed.Problems)
	w.owner = w.open(0)
	return w
}

var streamEpoch = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// open returns an owner that has read so many records.
func (w *streamWorld) open(upTo int) *streamOwner {
	o := &streamOwner{out: map[string]machine.Dispatch{}, r: &run{
		identity: identity{id: streamRun, generation: 1, submitted: streamEpoch}, phase: running,
		progress: progress{plan: w.root, start: w.start, resolver: w.root.NewResolver(), agents: &agentsOf{agentSet: w.set}},
	}}
	o.r.machine = machine.New(w.root, machine.Start{Key: "t/r/1", Submitted: streamEpoch, Started: streamEpoch, Contracts: contracts(w.start), AgentEnds: true, EachGuard: true})
	var out machine.Effects
	o.r.machine.Begin(&out)
	o.take(&out)
	for i := range w.ledger[:upTo] {
		o.read(w, &w.ledger[i])
	}
	return o
}

// read reads a record as drivers do.
func (o *streamOwner) read(w *streamWorld, e *entry) {
	rec := machine.Record{Seq: e.Seq, Time: e.Time}
	switch e.rec.Kind {
	case subjects.StepKind:
		token, said := e.rec.Attempt.Step, wire.ParseCleanResult(e.Header, e.Data, wire.Codes{Own: true}, func() *wire.Redactor { return nil })
		rec.Result = &machine.Result{Call: machine.Call{Step: machine.NotYet}, Token: &token, Attempt: e.rec.Attempt.Number, Body: said.Body, Error: said.Error}
	case subjects.ClaimKind:
		rec.Claim = &machine.Claim{Token: e.rec.Attempt.Step, Attempt: e.rec.Attempt.Number, Nonce: wire.ParseClaim(e.Data).Nonce}
	case subjects.AmendKind:
		a := wire.ParseAmend(e.Data)
		rec.Amendment = amendmentOf(o.r, e.rec, &a)
		o.r.agents.amended.Put(amendedRound{e.rec.Step, e.rec.Number}, a.Round)
	case subjects.RoundKind:
		rec.Round = roundOf(o.r, *e)
		o.asks = false
	default: // a world of these writes no others
	}
	var out machine.Effects
	o.r.machine.Apply(rec, e.Time, &out)
	if e.rec.Kind == subjects.StepKind {
		delete(o.out, e.rec.Attempt.Step)
	}
	o.take(&out)
	require.Empty(w.t, len(out.Expand)+len(out.Enter)+len(out.Judge)+len(out.Weigh)+len(out.Ask)+len(out.Shape)+len(out.Decide), "%d: %+v", w.seed, out)
}

func (o *streamOwner) take(out *machine.Effects) {
	for _, d := range out.Dispatch {
		o.out[o.r.token(d.Call)] = d
	}
	o.asks = o.asks || len(out.Round) > 0
}

// record writes a record to the ledger, and lets the owner read it.
func (w *streamWorld) record(at subjects.Record, header map[string][]string, data []byte) {
	n := uint64(len(w.ledger) + 1)
	w.ledger = append(w.ledger, entry{at, kv.Entry{Header: header, Data: data, Seq: 10 * n, Time: streamEpoch.Add(time.Duration(n) * time.Second)}})
	w.owner.read(w, &w.ledger[n-1])
}

// planner returns the planner's attempt that is out; nil for none.
func (w *streamWorld) planner() *machine.Dispatch {
	for token, d := range w.owner.out {
		if strings.HasSuffix(token, "/=plan") {
			return &d
		}
	}
	return nil
}

func (w *streamWorld) looks() *agents.Loop {
	o := w.owner
	of := machine.Call{Step: 0}
	x, err := gathered(o.r, of, machine.RoundCount(o.r.machine, of)-1, true).read(context.Background(), &values{})
	require.Nil(w.t, err, "%d", w.seed)
	return x
}

// step writes a step of the answer. Now and then it is wrong.
func (w *streamWorld) step(id string) string {
	name := []string{"find", "find", "find", "find", "find", "pay", "nobody"}[w.Intn(7)]
	more := ""
	if w.Intn(12) == 0 {
		more = `,"approval":true`
	}
	others := "abcdefg"
	n := fmt.Sprint(w.Intn(9))
	switch k := w.Intn(6); {
	case k < 2 && w.Intn(9) > 0: // one that is written before it, mostly
		n = fmt.Sprintf(`"$ref:%c.n"`, others[w.Intn(1+strings.Index(others, id)/2)])
	case k == 2:
		n = fmt.Sprintf(`"$ref:%c.n"`, others[w.Intn(len(others))])
	case k == 3:
		more += fmt.Sprintf(`,"depends_on":["%c"]`, others[w.Intn(len(others))])
	case k == 4:
		if had := w.succeeded(); len(had) > 0 {
			n = fmt.Sprintf(`"$ref:%s.n"`, had[w.Intn(len(had))])
		}
	}
	return fmt.Sprintf(`{"id":%q,"tool":%q,"arguments":{"n":%s}%s}`, id, name, n, more)
}

// succeeded are the references to what has succeeded in rounds before.
func (w *streamWorld) succeeded() (refs []string) {
	for k, r := range w.twin.Rounds {
		for _, s := range r.Steps {
			if s.Status == "succeeded" {
				refs = append(refs, fmt.Sprintf("r%d.%s", k, s.ID))
			}
		}
	}
	return refs
}

// handOver hands over some of what is being written, and perhaps something else under an id of it.
func (w *streamWorld) handOver(d *machine.Dispatch) {
	var add []string
	for range 1 + w.Intn(3) {
		one := w.draft[w.Intn(len(w.draft))]
		if w.Intn(10) == 0 {
			one = w.step(string("abcdefg"[w.Intn(7)]))
		}
		if !slices.ContainsFunc(add, func(s string) bool { return idIn([]byte(s)) == idIn([]byte(one)) }) {
			add = append(add, one)
		}
	}
	a := w.owner.r.attempt(d.Call, d.Attempt)
	if w.nonces[a] == "" {
		if w.Intn(5) == 0 { // somebody has not claimed it
			require.False(w.t, machine.Claimed(w.owner.r.machine, d.Call, d.Attempt))
			w.recordAdd(w.addition(a, "stranger", add, nil))
			return
		}
		w.nonces[a] = fmt.Sprint("w", w.Int())
		_, body := wire.Claim{Nonce: w.nonces[a], Seq: 1}.Message("w")
		w.record(subjects.Record{Kind: subjects.ClaimKind, Attempt: a}, nil, body)
		w.twin.Claim()
	}
	scope, n, ok := machine.Streams(w.owner.r.machine, d.Call)
	require.True(w.t, ok && n == d.Attempt && scope == fmt.Sprintf(streamScope, len(w.twin.Rounds)), "%d", w.seed)
	p, _, _ := machine.ScopeNamed(w.owner.r.machine, scope)
	var stands []string
	for i := range p.Steps {
		stands = append(stands, p.Steps[i].ID)
	}
	var raw []json.RawMessage
	for _, s := range add {
		raw = append(raw, json.RawMessage(s))
	}
	over, err := agents.HandOver(w.looks(), stands, raw, w.owner.r.agents.frozen(w.owner.r))
	require.Nil(w.t, err)
	begun, held := w.twin.HandOver(add)
	got := map[string]bool{}
	for _, h := range over.Reply.Held {
		got[h.ID] = true
		w.stats["held: "+strings.Join(strings.Fields(h.Why)[:2], " ")]++
	}
	require.ElementsMatch(w.t, slices.Collect(maps.Keys(begun)), over.Reply.Begun, "seed %d: begun of %s, beside %v: %+v", w.seed, add, stands, over.Reply)
	require.Equal(w.t, held, got, "seed %d: held of %s", w.seed, add)
	if len(over.Add) > 0 {
		late := w.addition(a, w.nonces[a], nil, over)
		if w.Intn(5) == 0 {
			w.late = late
			return
		}
		w.recordAdd(late)
	}
}

// addition is the record by which steps begin.
func (w *streamWorld) addition(a subjects.Attempt, nonce string, add []string, over *agents.HandedOver) *streamLate {
	if over == nil {
		over = &agents.HandedOver{Round: &wire.AmendedRound{}}
		for _, s := range add {
			over.Add = append(over.Add, json.RawMessage(s))
		}
	}
	h := &handing{r: w.owner.r, of: a, asks: wire.HandOver{Nonce: nonce}}
	rec, at := h.recordOf(fmt.Sprintf(streamScope, len(w.twin.Rounds)), over)
	at.Kind = subjects.AmendKind
	return &streamLate{at, rec}
}

// recordAdd records it, unless somebody else has used its number.
func (w *streamWorld) recordAdd(x *streamLate) {
	if w.owner.r.machine.Amendment(x.at.Step, x.at.Number) != nil {
		w.stats["a number that was used"]++
		return
	}
	_, body, err := x.rec.Message()
	require.NoError(w.t, err)
	var steps []string
	for _, s := range x.rec.Add {
		if !agent.IsRound(agent.StepID(s)) {
			steps = append(steps, string(s))
		}
	}
	round := 0
	_, _ = fmt.Sscanf(x.at.Step, streamScope, &round)
	counts := round == len(w.twin.Rounds) && x.rec.Streamed.Nonce != "stranger" && w.twin.Add(x.rec.Streamed.Attempt, steps)
	w.record(x.at, nil, body)
	a := w.owner.r.machine.Amendment(x.at.Step, x.at.Number)
	require.NotNil(w.t, a, "seed %d", w.seed)
	require.Equal(w.t, counts, a.InForce(), "seed %d: %s: %v", w.seed, body, a.Stale())
	w.stats[fmt.Sprint("an amendment that counts: ", counts)]++
}

// ends ends an attempt: with an answer, or without.
func (w *streamWorld) ends(d *machine.Dispatch) {
	a := w.owner.r.attempt(d.Call, d.Attempt)
	at := subjects.Record{Kind: subjects.StepKind, Attempt: a}
	if w.Intn(3) == 0 {
		w.twin.Ends(d.Attempt == 3)
		h, body := wire.Result{Error: &fault.Error{Code: fault.ToolFailed, Message: "broke off", Retryable: true}}.Message()
		w.record(at, h, body)
		return
	}
	var steps []string
	lacks, changes := w.Intn(4) == 0, w.Intn(5) == 0
	for _, s := range w.draft {
		switch {
		case lacks && w.Intn(4) == 0:
		case changes && w.Intn(4) == 0:
			steps = append(steps, w.step(idIn([]byte(s))))
		default:
			steps = append(steps, s)
		}
	}
	steps = w.sound(steps)
	if w.Intn(8) == 0 {
		steps = append(steps, `{"id":"h","tool":"pay","arguments":{"n":7}}`)
	}
	w.Shuffle(len(steps), func(i, k int) { steps[i], steps[k] = steps[k], steps[i] })
	output, member := "", ""
	if len(steps) == 0 || w.Intn(5) == 0 {
		output, member = `"done"`, `,"output":"done"`
	}
	answer := fmt.Sprintf(`{"steps":[%s]%s}`, strings.Join(steps, ","), member)
	if len(steps) == 0 {
		answer = `{"output":"done"}`
	}
	changed := w.twin.Answer(steps, output)
	if len(changed) > 0 {
		w.stats["an answer that changes what had begun"]++
	}
	h, body := wire.Result{Body: []byte(answer)}.Message()
	w.record(at, h, body)
}

// sound leaves out, mostly, what makes an answer one of no use: a call of nobody, and what refers to what is not there.
func (w *streamWorld) sound(steps []string) []string {
	steps = slices.DeleteFunc(steps, func(s string) bool { return strings.Contains(s, "approval") }) // nobody is there to be asked
	if w.Intn(6) == 0 {
		return steps
	}
	for again := true; again; {
		again = false
		steps = slices.DeleteFunc(steps, func(s string) (out bool) {
			missing := func(id string) bool {
				return !slices.ContainsFunc(steps, func(other string) bool { return idIn([]byte(other)) == id })
			}
			for _, id := range strings.Split("abcdefg", "") {
				out = out || strings.Contains(s, "$ref:"+id+".") && missing(id) || strings.Contains(s, `["`+id+`"]`) && missing(id)
			}
			out = out || strings.Contains(s, "nobody")
			again = again || out
			return out
		})
	}
	return steps
}

// works lets a tool be done with a call.
func (w *streamWorld) works() bool {
	var all []string
	for token := range w.owner.out {
		if !strings.HasSuffix(token, "/=plan") {
			all = append(all, token)
		}
	}
	if len(all) == 0 {
		return false
	}
	slices.Sort(all)
	token := all[w.Intn(len(all))]
	d, r := w.owner.out[token], w.owner.r
	in := asWritten(r, d.Call)
	args, err := (&values{}).arguments(context.Background(), &in)
	require.Nil(w.t, err, "seed %d: %s", w.seed, token)
	var said struct{ N int }
	require.NoError(w.t, json.Unmarshal(args, &said))
	ok := w.Intn(6) > 0
	id := token[strings.LastIndexByte(token, '/')+1:]
	require.Equal(w.t, strings.Contains(token, "/=stream/"), w.twin.Out()[id])
	w.calls[token]++
	require.Equal(w.t, 1, w.calls[token])
	w.twin.Over(id, said.N, ok)
	h, body := wire.Result{Body: args}.Message()
	if !ok {
		h, body = wire.Result{Error: &fault.Error{Code: fault.ToolTerminal, Message: "no"}}.Message()
	}
	w.record(subjects.Record{Kind: subjects.StepKind, Attempt: r.attempt(d.Call, d.Attempt)}, h, body)
	return true
}

// agree sees that what is out is what the twin says, and that a planner is told what it says.
func (w *streamWorld) agree() {
	out := map[string]bool{}
	for token := range w.owner.out {
		if !strings.HasSuffix(token, "/=plan") {
			out[token[strings.LastIndexByte(token, '/')+1:]] = strings.Contains(token, "/=stream/")
		}
	}
	want := w.twin.Out()
	if w.owner.asks { // nothing of the rest is out before the round's record stands
		maps.DeleteFunc(want, func(_ string, early bool) bool { return !early })
	}
	if !maps.Equal(want, out) {
		require.Equal(w.t, want, out, "seed %d: %s", w.seed, w.told())
	}
	d := w.planner()
	if d != nil && !w.twin.Asks() && w.Intn(20) == 0 {
		require.Equal(w.t, w.asked, string(w.request()), "seed %d: the request of attempt %d is another one now", w.seed, d.Attempt)
		w.stats["a request that was made again"]++
	}
	if d == nil || !w.twin.Asks() {
		return
	}
	w.twin.Attempt(d.Attempt)
	whole := w.request()
	w.asked = string(whole)
	type record struct {
		ID, Status, Note string
		Result           struct{ N int }
	}
	var said struct {
		Began  []record
		Rounds []struct {
			Records  []record
			Problems []fault.Problem
		}
	}
	require.NoError(w.t, json.Unmarshal(whole, &said))
	began := map[string]string{}
	for _, b := range said.Began {
		began[b.ID] = b.Status
	}
	require.Equal(w.t, w.twin.Began(), began, "seed %d: %s", w.seed, whole)
	w.stats["told what had begun"] += len(began)
	for k, round := range w.twin.Rounds {
		got, want := map[string]record{}, map[string]record{}
		for _, x := range said.Rounds[k].Records {
			if x.Status == "failed" {
				x.Result.N = 0
			}
			got[x.ID] = x
		}
		for _, s := range round.Steps {
			x := record{ID: s.ID, Status: s.Status}
			if x.Result.N = s.N; s.Status != "succeeded" {
				x.Result.N = 0
			}
			switch {
			case s.Lacked && round.Invalid:
				x.Note = "It began while you were writing."
			case s.Lacked:
				x.Note = "It began while your answer was written, and your answer does not have it."
			}
			want[s.ID] = x
		}
		require.Equal(w.t, want, got, "seed %d, round %d: %s", w.seed, k, whole)
		var changed []string
		for _, p := range said.Rounds[k].Problems {
			if p.Code == fault.DuplicateStep && strings.Contains(p.Message, "had begun") {
				changed = append(changed, strings.Split(p.Message, `"`)[1])
			}
		}
		require.Equal(w.t, round.Invalid, len(said.Rounds[k].Problems) > 0, "seed %d, round %d: %s", w.seed, k, whole)
		require.ElementsMatch(w.t, round.Changed, changed, "seed %d, round %d: %s", w.seed, k, whole)
	}
	w.draft = nil
	for _, id := range strings.Split("abcdefg", "") {
		if w.Intn(5) > 0 || id == "a" {
			w.draft = append(w.draft, w.step(id))
		}
	}
}

// request is what the planner whose attempt is out is asked, as whoever owns the run now makes it.
func (w *streamWorld) request() []byte {
	l := w.looks()
	asked, err := l.Ask(len(l.Rounds) - 1)
	require.Nil(w.t, err)
	whole, err := asked.Whole()
	require.Nil(w.t, err)
	return whole
}

// told is the ledger, to be read.
func (w *streamWorld) told() string {
	var b strings.Builder
	for _, e := range w.ledger {
		fmt.Fprintf(&b, "\n%d %v %s%s %d%d %s", e.Seq, e.rec.Kind, e.rec.Attempt.Step, e.rec.Step, e.rec.Attempt.Number, e.rec.Number, e.Data)
	}
	return b.String()
}

// decide records what the answer of a round comes to.
func (w *streamWorld) decide() {
	scope, waits := machine.RoundScope(w.owner.r.machine, machine.Call{Step: 0})
	require.True(w.t, waits, "seed %d", w.seed)
	d, err := w.looks().Decide(scope)
	require.Nil(w.t, err)
	_, body, bad := d.Message()
	require.NoError(w.t, bad)
	w.record(subjects.Record{Kind: subjects.RoundKind, Step: scope}, nil, body)
}

// live lets a run go on until it is over.
func (w *streamWorld) live() {
	w.agree()
	for n := 0; !w.owner.r.machine.Finished(); n++ {
		if n == 2000 {
			require.Fail(w.t, "it comes to no end", "seed %d: %s", w.seed, w.told())
		}
		switch k := w.Intn(9); {
		case k == 0 && w.Intn(4) == 0: // somebody else takes the run over
			w.owner = w.open(len(w.ledger))
			w.stats["another owner"]++
		case k == 1 && w.late != nil:
			w.recordAdd(w.late)
			w.late = nil
		case w.owner.asks:
			w.decide()
		case k < 5:
			if !w.works() {
				continue
			}
		case w.planner() == nil:
			continue
		case k == 8 && w.Intn(2) == 0:
			w.ends(w.planner())
		default:
			w.handOver(w.planner())
		}
		w.agree()
	}
	o := w.owner.r.machine.Outcome("r", w.owner.r.machine.Value)
	came, _ := o.Results.Get("a")
	if k := slices.IndexFunc(o.Errors, func(e outcome.StepError) bool { return e.Step == "a" }); k >= 0 {
		came = []byte(o.Errors[k].Code)
	}
	if w.twin.Came != string(came) {
		require.Equal(w.t, w.twin.Came, string(came), "seed %d: %s %s", w.seed, o.JSON(), w.told())
	}
	w.stats["came to "+w.twin.Came]++
}

// TestRandomStreamsMatchTheTwin: what owners make of random planners that hand over steps is what the twin does, whoever reads the
// ledger and whoever dies: which steps begin, and once each; what a planner is told; and what the agent comes to.
func TestRandomStreamsMatchTheTwin(t *testing.T) {
	t.Parallel()
	stats := map[string]int{}
	n := *streamed
	if testing.Short() {
		n = 300
	}
	for seed := range int64(n) {
		newStreamWorld(t, seed, stats).live()
	}
	for _, k := range slices.Sorted(maps.Keys(stats)) {
		t.Log(stats[k], k)
	}
	for _, what := range []string{
		"an amendment that counts: true", "an amendment that counts: false", "a number that was used", "an answer that changes what had begun", "another owner", "told what had begun",
		"a request that was made again", "held: another step", "held: its tool", `came to "done"`, "came to planner_invalid", "came to rounds_exhausted", "came to tool_failed",
	} {
		require.NotZero(t, stats[what], what)
	}
}
