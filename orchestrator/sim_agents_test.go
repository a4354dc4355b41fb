package orchestrator

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// In some worlds a run calls an agent, whose planner plays a script. Owners die in all phases of its rounds, and several
// may have it at once: whatever they make of a planner's answer has to be the same.

// The tools of such worlds. One of them is locked until another has succeeded.
const (
	simAgent   = "agent.0/a"
	simClerk   = "clerk.0/a" // an agent that the other calls
	simPlanner = "planner/a"
	simOpener  = "opener/a"
	simLate    = "late/a"
	simDigest  = "digest/a" // which summaries are asked of
)

// withAgents reports whether this is such a world.
func (w *world) withAgents() bool {
	return w.bug == loseRounds || w.bug == otherRounds || w.bug == roundsWithoutBlobs || w.bug == loseObjects || w.seed%11 == 4 && w.seed%4 != 3
}

// inlineRounds is how many bytes the record of a round has before it lies in a blob.
func (w *world) inlineRounds() int {
	if w.bug == roundsWithoutBlobs {
		return 0
	}
	if w.bug == otherRounds {
		return wire.InlineLimit
	}
	return []int{wire.InlineLimit, 0, 700}[w.seed%3]
}

// registerAgents puts an agent and its tools into the registry.
func (w *world) registerAgents() {
	if !w.withAgents() {
		return
	}
	for _, name := range []string{simPlanner, simOpener, simLate, simDigest, simJudge, simShutter} {
		w.agentTools = append(w.agentTools, name)
		c := tool.Contract{Mode: tool.FanOutBounded, Limit: 3, MaxAttempts: 3, Timeout: 3e9, ErrorPropagation: tool.FailFast, Backoff: tool.Backoff{Initial: 25e7, Max: 1e9}}
		c.PartContent = w.carries() // which only those heed that are planners
		d := &tool.Definition{Name: name}
		w.knobs.tools[name] = tool.Registered{Name: name, Definition: d, Contract: c, Digest: "d" + name, AckWait: 2e9, Revision: 1}
		w.steps.consumers[name] = &consumer{tool: name, limit: c.Limit, ackWait: 2e9, leases: map[uint64]time.Duration{}}
	}
	if w.templates.kept == nil {
		w.templates.plans, w.templates.kept = map[string]*plan.Template{}, map[string]*tool.Definition{}
	}
	for name := range map[string]bool{simPlanner: true, simOpener: true, simLate: true, simDigest: true, simJudge: true, simShutter: true} {
		w.templates.kept["d"+name] = &tool.Definition{Name: name}
	}
	budget := ""
	if n := w.budget(); n > 0 {
		budget = fmt.Sprintf(`,"budget":{"tokens":%d}`, n)
	}
	w.registerAgent(simClerk, fmt.Sprintf(`{"planner":{"tool":%q,"mode":"plan","max_output_tokens":700},"tools":[{"tool":%q%s}],"budget":{"tokens":%d}}`, simPlanner, simOpener, w.artifact("Seen", "", "", clerkSink), 9_000+w.seed%2*400_000))
	w.agentDefinition = fmt.Sprintf(`{"planner":{"tool":%q,"mode":"plan"},"approval":%s,"state":{"initial":{"none":null}},"guards":%s,"context":%s,"states":{"initial":"open","final":["shut"]},"tools":[{"tool":%q,"as":"shut","in":["open"],"to":"shut"},%q,%q,{"tool":%q,"as":"late","needs":{"all":[%q]}%s},{"unfold":"db","description":"Data.","tools":[{"tool":%q,"as":"more"%s}]}]%s}`,
		simPlanner, w.roundsApproval(), w.simGuards(), w.simContext(), simShutter, simClerk, simOpener, simLate, simOpener, w.artifact("a.Late", "", w.asksAround(), lateSinks), simOpener, w.artifact("More", "i", "", moreSink), budget)
	w.registerAgent(simAgent, w.agentDefinition)
	w.registerWriter()
}

// inline reports whether the run of a world defines its agent itself.
func (w *world) inline() bool { return w.seed/11%7 >= 4 }

func (w *world) registerAgent(name, definition string) {
	d, err := tool.ParseDefinition(fmt.Appendf(nil, `{"name":%q,"agent":%s}`, name, definition))
	if err != nil {
		panic(err)
	}
	contract, err := d.Contract()
	if err != nil {
		panic(err)
	}
	w.templates.kept[d.Digest()] = d
	w.knobs.tools[name] = tool.Registered{Name: name, Definition: d, Contract: contract, Digest: d.Digest(), Revision: 1}
	w.agentTools = append(w.agentTools, name)
}

// budget is how many tokens the agent of a world may use up; 0 for no bound. In a third it is too little.
func (w *world) budget() int64 {
	switch w.seed / 33 % 3 {
	case 1:
		return 1_000_000
	case 2:
		return 4_000 + w.seed%30_000
	}
	return 0
}

// submitAgents submits a run that calls the agent.
func (w *world) submitAgents() {
	if !w.withAgents() {
		return
	}
	body := fmt.Appendf(nil, `{"steps":[{"id":"a","tool":%q,"arguments":{"n":%d}}]}`, simAgent, w.seed%97)
	if w.inline() {
		body = fmt.Appendf(nil, `{"steps":[{"id":"a","agent":%s,"arguments":{"n":%d}}]}`, w.agentDefinition, w.seed%97)
		w.stats["a run that defines its agent itself"]++
	}
	w.truths.agents[plan.Digest(body)] = true
	w.submitWriter()
	w.at(w.knobs.faults/4, func() {
		w.submit(subjects.NewRun("t", "agent"), body, nil)
		w.saysTo(subjects.NewRun("t", "agent"), 0)
		w.amendsRounds(subjects.NewRun("t", "agent"), 0)
		if w.chance(4) {
			w.at(50*time.Millisecond+w.upTo(time.Second), func() { w.stopAndRetry(subjects.NewRun("t", "agent"), body) })
		}
	})
}

// simTemplatesOf are the templates of a world, and its agent.
func (w *world) simTemplatesOf() map[string]*plan.Template {
	if !w.withAgents() {
		return w.templates.plans
	}
	all := map[string]*plan.Template{}
	for _, name := range []string{simAgent, simClerk} {
		all[name] = &plan.Template{Name: name, Agent: &plan.Agent{Planner: simPlanner, MaxRounds: 20}}
	}
	if w.approvesRounds() {
		all[simAgent].Agent.Approval = &plan.Approval{}
	}
	if w.writes() {
		all[simWritten] = &plan.Template{Name: simWritten, Agent: &plan.Agent{Planner: simWriter, MaxRounds: 20, Streams: true}}
	}
	all[simAgent].Agent.Summary = simDigest
	if w.judges() {
		all[simAgent].Agent.GuardTools = []string{simJudge, simJudge, simJudge, simJudge}
	}
	all[plan.InlineName("", "a")] = &plan.Template{Name: plan.InlineName("", "a"), Agent: all[simAgent].Agent}
	for name, t := range w.templates.plans {
		all[name] = t
	}
	return all
}

// simScript is what the planner answers, by round.
var simScript = []string{
	`{"steps":[{"id":"x","tool":"opener/a","arguments":{"n":%d}},{"id":"z","tool":"late","arguments":{"n":1},"depends_on":["v"]},{"id":"v","value":1}]}`,
	`{"steps":[{"id":"y","tool":"opener/a","arguments":{"n":"$ref:r0.x.n"}},{"id":"l","tool":"late","arguments":{"n":"$ref:y.n"}},{"id":"o","tool":"db"},
		{"id":"w","tool":"opener/a","arguments":{"n":103}},{"id":"u","tool":"opener/a","depends_on":["w"],"arguments":{"n":103}},
		{"id":"g","tool":"opener/a","for_each":{"in":[1,2]},"arguments":{"i":"$ref:item"}},
		{"id":"c","tool":"clerk.0/a","for_each":{"in":[1,2,3]}},{"id":"d","tool":"clerk.0/a","depends_on":["y"]},{"id":"e","tool":"clerk.0/a","arguments":{"after":"$ref:c"}},
		` + simWithin + `]}`,
	`{"steps":[{"id":"both","tool":"more","for_each":{"in":[1,2]},"arguments":{"n":"$ref:r%[1]d.l.n","i":"$ref:item"}}],"output":"not all of it: $ref:none"}`,
	`{"steps":[{"id":"m","tool":"late","arguments":{"n":"$ref:r%[1]d.l.n"}}],"output":{"n":"$ref:m.n"}}`,
}

// simCalls is the same in the state dialect: what rounds tell each other goes through the state.
var simCalls = []string{
	`{"calls":[{"_tool":"opener/a","_id":"x","n":%d,"_outputPath":"†state.first"},{"_tool":"late","_id":"z","n":1}]}`,
	`{"calls":[{"_tool":"opener/a","_id":"y","n":"†state.first.n","_outputPath":"†state.log","_outputMethod":"push"},{"_tool":"late","_id":"l","n":"†state.log[0].n","_outputPath":"†state.second"},{"_tool":"db","_id":"o"},
		{"_tool":"clerk.0/a","_id":"c"},{"_tool":"clerk.0/a","_id":"d","n":"†state.second.n"}]}`,
	`{"calls":[{"_tool":"more","_id":"both","n":"†state.second.n"}],"output":"not all of it: †state.none"}`,
	`{"calls":[{"_tool":"late","_id":"m","n":"†state.second.n","_outputPath":"†state.m"}],"output":{"n":"†state.m.n"}}`,
}

// script is what the planner of a world answers, by round.
func (w *world) script() []string {
	if w.seed/11%3 == 1 {
		return simCalls
	}
	return simScript
}

// simClerkScript is what the planner answers that it is asked by an agent below.
var simClerkScript = []string{`{"steps":[{"id":"x","tool":"opener/a","arguments":{"n":1}}]}`, `{"output":1}`}

// plays answers a call of an agent's run.
func (w *world) plays(a subjects.Attempt, args []byte) reference.Reply {
	switch a.Tool {
	case simPlanner:
	case simWriter:
		return w.writerPlays(a, args)
	case simJudge:
		return reference.Reply{Body: w.truths.of(a.Run, a.Generation).judged(a, args)}
	case simDigest:
		return w.truths.summaryAsked(w.truths.of(a.Run, a.Generation), a, args)
	default:
		return w.playsCall(a, args)
	}
	var r struct {
		Round int
		Most  int64 `json:"max_output_tokens"`
	}
	if err := json.Unmarshal(args, &r); err != nil {
		w.violate("A3", "a planner was asked with %s", args)
		return reference.Reply{Body: []byte(`{"output":null}`)}
	}
	w.stats["a planner was asked"]++
	whole, err := w.wholeOf(args)
	x, own := w.truths.of(a.Run, a.Generation), ofTheAgent(a.Step)
	if own {
		w.truths.wordsAsked(x, whole)
		w.truths.replanAsked(x, r.Round, whole)
		w.truths.summaryTold(x, a, r.Round, whole)
		w.truths.unspent(x, a, whole)
	}
	if err != nil || bytes.Count(whole, []byte(`"records"`)) != r.Round && !x.words.cut && !isCut(whole) {
		w.violate("A6", "a planner was asked with %s, whose parts say %s: %v", args, whole, err)
	}
	answer := simClerkScript[min(r.Round, len(simClerkScript)-1)]
	switch {
	case own && r.Round == 0:
		answer = fmt.Sprintf(w.script()[0], w.seed%97)
	case own && w.script()[0] == simCalls[0]:
		answer = simCalls[min(r.Round, len(simCalls)-1)] // where its last calls failed, once more
	case own:
		answer = x.scripted(r.Round)
	}
	return reference.Reply{Body: x.spent.takes(a, answer, int64(len(whole)), r.Most)}
}

// ofTheAgent reports whether a call is one of the agent that the run calls, not of one below.
func ofTheAgent(step string) bool {
	segments, _ := subjects.ParseStepToken(step)
	return len(segments) == 3
}

// simSpent is what planners of a run have taken: all that they may.
type simSpent struct {
	took     map[string]int64 // by attempt: what it told, or did not tell, of
	recorded int64            // of attempts that have a record
	judges   map[string]int64 // likewise, of guards
	judged   int64            // by guards that had a record when the planner of the agent was asked
	since    int64            // by guards since
}

// takes returns an answer that mostly says what it took: a token for each byte of its request, and the longest answer.
func (s *simSpent) takes(a subjects.Attempt, answer string, in, out int64) []byte {
	if s.took == nil {
		s.took = map[string]int64{}
	}
	s.took[a.MessageID()] = in + out
	if len(a.Step)%4 == 3 {
		return []byte(answer)
	}
	return []byte(fmt.Sprintf(`{"usage":{"input_tokens":%d,"output_tokens":%d},`, in, out) + strings.TrimPrefix(answer, "{"))
}

// tokensRecorded checks that what planners and summaries have told of, and taken, stays within the budget, with what guards had
// told of when a round began: for these nothing is reserved.
func (t *truths) tokensRecorded(x *truth, a subjects.Attempt) {
	x.spent.since += x.spent.judges[a.MessageID()]
	x.spent.recorded += x.spent.took[a.MessageID()]
	switch n := t.w.budget(); {
	case n > 0 && x.spent.took[a.MessageID()] > 0 && x.spent.recorded+x.spent.judged > n:
		t.w.violate("A8", "%s: planners have taken %d tokens and guards %d, of a budget of %d", a.MessageID(), x.spent.recorded, x.spent.judged, n)
	case a.Tool == simPlanner && !ofTheAgent(a.Step):
		t.w.stats["a planner of an agent below answered"]++
	}
}

// unspent checks that who is asked first in a run that tries another one again has the whole budget: what was taken over has cost
// that one.
func (t *truths) unspent(x *truth, a subjects.Attempt, whole []byte) {
	if t.w.budget() == 0 || x.start == nil || x.start.Reuse == nil || len(x.start.Reuse.Rounds) == 0 || len(x.spent.judges) > 0 {
		return
	}
	for call := range x.out {
		if call != a.Step && (strings.HasSuffix(call, "/=plan") || strings.HasSuffix(call, "/=summary")) {
			return
		}
	}
	var r struct{ Budget struct{ Tokens int64 } }
	if err := json.Unmarshal(whole, &r); err != nil || r.Budget.Tokens != t.w.budget() {
		t.w.violate("A8", "%s is the first that is asked, and told that %d of %d tokens are left: %v", a.MessageID(), r.Budget.Tokens, t.w.budget(), err)
	}
	t.w.stats["a retry that has its whole budget"]++
}

// begins notes what guards had told of when the planner of the agent was asked.
func (s *simSpent) begins(a subjects.Attempt, out map[int]bool) {
	if a.Tool == simPlanner && ofTheAgent(a.Step) && len(out) == 0 {
		s.judged, s.since = s.judged+s.since, 0
	}
}

// scripted is what the planner answers behind the first round: the second answer until its last call has succeeded, then
// the third and, where its calls failed once more, the fourth.
func (x *truth) scripted(round int) string {
	for n := 1; n < round; n++ {
		if x.succeeded[subjects.InScope(subjects.Iteration("a", n), "l")] {
			return fmt.Sprintf(simScript[min(round+1-n, len(simScript)-1)], n)
		}
	}
	return simScript[1]
}

// agentStep returns the step of an agent's run that an attempt is of.
func agentStep(a subjects.Attempt) (*plan.Step, bool) {
	segments, ok := subjects.ParseStepToken(a.Step)
	if !ok || len(segments) < 3 || segments[0].Name != "a" || segments[1].Kind != subjects.IterationSegment {
		return nil, false
	}
	own := segments[len(segments)-1].Kind == subjects.CallSegment
	return &plan.Step{ID: a.Step, Tool: a.Tool}, own == (a.Tool == simPlanner || a.Tool == simWriter || a.Tool == simDigest || a.Tool == simJudge)
}

// agentDispatched checks that a round begins when the one before is over, its calls when it was decided, and that nothing
// passes its gate.
func (t *truths) agentDispatched(x *truth, a subjects.Attempt) {
	if x.streams != nil {
		t.streamDispatched(x, a)
		return
	}
	scope := subjects.ScopeOf(a.Step)
	t.checkRound(x, a)
	t.guardedDispatched(x, a)
	if a.Tool == simJudge { // also before a round is decided
		return
	}
	t.summaryDispatched(x, a)
	if !asksAhead(a) {
		if !x.told["round "+roundAround(a.Step)] {
			t.w.violate("A1", "%s was dispatched before its round was decided", a.MessageID())
		}
		if a.Tool == simLate && !x.opened() {
			t.w.violate("A2", "%s passed its gate", a.MessageID())
		}
		t.shutterDispatched(x, a)
		return
	}
	segments, _ := subjects.ParseStepToken(scope)
	round := segments[len(segments)-1].Number
	if round == 0 {
		return
	}
	before := subjects.Iteration(subjects.ScopeOf(scope), round-1)
	for call := range x.out {
		if x.words.cut || x.replanned() { // a failure of what was out was the last then, though it could be tried again
			break
		}
		if strings.HasPrefix(call, before+"/") && !x.final[call] && !t.notAskedAgain(x, call) {
			t.w.violate("A1", "%s was dispatched before %s was over", a.MessageID(), call)
		}
	}
	t.w.stats["a round after another"]++
}

// opened reports whether a call of the agent has succeeded that opens the gate of another.
func (x *truth) opened() bool {
	for token := range x.succeeded {
		if s, ok := subjects.ParseStepToken(token); ok && len(s) == 3 && (s[2].Name == "x" || s[2].Name == "y" || s[2].Name == "g" || strings.HasPrefix(s[2].Name, simAdded)) {
			return true
		}
	}
	return false
}

// roundOffered is the record of a round that an owner wants to write: all make the same.
func (t *truths) roundOffered(subject string, body []byte) {
	if first := t.rounds[subject]; first != nil && !bytes.Equal(first, body) {
		t.w.violate("A4", "%s is %s, and was %s", subject, body, first)
	} else if first != nil {
		t.w.stats["a round was made by two"]++
	}
	t.rounds[subject] = bytes.Clone(body)
}

// partOffered is the part of a request that an owner wants to store: all make the same.
func (t *truths) partOffered(name string, body []byte) {
	if first := t.rounds[name]; first != nil && !bytes.Equal(first, body) {
		t.w.violate("A6", "the part %s is %s, and was %s", name, body, first)
	}
	t.rounds[name] = bytes.Clone(body)
}

// roundRecorded checks that a round is decided once, when its planner has answered, and that whoever reads its record finds
// all of it.
func (t *truths) roundRecorded(x *truth, rec subjects.Record, e *kv.Entry) {
	var elsewhere struct {
		Handle *outcome.Handle
		Needs  []string
	}
	if err := json.Unmarshal(e.Data, &elsewhere); err != nil {
		t.w.violate("A9", "the record of the round %s is %s", rec.Step, e.Data)
	} else if h := elsewhere.Handle; h != nil {
		t.w.stats["a round lies in a blob"]++
		sum := sha256.Sum256(t.w.blobs[h.Name])
		if hex.EncodeToString(sum[:]) != h.SHA256 || len(elsewhere.Needs) != 1 || !slices.Contains(t.w.needs, elsewhere.Needs[0]) {
			t.w.violate("A9", "the record of the round %s stands before its blob, or before what it needs: %s", rec.Step, e.Data)
		}
	}
	switch {
	case !x.agent || x.start == nil || !x.succeeded[subjects.OwnCall(rec.Step, "plan")]:
		t.w.violate("A1", "the round %s was decided before its planner answered", rec.Step)
	case x.told["round "+rec.Step]:
		t.w.violate("I2", "a second record of the round %s", rec.Step)
	}
	x.told["round "+rec.Step] = true
	t.w.stats["a round was decided"]++
}

// checkRoundsAgain: what a run takes over of the rounds of the one that it tries again is sent to nobody, and the answer of the
// first round, before which there is nothing, is always taken.
func (t *truths) checkRoundsAgain(x *truth, doc *outcome.Run) {
	if x.start.Reuse == nil || len(x.start.Reuse.Rounds) == 0 {
		return
	}
	t.w.stats["an agent tried again from where it ended"]++
	eachStep(doc.Steps, func(st *outcome.Step) {
		_, has := x.start.Reuse.Rounds[st.ID]
		switch {
		case !has:
		case st.Reused && len(x.out[st.ID]) > 0:
			t.w.violate("I7", "%s of %s was taken over, and sent: %v", st.ID, x.id.ID, x.out[st.ID])
		case st.Reused:
			t.w.stats["a call in a round taken over"]++
		case !st.Ready.IsZero():
			t.w.stats["a call in a round made again"]++
			if strings.HasSuffix(st.ID, "/=0/=plan") && strings.Count(st.ID, "/") == 2 && st.Status == outcome.StepSucceeded && !x.swayed() {
				t.w.violate("I7", "the planner of %s was asked again: %v", st.ID, x.out[st.ID])
			}
		}
	})
}

// checkAgent: all is over, and where nothing but the tools had a say the agent came to what its script says.
func (t *truths) checkAgent(x *truth, doc *outcome.Run) {
	eachStep(doc.Steps, func(st *outcome.Step) {
		if !st.Status.Terminal() {
			t.w.violate("I1", "the run is over, and %s is %s", st.ID, st.Status)
		}
	})
	if x.streams != nil {
		t.checkStreams(x, doc)
		return
	}
	t.wordsTold(x, doc)
	t.checkReplanned(x, doc)
	t.checkGuarded(x, doc)
	t.checkAmendedRounds(x, doc)
	t.checkRoundsAgain(x, doc)
	if x.swayed() || x.reused || x.words.cut || x.rounds.refused {
		return
	}
	for step, records := range x.records {
		for _, err := range records {
			if err != nil && err.Code == fault.BudgetExceeded {
				t.w.stats["a planner was not asked for want of budget"]++
			}
			if err != nil && !strings.HasSuffix(step, "/z") && !x.shuts(step) && !x.excusedByReplan(step, err) && err.Code != fault.Rejected {
				return
			}
		}
	}
	if x.amendedAny() && t.w.budget() > 0 { // what is added makes requests longer
		return
	}
	if t.w.guards() && bytes.Contains(doc.Outcome.JSON(), []byte("is too large to be ")) {
		return
	}
	got, _ := doc.Outcome.Results.Get("a")
	if want := fmt.Sprintf(`{"n":%d}`, t.w.seed%97); doc.Status != outcome.Succeeded || string(got) != want {
		t.w.violate("A5", "the agent came to %s, not %s: %s", got, want, doc.Outcome.JSON())
	}
	t.w.stats["an agent compared with its script"]++
	if x.amendedAny() {
		t.w.stats["of them, one whose rounds were amended"]++
	}
	if t.w.budget() > 0 {
		t.w.stats["of them, one with a budget"]++
	}
	if &t.w.script()[0] == &simCalls[0] {
		t.w.stats["of them, one whose calls write to a state"]++
	}
}

// spoilRound does wrong to the record of a round on its way from the ledger.
func (w *world) spoilRound(e kv.Entry) *kv.Entry {
	switch {
	case w.bug == loseRounds && w.chance(5):
		return nil
	case w.bug == otherRounds && w.chance(3):
		e.Data = bytes.Replace(e.Data, []byte(`"settled"`), []byte(`"unsettled"`), 1)
	}
	return &e
}
