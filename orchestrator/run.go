package orchestrator

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/few"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/orchestrator/again"
	"github.com/stepjet/stepjet/orchestrator/agents"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// phase is where an owned run stands in this process. It is memory, never truth: another owner starts again at
// replaying.
type phase uint8

const (
	replaying phase = iota // its records are being read; what comes is kept
	opening                // a job reads history, validates, or fetches what the start needs; what comes is kept
	awaiting               // opened, but its start record hasn't come back from the ledger yet
	running                // the machine has it
	finishing              // every step is terminal; a job writes the history document
	finished               // the history document stands; the records stay for the grace
	foreign                // a newer Stepjet wrote of it: left alone
	forgotten              // no longer ours; jobs that come back find this
)

// run is one generation of a run that this orchestrator owns.
type run struct {
	identity
	progress
	traffic

	phase     phase
	audience  audience // of its events
	live      bool     // its plan came while this process followed the ledger, not with what lay there
	opener    *cursor  // whose replay found it, while it is being opened
	recovered bool     // begun by an earlier owner, or by this one before it read the ledger again
	replayed  uint64   // sequence of the last record that lay there when this owner came
	// uncompared is that others may have sent steps of it, which were not compared with what is out yet.
	uncompared bool
	// rejected is that the plan was, judged when: the ledger's time.
	rejected bool
	judged   time.Time
	doneAt   time.Time // when it was finished, for the grace
	over     bool      // past its grace: its records may go

	time    kv.ServerTime
	lastSeq uint64        // of its last record
	touched time.Time     // when the last record came, for the sweep
	timer   int           // position in the heap of timers, -1 for none
	wake    time.Duration // by the monotonic clock
}

// identity is what came with a run's plan.
type identity struct {
	id         subjects.Run
	generation uint64
	submitted  time.Time
	body       []byte // the plan's bytes; nil once finished
	digest     string // SHA-256 of the plan's bytes, in hex
	client     string // token to notify; "" for none
	trace      wire.Trace
	context    wire.RunContext // out-of-band, for the tools alone
	unfit      error           // what is wrong with the context that came with the plan
	retryOf    wire.Retry

	permissions []string // what the run may use; nil for everything
}

// progress is a run's machine, and what is read for it.
type progress struct {
	plan    *plan.Plan // from the job that opened it; nil where it was rejected
	start   *wire.Start
	version uint64 // of the start
	machine *machine.Run
	schemas schemas
	// resolver remembers its way around large results; for the loop only.
	resolver *plan.Resolver
	// resolvers likewise, for the scopes below, by the number of their first step.
	resolvers few.Map[int, scopeResolver]
	clean     cleaner

	// Of for_each steps: their lists, and those that are being read.
	lists   map[int][][]byte
	reading map[int]bool
	// entering are the composites whose input is being read.
	entering map[machine.Call]bool
	// evaluating are the conditions and values that are being evaluated.
	evaluating map[asked]bool
	weighing   map[weighedCall]bool  // whether they need an approval is being found out
	people     *askedPeople          // of a run that asks people
	shaping    map[machine.Call]bool // the composites, or the run itself, whose output is being made
	same       map[int]bool          // whose list is the one that the run which this one tries again had

	changes *changes // of a run that is amended
	agents  *agentsOf

	derivable map[machine.Call]*derivedAgain // what was let go of and is derived again, as far as somebody asked
	busy      bool                           // a job fetches what the next record needs
	recalling bool                           // a job reads what the machine has let go of and needs again
	unheard   []machine.Record               // were taken while the machine needs that, and nobody has heard of them yet
	parked    []entry                        // records that wait for a phase or a blob, in ledger order
}

// agentsOf is what an owner has of the agents of a run.
type agentsOf struct {
	agentSet
	records   few.Map[string, *wire.Round] // of rounds, by token
	amended   few.Map[amendedRound, *wire.AmendedRound]
	arguments few.Map[machine.Call, []byte]     // of calls in rounds, once the gate was asked
	asking    few.Map[machine.Dispatch, bool]   // the gate, or making the request of a planner
	deciding  few.Map[string, bool]             // rounds, by the tokens of their scopes
	contracts map[string]*tool.Contract         // of the tools that the run froze
	past      few.Map[string, *agents.Past]     // what is left of rounds whose parts are stored, by the agents' tokens
	shelves   few.Map[string, *agents.Shelf]    // of long answers, likewise
	gates     few.Map[string, *agents.Gates]    // of rounds of many calls, likewise
	whole     few.Map[string, bool]             // whose requests go out whole, since something else lies where a part belongs
	said      few.Map[attemptOf, said]          // of results, beside their values
	shares    few.Map[shareOf, agent.Budget]    // of the budgets of agents above
	sharing   few.Map[shareOf, []func()]        // wait until a share is known, which somebody finds out
	spent     few.Map[string, agent.Spending]   // by agents that are over, by token
	added     few.Map[string, []agent.Artifact] // what these have put on their blackboards, where somebody has found out
	speakers  few.Map[wordOf, []func()]         // are told once a word of theirs was read
	sending   few.Map[string, bool]             // agents whose objects are being sent; true: there are more
	sent      *doneBefore[string]               // to sinks; nil for none
}

// agentSet is what runs keep of the agents that they froze: the same for all that froze the same. It is never changed.
type agentSet struct {
	defined   map[string]*agent.Definition // by name
	templates map[string]*plan.Template    // the agents' too
	digests   map[string]string            // of agents, by name: see agents.Digest
	schemas   schemas                      // of all tools
}

// tries is the run as one that tries another again.
func tries(r *run) again.Run { return again.Run{Machine: r.machine, Reuse: r.start.Reuse} }

// shareOf names what each agent may use up of the budget of the one above that one record made ready. It never changes.
type shareOf struct {
	of    machine.Call // the agent above
	begun uint64       // the record
}

// amendedRound names an amendment of a round.
type amendedRound struct {
	scope    string
	revision int
}

// wordOf is a word to an agent: its token, and the word's id.
type wordOf struct{ agent, id string }

// shelfOf returns the shelf of an agent, which may be new.
func (a *agentsOf) shelfOf(agent string) *agents.Shelf {
	shelf := a.shelves.At(agent)
	if shelf == nil {
		shelf = &agents.Shelf{}
		a.shelves.Put(agent, shelf)
	}
	return shelf
}

// heardOut tells those who wait for the record of a word.
func (a *agentsOf) heardOut(w wordOf) {
	if a == nil {
		return
	}
	waiting := a.speakers.At(w)
	a.speakers.Drop(w)
	for _, tell := range waiting {
		tell()
	}
}

// attemptOf is an attempt of a run.
type attemptOf struct {
	step   string // the token
	number int
}

// said is what a worker says of a result for agents: what kind of object it is, and what a planner is shown in its place.
type said struct{ kind, planner string }

// heard keeps what a record says of its result for agents; nearly all say nothing.
func (a *agentsOf) heard(of subjects.Attempt, w *wire.Result) {
	if a != nil && w.Error == nil && (w.Type != "" || w.Planner != "") {
		a.said.Put(attemptOf{of.Step, of.Number}, said{w.Type, w.Planner})
	}
}

// frozen returns the contracts of the tools that the run froze when it began.
func (a *agentsOf) frozen(r *run) map[string]*tool.Contract {
	if a.contracts == nil {
		a.contracts = contracts(r.start)
	}
	return a.contracts
}

// made returns the arguments of a call in a round; nil where they are not made yet, and for all other calls.
func (a *agentsOf) made(c machine.Call) []byte {
	if a == nil {
		return nil
	}
	return a.arguments.At(c)
}

// over lets go of the arguments of a call that was decided.
func (a *agentsOf) over(c machine.Call) {
	if a != nil {
		a.arguments.Drop(c)
	}
}

// traffic is what a run has out, and what it holds back.
type traffic struct {
	flights     few.Map[machine.Call, *flight] // what is out
	lanes       few.Map[string, *lane]         // by tool: what waits for room
	burden      *burden                        // the bytes that are out
	repairs     int                            // how often the sweep sent something of it again
	deadLetters *doneBefore[machine.Call]      // that stand
}

// bucket returns where large values of the run go, once it has a start.
func (r *run) bucket() string {
	if r.start == nil {
		return ""
	}
	return r.start.Bucket
}

// runTable holds the runs of a loop.
type runTable struct {
	byID   map[subjects.Run]*run
	oldest [subjects.Partitions]oldest // that must stay in the ledger
	going  [subjects.Partitions]oldest // that are not over
}

func newRunTable() *runTable { return &runTable{byID: map[subjects.Run]*run{}} }

// leave lets go of the order of a partition's runs.
func (t *runTable) leave(partition int) { t.oldest[partition], t.going[partition] = oldest{}, oldest{} }

// active counts runs that are not over.
func (t *runTable) active() (n int) {
	for _, r := range t.byID {
		if r.phase < finished {
			n++
		}
	}
	return n
}

// add takes a new run, in the order of the ledger.
func (t *runTable) add(r *run) {
	t.byID[r.id] = r
	p := r.id.Partition()
	t.oldest[p].add(r)
	t.going[p].add(r)
}

// remove lets go of a run, unless another generation has taken its place.
func (t *runTable) remove(r *run) {
	if t.byID[r.id] == r {
		delete(t.byID, r.id)
	}
}

type entry struct {
	rec subjects.Record
	kv.Entry
}

// weighedCall is a call of which is found out for the n-th time whether a person is asked about it.
type weighedCall struct {
	machine.Call
	number int
}

// drop lets go of what only a run that goes on needs.
func (r *run) drop() {
	r.body, r.plan, r.machine, r.parked, r.start, r.schemas, r.resolver = nil, nil, nil, nil, nil, nil, nil
	r.resolvers = few.Map[int, scopeResolver]{}
	r.lists, r.reading, r.context, r.clean, r.deadLetters = nil, nil, wire.RunContext{}, cleaner{}, nil
	r.people, r.weighing, r.changes, r.agents = nil, nil, nil, nil
}

// awaitingInput reports whether something is being read that the next record has to wait for: the value of the one
// before it, or how long a list is. Applied without that, a record would be taken for early, and what follows from
// those after it would be done as if it were not there.
func (r *run) awaitingInput() bool {
	return r.busy || r.recalling || len(r.reading)+len(r.entering) > 0
}

// has reports whether a plan has a call that such an attempt may be of, now or later. As long as a record waits, it may be
// an amendment that adds it.
func (r *run) has(a subjects.Attempt) bool {
	if r.plan.Language > 1 && (r.machine == nil || r.awaitingInput() || len(r.parked) > 0) {
		return true
	}
	_, _, ok := r.call(a)
	return ok
}

// toolOf returns the tool in the subjects of a step. A step that asks a person is no worker's, nor is a composite, so none
// may write their records.
func toolOf(s *plan.Step) string {
	if s.Plan != nil || s.Ask || s.Own {
		return subjects.CompositeTool
	}
	return s.Tool
}

// call returns what an attempt is of, and whether this plan has such a call. One in a scope below the root, which may not
// be entered yet, is named by its token.
func (r *run) call(a subjects.Attempt) (c machine.Call, token string, ok bool) {
	if strings.IndexByte(a.Step, '/') < 0 {
		c, ok = r.rootCall(a)
		return c, "", ok
	}
	s, _, ok := planStep(r, a.Step)
	if !ok || toolOf(s) != a.Tool || r.start != nil && a.Number > r.mostAttempts(s) {
		return machine.Call{}, "", false
	}
	return machine.Call{Step: machine.NotYet}, a.Step, true
}

// mostAttempts returns how many attempts a step may have.
func (r *run) mostAttempts(s *plan.Step) int {
	t := r.start.Tools[s.Tool]
	if t == nil {
		return 1
	}
	n, _ := t.Contract.Policy(s.Retry)
	return machine.MostAttempts(&t.Contract, n)
}

// rootCall is call for a step of the plan that was submitted.
func (r *run) rootCall(a subjects.Attempt) (machine.Call, bool) {
	c, s, ok := rootStep(r, a.Step)
	if !ok || toolOf(s) != a.Tool || r.machine != nil && a.Number > r.machine.MostAttempts(c.Step) {
		return machine.Call{}, false
	}
	return c, true
}

// rootStep returns the call that a step of the plan as it is now, or an item of one, may be.
func rootStep(r *run, name string) (c machine.Call, s *plan.Step, ok bool) {
	p := r.plan
	if r.machine != nil {
		p = r.machine.Plan()
	}
	id, item, isItem := subjects.SplitItem(name)
	i, ok := p.Index(id)
	if !ok || isItem && (p.Steps[i].ForEach == nil || item >= plan.MaxItems) {
		return machine.Call{}, nil, false
	}
	c = machine.Call{Step: i}
	if p != r.plan { // it was amended
		_, of := r.machine.Scope(0)
		c.Step = of.Of(i)
	}
	if isItem {
		c.Item = item + 1
	}
	return c, &p.Steps[i], true
}

// planStep returns the step that a token may be of, now or later, and whether it is an item's.
func planStep(r *run, token string) (s *plan.Step, isItem, ok bool) {
	if r.machine == nil {
		return r.plan.Find(token)
	}
	return machine.Named(r.machine, token)
}

// oldestFirst returns the runs that fit, in the order in which they were submitted.
func (t *runTable) oldestFirst(fits func(*run) bool) []*run {
	var list []*run
	for _, r := range t.byID {
		if fits(r) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, older)
	return list
}

// older puts runs into the order in which they were submitted, as far as there is one.
func older(a, b *run) int {
	return cmp.Or(cmp.Compare(a.generation, b.generation), cmp.Compare(a.id.ID, b.id.ID))
}

// step returns the step of a plan that calls with such a number are of.
func (r *run) step(number int) *plan.Step { return r.machine.PlanStep(number) }

// token names a call in subjects and documents.
func (r *run) token(c machine.Call) string {
	if c.Step == machine.ThePlan {
		return subjects.RootScope
	}
	return r.machine.Token(c)
}

func (r *run) attempt(c machine.Call, number int) subjects.Attempt {
	return subjects.Attempt{
		Run: r.id, Generation: r.generation, Tool: toolOf(r.step(c.Step)), Step: r.token(c), Number: number,
	}
}

// callOf returns the call that a token names, ThePlan for that of the root, and whether this plan may have it. One in a
// scope below the root, which may not be entered yet, goes by its token.
func (r *run) callOf(name string) (c machine.Call, token string, ok bool) {
	switch {
	case name == subjects.RootScope:
		return machine.Call{Step: machine.ThePlan}, "", true
	case strings.IndexByte(name, '/') >= 0:
		_, _, ok = planStep(r, name)
		return machine.Call{Step: machine.NotYet}, name, ok
	}
	c, _, ok = rootStep(r, name)
	return c, "", ok
}

// shard returns that of a step's tool; a composite has none.
func (r *run) shard(step int) int {
	if t := r.start.Tools[r.step(step).Tool]; t != nil {
		return t.Shard
	}
	return 0
}

func (r *run) ackWait(step int) time.Duration {
	t := r.start.Tools[r.step(step).Tool]
	if t == nil { // a call that no tool answers
		return 0
	}
	return time.Duration(t.AckWait) * time.Millisecond
}

// holds reports whether an attempt is held back by this owner, so that nothing of it is to be found anywhere.
func (r *run) holds(d machine.Dispatch) bool {
	return r.heldOf(d.Step) > 0 && d.Attempt == 1 && d.At.IsZero() && r.flights.At(d.Call) == nil
}

// heldOf tells how many calls of a run wait for room at a step's tool.
func (r *run) heldOf(step int) int {
	if x := r.lanes.At(r.step(step).Tool); x != nil {
		return x.calls.len()
	}
	return 0
}

// contextOf returns the out-of-band context that the tool of a step gets: for all of that step, which is why it is All.
func (r *run) contextOf(step int) wire.RunContext {
	return wire.RunContext{All: r.context.Of(r.path(step)).Only(r.machine.Contract(step).Context.Passes)}
}

// path names a step by the ids of the composites that it stands in and its own, whatever items and iterations those are of.
func (r *run) path(step int) string {
	path := ""
	for step != machine.ThePlan {
		if id := r.step(step).ID; id != plan.IterationStep && path != "" {
			path = id + "/" + path
		} else if id != plan.IterationStep {
			path = id
		}
		step = r.machine.Composite(step).Step
	}
	return path
}

// oldest is the runs of a partition in the order of their plans, so that the first that doesn't count as gone is at hand
// however many there are. That is the order in which they come, for it is the ledger's, and before it is read again drop
// forgets them.
type oldest struct {
	runs []*run // also some that are gone
	kept int    // how many they were when those were last taken out
}

func (o *oldest) add(r *run) { o.runs = append(o.runs, r) }

// first returns the sequence of the first plan whose run is not gone, if there is one. What is gone once is so for good.
func (o *oldest) first(gone func(*run) bool) (seq uint64, ok bool) {
	if len(o.runs) > 2*o.kept { // there may be many behind one that goes on
		o.runs = slices.DeleteFunc(o.runs, gone)
		o.kept = len(o.runs)
	}
	for len(o.runs) > 0 && gone(o.runs[0]) {
		o.runs[0] = nil
		o.runs = o.runs[1:]
	}
	if len(o.runs) == 0 {
		return 0, false
	}
	return o.runs[0].generation, true
}

// mayGo reports whether the records of a run may go.
func mayGo(r *run) bool { return r.over || r.phase == forgotten }

// isOver returns what reports whether nothing is left to be done for a run at some time but to purge it: its document
// stands, and whoever waits was told. One whose id may count as new for longer than it takes whoever comes next to purge
// anything is not over.
func isOver(now time.Time) func(*run) bool {
	return func(r *run) bool {
		return r.phase == forgotten || r.phase == finished && now.Sub(r.doneAt) >= r.stays()-3*freshFor
	}
}

// A plan whose id was used before, and whose first run is purged, is answered from the history. To find that out costs
// a request for each plan, and nearly always the answer is no. An id that tells when it was made spares it: while it is
// younger than freshFor nothing of it can have been purged, because a run of such an id stays in the ledger until the
// id is older than three times that, by the same clock (the ledger's). So a second plan of the id is refused by the
// ledger while the first is there, and looked up afterwards. The margin is for servers whose clocks differ.
//
// Plans that lay in the ledger already when this process began to follow it are always looked up: they say nothing of
// the time since.
const freshFor = time.Second

// isNew reports whether no run of its id can have been purged before this one's plan was stored.
func (r *run) isNew() bool {
	made, dated := subjects.MadeAt(r.id.ID)
	return r.live && dated && r.submitted.Sub(made).Abs() < freshFor
}

// maxAhead bounds how long an id from the future keeps its run: the clock of whoever made it may be wrong by years. If
// such a plan comes once more in the very seconds that its id names, its steps are executed again; its outcome stays.
const maxAhead = 24 * time.Hour

// stays is how long after its end a run's records must stay for isNew's sake.
func (r *run) stays() time.Duration {
	made, dated := subjects.MadeAt(r.id.ID)
	if !dated {
		return 0
	}
	return min(made.Add(3*freshFor).Sub(r.submitted), maxAhead)
}

// died returns why a call that was executed failed for good, and after how many attempts; nil where it did not, or was
// never executed.
func died(r *run, c machine.Call) (why *fault.Error, attempts int) {
	if _, isList := r.machine.Items(c.Step); isList && c.Item == 0 || r.step(c.Step).Plan != nil {
		return nil, 0 // what it is made of did
	}
	why, attempts = r.machine.Failure(c)
	if why == nil {
		return nil, 0
	}
	if a, _ := r.machine.Answered(c); a != nil && !r.machine.Approved(c) || r.machine.Refused(c) {
		return nil, 0 // a person decided it, or nobody did
	}
	switch why.Code {
	case fault.Timeout, fault.WorkerLost, fault.OutcomeUnknown:
	default:
		if attempts == 0 {
			return nil, 0 // no worker ever had it
		}
	}
	return why, attempts
}

// contracts returns those that a run started with, by tool.
func contracts(s *wire.Start) map[string]*tool.Contract {
	c := make(map[string]*tool.Contract, len(s.Tools))
	for name, t := range s.Tools {
		c[name] = &t.Contract
	}
	return c
}
