package orchestrator

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/internal/lab/unfold"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// truths is what really happened, as an observer of all servers and workers sees it. It is kept apart from what is
// tested, and the invariants are checked on it whenever something is added.
type truths struct {
	w       *world
	cases   map[string]reference.Case    // by digest of the plan
	nested  map[string]*reference.Nested // likewise, of those with plans within them
	parts   map[string]*unfold.Unfolded  // likewise, of those that come in parts
	spoken  map[string]*spoken           // likewise, of those in the state dialect
	swayed  map[string]bool              // plans, by their digest, of a run of which something besides the tools had a say
	agents  map[string]bool              // likewise, of those that call an agent
	writers map[string]bool              // likewise, of those that call one that lets steps begin while its planner writes
	rounds  map[string][]byte            // records of rounds as they were made, by subject
	carried map[string][]byte            // parts that requests had in them, by name
	runs    map[genKey]*truth
	order   []*truth
	history map[subjects.Run]*past
	dead    map[string]bool          // dead letters, by key
	cancels map[subjects.Run]int     // that were told that they count
	lists   map[string]time.Duration // by process and prefix: when it first listed a partition
}

type genKey struct {
	run subjects.Run
	gen uint64
}

// past is what history holds of a run id.
type past struct {
	gen     uint64
	doc     *outcome.Run
	expired bool
	removed bool // to make room for a later outcome
}

// rejected reports whether the id is free all the same.
func (h *past) rejected() bool { return h.doc.Status == outcome.Rejected }

// truth is one accepted plan.
type truth struct {
	id        subjects.Run
	gen       uint64
	submitted time.Time
	body      []byte
	spoken    *spoken                       // nil for a plan with steps
	untold    map[string]bool               // of those: what the run's stop came before
	fitting   map[string]*reference.Decided // what waits to be told, or was, of calls whose results lie in blobs
	digest    string
	plan      *plan.Plan // nil where it isn't valid
	start     *wire.Start
	gone      bool // its plan record was purged
	announced bool // whoever waits was told of its end
	overAt    time.Duration
	stopped   bool
	disturbed bool // something besides the tools had a say
	reused    bool
	agent     bool // it calls an agent
	early     bool // a record was forged before its attempt was out
	hinted    bool // an item's error has a hint, or in nested plans a message, which references see and the reference interpreter doesn't

	answers    map[string]wire.Answer // that counted, by step token
	free       map[string]bool        // calls whose contract's condition asks for no approval
	told       map[string]bool        // steps of whose condition a record says what it came to
	decided    []reference.Decided
	records    map[string]map[int]*fault.Error // by step token and attempt; nil for a success
	succeeded  map[string]bool
	final      map[string]bool // no further attempt can come
	out        map[string]map[int]bool
	effects    map[string]int
	args       map[string][]byte
	readBacks  map[string]time.Duration // by process and subject: when there was no record
	planChecks map[string]time.Duration // by process: when the plan stood
	amendments *simAmendments           // of a plan that comes in parts
	words      *simWords
	allowed    map[string]bool   // by guards that are tools: calls
	about      map[string]string // by calls of such guards: what each is asked about
	times      simTimes
	spent      simSpent
	summaries  simSummaries
	inquiries  *inquiries // of its tools
	rounds     simRounds  // of an agent, that people approve of
	guardsAsk  simAsked
	sunk       simSunk
	document   []byte
	outcome    []byte // that history was given

	amendedRounds *simAmendedRounds // nil for none
	streams       *simStreams       // nil but for a run of an agent whose planner hands over steps
}

func newTruths(w *world) truths {
	return truths{
		w: w, agents: map[string]bool{}, writers: map[string]bool{}, rounds: map[string][]byte{}, carried: map[string][]byte{}, cases: map[string]reference.Case{}, swayed: map[string]bool{}, spoken: map[string]*spoken{}, nested: map[string]*reference.Nested{}, parts: map[string]*unfold.Unfolded{}, runs: map[genKey]*truth{}, history: map[subjects.Run]*past{}, dead: map[string]bool{}, cancels: map[subjects.Run]int{}, lists: map[string]time.Duration{},
	}
}

func (t *truths) of(id subjects.Run, gen uint64) *truth { return t.runs[genKey{id, gen}] }

// written takes note of a message that a ledger shard or a bucket has stored.
func (t *truths) written(s *stream, e *kv.Entry) {
	t.checkI10(e.Subject, e.Data)
	switch {
	case s == t.w.buckets[subjects.BucketStream(subjects.HistoryBucket)]:
		t.historyWritten(e)
	case s == t.w.buckets[subjects.BucketStream(subjects.DeadBucket)]:
		t.dead[e.Subject] = true
	default:
		rec, ok := subjects.ParseRecord(e.Subject)
		switch {
		case e.Header[forgedHeader] != nil:
			t.forged(rec, e)
		case !ok:
			t.w.violate("I8", "a record of no kind: %s", e.Subject)
		default:
			t.recorded(rec, e)
		}
	}
}

func (t *truths) recorded(rec subjects.Record, e *kv.Entry) {
	if rec.Kind == subjects.PlanKind {
		x := &truth{
			id: rec.Run, gen: e.Seq, submitted: e.Time, body: e.Data, digest: plan.Digest(e.Data), records: map[string]map[int]*fault.Error{},
			succeeded: map[string]bool{}, final: map[string]bool{}, out: map[string]map[int]bool{}, effects: map[string]int{},
			told: map[string]bool{}, words: newSimWords(), inquiries: newInquiries(), args: map[string][]byte{}, readBacks: map[string]time.Duration{}, planChecks: map[string]time.Duration{},
		}
		x.plan, _ = plan.ParseLimited(e.Data, nil, plan.Limits{Templates: t.w.simTemplatesOf()})
		if x.agent, x.spoken = t.agents[x.digest], t.spoken[x.digest]; x.spoken != nil {
			t.w.stats["a plan in the state dialect"]++
		}
		if t.writers[x.digest] {
			x.streams = newSimStreams()
		}
		if x.amendments = t.amendmentsFor(x.digest); x.amendments != nil {
			x.plan = x.amendments.wholeOf(t.w.templates.plans)
			t.w.amends(x)
		}
		t.runs[genKey{rec.Run, e.Seq}] = x
		t.order = append(t.order, x)
		return
	}
	x := t.of(rec.Run, rec.Generation)
	switch {
	case x == nil:
		t.w.violate("I8", "a record of a plan that nobody submitted: %s", e.Subject)
	case x.gone && !mayComeLate(rec):
		t.w.violate("I1", "%s was written, though the run was over and its plan purged", e.Subject)
	case x.gone:
		t.w.stats["late record of a purged run"]++
		if rec.Kind == subjects.StepKind { // an owner that was away for longer than runs are kept may go on from it
			x.tooLate(rec.Attempt, wire.ParseResult(e.Header, e.Data).Error)
		}
	case rec.Kind == subjects.StartKind:
		x.started(e)
		x.times.started = e.Time
		t.checkBucket(x, x.start)
		t.checkFree(x)
	case rec.Kind == subjects.StopKind:
		x.stopped = true
		x.stopFitting()
		stop := wire.ParseStop(e.Data)
		t.checkExpired(x, stop, e.Time)
		x.decided = append(x.decided, reference.Decided{Stop: string(stop.Reason)})
		t.w.stats["stop record"]++
	case rec.Kind == subjects.RoundKind:
		t.roundRecorded(x, rec, e)
	case rec.Kind == subjects.SayKind:
		t.sayRecorded(x, rec, e.Data)
	case rec.Kind == subjects.AnswerKind:
		t.answerRecorded(x, rec, e)
	case rec.Kind == subjects.AmendKind:
		t.amendRecorded(x, rec, e)
	case rec.Kind == subjects.ToldKind && rec.What == subjects.ToldApproval:
		t.weighed(x, rec, e)
	case rec.Kind == subjects.ToldKind && rec.What == subjects.ToldState:
		t.fitRecorded(x, rec, e)
	case rec.Kind == subjects.ToldKind && rec.What == subjects.ToldUntil:
		t.untilRecorded(x, rec)
	case rec.Kind == subjects.ToldKind && rec.What == subjects.ToldOutput:
		t.outputRecorded(x, rec, e)
	case rec.Kind == subjects.ToldKind:
		t.toldRecorded(x, rec, e)
	case rec.Kind == subjects.StepKind:
		t.stepRecorded(x, rec.Attempt, e)
		x.streams.stepRecorded(rec.Attempt, e.Seq, x.records[rec.Attempt.Step][rec.Attempt.Number])
	case rec.Kind == subjects.ClaimKind:
		x.streams.claimRecorded(rec.Attempt, e.Data)
	}
}

// tooLate takes note of the record of an attempt of a run that was purged.
func (x *truth) tooLate(a subjects.Attempt, err *fault.Error) {
	if x.records[a.Step] == nil {
		x.records[a.Step] = map[int]*fault.Error{}
	}
	x.records[a.Step][a.Number] = err
}

// mayComeLate reports whether a record may be created though its run was purged: then it is an orphan. Only starts and
// stops are under the fence of their plan; of the others, a request that is tried again may find all gone.
func mayComeLate(rec subjects.Record) bool {
	return rec.Kind == subjects.StepKind || rec.Kind == subjects.AnswerKind || rec.Kind == subjects.ToldKind || rec.Kind == subjects.AmendKind || rec.Kind == subjects.RoundKind || rec.Kind == subjects.SayKind
}

// outputRecorded checks that what the output of a plan came to is told once, of a plan that has one.
func (t *truths) outputRecorded(x *truth, rec subjects.Record, e *kv.Entry) {
	switch {
	case !x.comesTo(rec.Step) && !(x.agent && (x.told["round "+rec.Step] || x.told["round "+roundAround(rec.Step)])) || x.start == nil || x.start.Rejected():
		t.w.violate("I8", "a record of an output that the plan doesn't have, or before it was started: %s", e.Subject)
	case x.told[rec.Step]:
		t.w.violate("I2", "a second record of what the output came to: %s", e.Subject)
	}
	x.told[rec.Step] = true
	t.w.stats["an output told by a record"]++
}

// toldRecorded checks that what a condition came to is told once, of a step that has one, before the step is out.
func (t *truths) toldRecorded(x *truth, rec subjects.Record, e *kv.Entry) {
	var step *plan.Step
	known := false
	if x.plan != nil {
		step, _, known = x.plan.Find(rec.Step)
	}
	isValue, key := rec.What == subjects.ToldValue, rec.Step+" "+rec.What
	_, inRound := agentStep(subjects.Attempt{Step: rec.Step})
	inRound = inRound && x.agent && x.told["round "+subjects.ScopeOf(rec.Step)]
	switch {
	case inRound && !x.told[key]: // what its round has is not known here
	case !known || x.start == nil || x.start.Rejected() || isValue && !step.Value || !isValue && step.If == nil:
		t.w.violate("I8", "a record of a condition or a value that the plan doesn't have, or before it was started: %s", e.Subject)
		return
	case x.told[key]:
		t.w.violate("I2", "a second record of what the %s of %s came to", rec.What, rec.Step)
	case len(x.out[rec.Step]) > 0:
		t.w.violate("I3", "%s was dispatched before it was told what its %s came to", rec.Step, rec.What)
	}
	t.w.stats["told by a record: "+rec.What]++
	x.told[key] = true
	if isValue {
		x.decided = append(x.decided, reference.Decided{Step: rec.Step, Value: t.valueTold(x, e)})
		return
	}
	told := wire.ParseTold(e.Data)
	d := reference.Decided{Step: rec.Step, Told: &reference.Told{Holds: told.Holds}}
	if told.Error != nil {
		d.Told.Err = &reference.Err{Code: string(told.Error.Code), Message: told.Error.Message}
	}
	x.decided = append(x.decided, d)
}

// valueTold returns what a record says of a value.
func (t *truths) valueTold(x *truth, e *kv.Entry) *reference.ToldValue {
	told := wire.ParseToldValue(e.Data, x.id, x.gen, x.start.Bucket, plan.MaxValues)
	v := &reference.ToldValue{JSON: told.Value}
	if told.Handle != nil {
		v.JSON, v.Blob = t.w.blobs[told.Handle.Name], true
	}
	if told.Error != nil {
		v.Err = &reference.Err{Code: string(told.Error.Code), Message: told.Error.Message}
	}
	return v
}

func (x *truth) started(e *kv.Entry) {
	x.start = &wire.Start{}
	if err := json.Unmarshal(e.Data, x.start); err != nil {
		panic(err)
	}
	x.reused = x.start.Reuse != nil
	if x.reused {
		for id := range x.start.Reuse.Steps {
			x.succeeded[id] = true
		}
	}
}

// stepRecorded checks I2 and I8, and takes note of the record that decided an attempt.
func (t *truths) stepRecorded(x *truth, a subjects.Attempt, e *kv.Entry) {
	step, known := x.stepOf(a)
	if !known || x.start == nil || x.start.Rejected() {
		t.w.violate("I8", "a record of a step that the plan doesn't have, or before it was started: %s", e.Subject)
		return
	}
	codes := wire.CodesOf(1, x.start.Needs)
	r := wire.ParseCleanResult(e.Header, e.Data, codes, func() *wire.Redactor { return nil })
	if r.Handle != nil {
		r.Body = t.w.blobs[r.Handle.Name]
	}
	owner := strings.HasPrefix(r.Worker, ownerMark)
	contract := x.contract(step)
	switch {
	case r.Asks != nil:
		r.Error = t.inquiry(x, a, &contract)
	case r.Error == nil:
		if _, err := plan.Output(r.Body, r.Text); err != nil {
			r.Error = err
		}
	}
	bad := x.misfits(a.Step, &r)
	if bad != nil {
		r.Error = bad
		t.w.stats["a result that does not fit the state"]++
	}
	t.checkI2(x, a, r.Error, step)
	if owner {
		t.tookTooLong(x, a.Step, &r, e.Time)
	}
	if owner && r.Error != nil && r.Error.Code == fault.OutcomeUnknown {
		t.checkPatience(x, a, step, e.Time)
	}
	if x.records[a.Step] == nil {
		x.records[a.Step] = map[int]*fault.Error{}
	}
	x.records[a.Step][a.Number] = r.Error
	if r.Error != nil && r.Error.Code == fault.Rejected {
		t.w.stats["a guard said no to a call"]++
	}
	switch {
	case r.Error == inquired:
	case r.Error == nil:
		x.succeeded[a.Step], x.final[a.Step] = true, true
		x.returned(a, &r)
		if x.agent {
			t.tokensRecorded(x, a)
		}
		if x.agent && a.Tool == simDigest {
			t.summaryRecorded(x, a, owner, r.Body)
		}
	case !r.Error.Retryable || !r.Error.Code.Retryable() || a.Number >= x.most(a.Step, step):
		x.final[a.Step] = true
	}
	if x.final[a.Step] {
		noteTime(&x.times.over, a.Step, e.Time)
	}
	if owner && r.Error != nil && (r.Error.Code == fault.Timeout || r.Error.Code == fault.Cancelled || r.Error.Code == fault.OutcomeUnknown) {
		x.disturbed = true
	}
	d := reference.Decided{Step: a.Step, ByOwner: owner, Reply: reference.Reply{Body: r.Body, Text: r.Text, Asks: r.Asks != nil}, Blob: r.Handle != nil}
	if w := wire.ParseResult(e.Header, e.Data); w.Error != nil {
		d.Reply.Err = &reference.Err{Code: string(w.Error.Code), Message: w.Error.Message, Retryable: w.Error.Retryable && !x.contract(step).AtMostOnce}
	}
	if bad != nil {
		d.Reply.Err = &reference.Err{Code: string(bad.Code), Message: bad.Message}
	}
	if _, isItem, _ := x.plan.Find(a.Step); isItem && r.Error != nil && (r.Error.Hint != "" || owner && t.nested[x.digest] != nil) {
		x.hinted = true
	}
	if w := wire.ParseResult(e.Header, e.Data); w.Error == nil && (r.Error == nil || bad != nil) && x.holdBack(a.Step, &r, d) {
		return
	}
	x.decided = append(x.decided, d)
}

func (x *truth) stepOf(a subjects.Attempt) (*plan.Step, bool) {
	if x.plan == nil {
		return nil, false
	}
	if x.agent {
		return agentStep(a)
	}
	s, _, ok := x.plan.Find(a.Step)
	return s, ok && toolOf(s) == a.Tool
}

func (x *truth) contract(step *plan.Step) tool.Contract {
	if step.Value || step.Ask || step.Plan != nil || step.Tool == subjects.CompositeTool {
		return tool.Contract{MaxAttempts: 1, ErrorPropagation: tool.FailFast}
	}
	if x.amendments != nil && x.start.Tools[step.Tool] == nil {
		return tool.Contract{} // nothing that calls it was added yet
	}
	return x.start.Tools[step.Tool].Contract
}

// historyWritten takes note of the outcome that counts.
func (t *truths) historyWritten(e *kv.Entry) {
	var doc outcome.Run
	if err := json.Unmarshal(e.Data, &doc); err != nil {
		panic(err)
	}
	id := subjects.NewRun(doc.Tenant, doc.Run)
	x := t.of(id, doc.Generation)
	if x == nil {
		t.w.violate("I8", "history holds a run that nobody submitted: %s", e.Data)
		return
	}
	t.checkI1(x, &doc)
	t.checkDead(x, &doc)
	t.checkSunk(x, &doc)
	t.history[id] = &past{gen: doc.Generation, doc: &doc}
	x.overAt = t.w.now
	if x.outcome = doc.Outcome.JSON(); doc.Stats.BytesReturned > wire.InlineLimit || len(x.outcome) > wire.InlineLimit {
		x.outcome = doc.HeadWithOutcome() // what is too large for an event is not in it
	}
	t.w.stats["run "+string(doc.Status)]++
}

// offered is a document that an owner wants to write. Whoever finishes a run comes to the same.
func (t *truths) offered(id subjects.Run, doc *outcome.Run, body []byte, by *process) {
	x := t.of(id, doc.Generation)
	switch {
	case x == nil:
		t.w.violate("I8", "%s finished a run that nobody submitted: %s", by.name, body)
	case x.gone:
		t.w.stats["finished again after it was purged"]++
	case x.document == nil:
		x.document = body
		t.checkDocument(x, doc)
		t.checkCancels(x.id)
	case !bytes.Equal(x.document, body):
		t.w.violate("I1", "two owners came to different ends:\n%s\n%s", x.document, body)
	default:
		t.w.stats["finished by two owners"]++
	}
}

// published is an event.
func (t *truths) published(subject string, body []byte) {
	t.checkI10(subject, body)
	if id, kind, ok := subjects.ParseEvent(subject); ok && kind == subjects.EventEnd {
		var o outcome.Outcome
		_ = o.UnmarshalJSON(body)
		x := t.of(id, o.Generation)
		if x == nil || !bytes.Equal(x.outcome, body) {
			t.w.violate("I1", "the end of %s was announced as %s, which is not what history was given", id.ID, body)
			return
		}
		x.announced = true
		if h := t.history[id]; h.gen > x.gen || h.removed {
			t.w.stats["announced again after a later plan came"]++
		}
	}
}

func (t *truths) answered(m *nats.Msg) {
	t.checkI10(m.Subject, m.Data)
	if t.streamAnswered(m) {
		return
	}
	if t.roundAmendAnswered(m) {
		return
	}
	t.amendAnswered(m)
	t.innerTold(m)
	if t.sayAnswered(m) {
		return
	}
	if t.cancelAnswered(m) {
		return
	}
	if r := wire.ParseResult(m.Header, m.Data); r.Error == nil {
		t.w.stats["answer to a request"]++
	}
}

// readBack takes note of what an owner has looked at before it repairs something.
func (t *truths) readBack(p *process, subject string, found bool) {
	rec, ok := subjects.ParseRecord(subject)
	if !ok {
		return
	}
	if rec.Kind == subjects.PlanKind {
		for _, x := range t.order {
			if x.id == rec.Run && !x.gone {
				x.planChecks[p.name] = t.w.now
			}
		}
		return
	}
	if x := t.of(rec.Run, rec.Generation); x != nil && rec.Kind == subjects.StepKind && !found {
		x.readBacks[p.name+subject] = t.w.now
	}
}

// listed is readBack for all records that begin with a prefix; of plans, those that are there.
func (t *truths) listed(p *process, prefix string, there map[string]uint64) {
	if _, before := t.lists[p.name+prefix]; !before {
		t.lists[p.name+prefix] = t.w.now
	}
	for _, x := range t.order {
		if plan := subjects.PlanRecord(x.id, len(t.w.shards)); there[plan] > 0 {
			t.readBack(p, plan, true)
		}
	}
}

// purged takes note of a message that was removed.
func (t *truths) purged(_ *stream, e *kv.Entry) {
	t.w.log("purged %s", e.Subject)
	rec, ok := subjects.ParseRecord(e.Subject)
	if !ok {
		t.historyPurged(e)
		return
	}
	if rec.Kind == subjects.PlanKind {
		x := t.of(rec.Run, e.Seq)
		x.gone = true
		t.checkKept(x)
		t.checkGrace(x)
		return
	}
	if e.Seq < rec.Generation {
		return // forged before there was such a plan
	}
	if x := t.of(rec.Run, rec.Generation); x != nil && !x.gone {
		t.w.violate("I2", "%s was purged, though its plan stands", e.Subject)
	}
}

// disturb notes that more than the tools had a say in a run.
func (t *truths) disturb(a subjects.Attempt) {
	if x := t.of(a.Run, a.Generation); x != nil {
		x.disturbed = true
	}
}

// call plays the tool.
func (t *truths) call(a subjects.Attempt, args []byte) reference.Reply {
	x := t.of(a.Run, a.Generation)
	if x == nil {
		return reference.Reply{}
	}
	if x.agent {
		return t.w.plays(a, args)
	}
	if nested := t.nested[x.digest]; nested != nil {
		return nested.Call(a.Step, a.Tool, bytes.Clone(args), a.Number)
	}
	return t.cases[x.digest].Call(a.Step, a.Tool, bytes.Clone(args), a.Number)
}

// acked is a message that its worker gives back.
func (t *truths) acked(m *message) {
	a := m.attempt
	x := t.of(a.Run, a.Generation)
	if x == nil || x.gone || x.early {
		return
	}
	_, decided := x.records[a.Step][a.Number]
	claim := t.w.streamOf(subjects.ClaimRecord(a, len(t.w.shards))).bySubj[subjects.ClaimRecord(a, len(t.w.shards))]
	if decided {
		return
	}
	if claim != nil {
		if wire.ParseClaim(claim.Data).Seq != m.seq {
			return // claimed for another message: this one is dropped
		}
	}
	t.w.violate("I2", "the step %s was acknowledged before it was recorded", a.MessageID())
}

// effect is a tool at work.
func (t *truths) effect(m *message, step *wire.Step, args []byte, h *hand) {
	t.w.stats["effect"]++
	t.w.log("%s EXECUTES %s", h.name, m.attempt.MessageID())
	t.checkI7(m.attempt, step, args)
	for _, secret := range []string{simSecret} {
		if v, ok := step.Context.Get("token"); ok && v != secret {
			t.w.violate("I10", "another secret: %s", v)
		}
	}
}
