package orchestrator

import (
	"time"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// phase is where an owned run stands in this process. It is memory, never truth: another owner starts again at replaying.
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
	id         subjects.Run
	generation uint64
	phase      phase
	submitted  time.Time
	body       []byte // the plan's bytes; nil once finished
	digest     string // SHA-256 of the plan's bytes, in hex
	client     string // token to notify; "" for none
	trace      wire.Trace

	plan    *plan.Plan // from the job that opened it; nil where it was rejected
	start   *wire.Start
	version uint64 // of the start
	machine *machine.Run
	schemas schemas
	// resolver remembers its way around large results; for the loop only.
	resolver *plan.Resolver
	context  wire.RunContext // out-of-band, for the tools alone
	clean    cleaner
	unfit    error // what is wrong with the context that came with the plan
	retryOf  wire.Retry

	// Of for_each steps: their lists, what references to them see, and those that are being read.
	lists   map[int][][]byte
	entries map[int][]byte
	reading map[int]bool
	same    map[int]bool // whose list is the one that the run which this one tries again had

	flights     map[machine.Call]*flight // what is out
	lines       map[string]*line         // by tool: what waits for room
	burden      *burden                  // the bytes that are out
	deadLetters *lettersWritten          // that stand

	audience audience // of its events

	live      bool    // its plan came while this process followed the ledger, not with what lay there
	opener    *cursor // whose replay found it, while it is being opened
	recovered bool    // begun by an earlier owner, or by this one before it read the ledger again
	busy      bool    // a job fetches a blob that the next record needs
	parked    []entry // records that wait for a phase or a blob, in ledger order

	time    kv.ServerTime
	lastSeq uint64    // of its last record
	touched time.Time // when the last record came, for the sweep
	// rejected is that the plan was, judged when: the ledger's time.
	rejected bool
	judged   time.Time
	doneAt   time.Time // when it was finished, for the grace
	over     bool      // past its grace: its records may go
	repairs  int       // how often the sweep sent something of it again

	timer int           // position in the heap of timers, -1 for none
	wake  time.Duration // by the monotonic clock
}

// bucket gives where large values of the run go, once it has a start.
func (r *run) bucket() string {
	if r.start == nil {
		return ""
	}
	return r.start.Bucket
}

// runTable holds the runs of a loop.
type runTable struct {
	byID   map[subjects.Run]*run
	oldest [subjects.Partitions]oldest
}

func newRunTable() *runTable { return &runTable{byID: map[subjects.Run]*run{}} }

// add takes a new run, in the order of the ledger.
func (t *runTable) add(r *run) {
	t.byID[r.id] = r
	t.oldest[r.id.Partition()].add(r)
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

// lifecycle takes runs from their plan to their outcome: it opens, begins, finishes and forgets them.
type lifecycle struct {
	*env
	runs        *runTable
	times       *ledgerTime
	memory      *memory
	judge       *judge
	driver      *driver
	dispatcher  *dispatcher
	documents   *documents
	deadLetters *deadLetters
	announcer   *announcer
	reaper      *reaper

	saidLost time.Time // when the log was last told that the registry lost its tools
}

// submitted takes a plan record: a new run, or one that is known.
func (lc *lifecycle) submitted(id subjects.Run, e kv.Entry, from *cursor) {
	if old := lc.runs.byID[id]; old != nil {
		if old.generation >= e.Seq {
			return
		}
		lc.forget(old)                       // purged, and submitted again
		lc.reaper.orphan(id, old.generation) // of which a purge by sequence may have left some
	}
	asked, unfit := wire.ParsePlan(e.Header)
	r := &run{
		id: id, generation: e.Seq, lastSeq: e.Seq, submitted: e.Time, touched: lc.clock.Now(), body: e.Data, digest: plan.Digest(e.Data),
		client: asked.Client, trace: asked.Trace, retryOf: asked.Retry, context: asked.Context, unfit: unfit, timer: -1,
	}
	lc.runs.add(r)
	if _, malformed := wire.Version(e.Header); malformed == nil && !wire.KnownPlan(e.Header) {
		lc.leaveAlone(r)
		return
	}
	if from.caughtUp {
		r.live = true
		lc.times.heard(r, from.shard, e.Time)
		lc.open(r)
	}
}

// leaveAlone keeps hands off a run that a newer Stepjet wrote of. An instance that knows its version goes on with it.
func (lc *lifecycle) leaveAlone(r *run) {
	r.phase = foreign
	r.parked, r.body = nil, nil
	lc.driver.timers.set(r, time.Time{})
	lc.log.Warn("a run was written by a newer version and is left alone", "tenant", r.id.Tenant, "run", r.id.Plain())
}

// forget drops a run from memory.
func (lc *lifecycle) forget(r *run) {
	r.phase = forgotten
	lc.leftOpening(r)
	lc.dispatcher.releaseAll(r)
	lc.driver.timers.set(r, time.Time{})
	lc.runs.remove(r)
	lc.announcer.forget(r)
	r.drop()
}

// drop lets go of what only a run that goes on needs.
func (r *run) drop() {
	r.body, r.plan, r.machine, r.parked, r.start, r.schemas, r.resolver = nil, nil, nil, nil, nil, nil, nil
	r.lists, r.entries, r.reading, r.context, r.clean, r.deadLetters = nil, nil, nil, wire.RunContext{}, cleaner{}, nil
}

// take takes one record of this generation. Only who is an orchestrator may write beside "step.": what a newer one has written
// there makes this one leave the run alone. Below "step." whoever hosts a tool may write, so nothing there does.
func (lc *lifecycle) take(r *run, rec subjects.Record, e kv.Entry) {
	r.lastSeq = max(r.lastSeq, e.Seq)
	switch rec.Kind {
	case subjects.ClaimKind, subjects.StrayRecord:
		return // claims are for workers and the sweep; they decide nothing
	case subjects.StepKind:
		if r.plan != nil && !r.has(rec.Attempt) {
			return
		}
	default:
		known := wire.Known(e.Header) || rec.Kind == subjects.StartKind && wire.KnownStart(e.Header)
		if rec.Kind == subjects.UnknownRecord || !known {
			if r.phase != finishing && r.phase != finished {
				lc.leaveAlone(r)
			}
			return
		}
	}
	r.touched = lc.clock.Now()
	switch r.phase {
	case replaying, opening:
		r.parked = append(r.parked, entry{rec, e})
	case awaiting:
		r.parked = append(r.parked, entry{rec, e})
		if rec.Kind == subjects.StartKind {
			lc.begin(r)
		}
	case running:
		lc.driver.take(r, entry{rec, e})
	}
}

// blind reports whether something is being read that the next record has to wait for: the value of the one before it, or
// how long a list is. Applied without that, a record would be taken for early, and what follows from those after it would
// be done as if it were not there.
func (r *run) blind() bool { return r.busy || len(r.reading) > 0 }

// unpark applies what was parked until a blob has to be fetched or nothing is left. Effects gather.
func (dr *driver) unpark(r *run, now time.Time) {
	for len(r.parked) > 0 && !r.blind() {
		next := r.parked[0]
		r.parked = r.parked[1:]
		dr.apply(r, next, now)
	}
	if len(r.parked) == 0 {
		r.parked = nil
	}
}

// apply gives one record to the machine; false means that a blob is fetched first and the record parked before all
// others.
func (dr *driver) apply(r *run, e entry, now time.Time) bool {
	rec := machine.Record{Seq: e.Seq, Time: e.Time}
	switch e.rec.Kind {
	case subjects.StopKind:
		stop := machine.Stop(wire.ParseStop(e.Data))
		rec.Stop = &stop
	case subjects.StepKind:
		c, ok := r.call(e.rec.Attempt)
		if !ok {
			return true // a record that no dispatch of ours can have asked for
		}
		rec.Result = decodeResult(c, e, r.version, r.bucket(), func() *wire.Redactor { return dr.redactor(r) })
		if h := rec.Result.Handle; h != nil && !h.Checked {
			dr.fetch(r, e, rec)
			return false
		}
	default:
		return true
	}
	dr.record(r, rec, now)
	return true
}

// record gives a whole record to the machine.
func (dr *driver) record(r *run, rec machine.Record, now time.Time) {
	r.machine.Apply(rec, now, &dr.effects)
	if rec.Result != nil {
		dr.dispatcher.decided(r, rec.Result)
	}
	dr.expand(r, now)
}

// has reports whether a plan has a call that such an attempt may be of, now or later.
func (r *run) has(a subjects.Attempt) bool {
	_, ok := r.call(a)
	return ok
}

// call gives what an attempt is of, and whether this plan has such a call.
func (r *run) call(a subjects.Attempt) (machine.Call, bool) {
	id, item, isItem := subjects.SplitItem(a.Step)
	i, ok := r.plan.Index(id)
	if !ok || r.plan.Steps[i].Tool != a.Tool || isItem && (r.plan.Steps[i].ForEach == nil || item >= plan.MaxItems) {
		return machine.Call{}, false
	}
	if r.machine != nil && a.Number > r.machine.MostAttempts(i) {
		return machine.Call{}, false
	}
	c := machine.Call{Step: i}
	if isItem {
		c.Item = item + 1
	}
	return c, true
}
