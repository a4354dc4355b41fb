// Package subjects builds, parses and checks every name that Stepjet uses in NATS: subjects, streams, buckets, keys,
// consumers and headers. No other package puts a subject together.
//
// Safety: whatever an agent, a tool or a plan calls a run, a tool or a step, its name becomes exactly one subject token
// (Encode), so it can neither add tokens nor wildcards nor leave its place. Parsing accepts only what building makes.
package subjects

import (
	"strconv"
	"strings"
)

// Assets of JetStream.
const (
	ToolsBucket   = "tools"
	MembersBucket = "members"
	HistoryBucket = "history"
	BlobsBucket   = "blobs"
	GatherBucket  = "gather" // which worker of a tool gathers its batches
	DeadBucket    = "dead"   // dead letters: steps that used up their attempts

	QuestionsBucket = "questions" // what runs wait for people to say
	RatesBucket     = "rates"     // how much of each language model's rate is left
	GroupsBucket    = "groups"    // groups of tools, by role and provider

	DoctorQueue = "stepjet" // queue group of requests that any orchestrator can answer
)

// Intake subjects: where agents publish plans.
const (
	IntakeFilter = "plan.submit.*.*"
	// IntakeTemplate is their form, for people and telemetry.
	IntakeTemplate = "plan.submit.{tenant}.{run}"
	// IntakeShardsFilter matches what Go clients publish to where there is more than one ledger shard.
	IntakeShardsFilter = "plan.in.*.*.*"
)

// LedgerBucket returns the KV bucket of a ledger shard, LedgerStream the stream beneath it.
func LedgerBucket(shard int) string { return "runs_" + strconv.Itoa(shard) }

// LedgerStream returns the stream of a ledger shard.
func LedgerStream(shard int) string { return "KV_" + LedgerBucket(shard) }

// LedgerPrefix returns the prefix of all subjects of a ledger shard, with the trailing dot.
func LedgerPrefix(shard int) string { return "$KV." + LedgerBucket(shard) + "." }

// LedgerShard returns the ledger shard of a partition.
func LedgerShard(partition, shards int) int { return partition % shards }

// IntakeTarget returns the destination of the ledger's subject transform for IntakeFilter, with one shard.
func IntakeTarget() string {
	return LedgerPrefix(0) + "{{partition(" + strconv.Itoa(Partitions) + ",2)}}.{{wildcard(1)}}.{{wildcard(2)}}.plan"
}

// Submit returns the subject that an agent publishes a plan to. run is encoded.
func Submit(tenant, run string) string { return "plan.submit." + tenant + "." + run }

// Run names a run: tenant and encoded run id.
type Run struct {
	Tenant string
	ID     string // encoded token
}

// NewRun names a run by tenant and plain run id.
func NewRun(tenant, id string) Run { return Run{tenant, Encode(id)} }

// Plain returns the run id as its submitter wrote it, or the token where it isn't a canonical encoding.
func (r Run) Plain() string {
	if s, ok := Decode(r.ID); ok {
		return s
	}
	return r.ID
}

// Valid reports whether tenant and token are such as Stepjet accepts.
func (r Run) Valid() bool {
	id, ok := Decode(r.ID)
	return ok && ValidRun(id) && ValidTenant(r.Tenant)
}

// Partition returns the run's partition.
func (r Run) Partition() int { return Partition(r.ID) }

// Key returns the run's key in the history bucket.
func (r Run) Key() string { return r.Tenant + "." + r.ID }

// ParseHistoryKey reads a key of the history bucket.
func ParseHistoryKey(key string) (Run, bool) {
	t, id, ok := strings.Cut(key, ".")
	if !ok || strings.IndexByte(id, '.') >= 0 || t == "" || id == "" {
		return Run{}, false
	}
	return Run{t, id}, true
}

// Attempt names one attempt of one step of one generation of a run, on its way through the ledger and the step streams.
type Attempt struct {
	Run
	Generation uint64
	Tool       string // plain name, or CompositeTool
	Step       string // a step token (StepToken)
	Number     int    // from 1
}

// Key returns the idempotency key handed to the tool, the same for all attempts: T/R/G/S.
func (a Attempt) Key() string {
	return string(make(name, 0, room).key(&a))
}

// HasKey reports whether s is the attempt's Key, without making it.
func (a Attempt) HasKey(s string) bool { return string(make(name, 0, room).key(&a)) == s }

// key writes T/R/G/S.
func (n name) key(a *Attempt) name {
	return n.identity(a.Run, a.Generation).text("/", a.Step)
}

// MessageID returns the id that dedupes the dispatch of the attempt: T/R/G/S/A. It is a help, never what correctness
// rests on.
func (a Attempt) MessageID() string {
	return string(make(name, 0, room).key(&a).text("/").int(a.Number))
}

// Repairs reports whether s is the id of a message of the attempt beside its dispatch: one of the sweep's, of any version.
func (a Attempt) Repairs(s string) bool {
	return s != "" && string(make(name, 0, room).key(&a).text("/").int(a.Number)) != s
}

// RepairID returns the id that dedupes the n-th repair of the attempt, from 1: T/R/G/S/A,n. With "/n" a repair of one
// step could have the MessageID of another, whose token goes on where this one's ends.
//
// An orchestrator of before writes "/n". Beside it, one repair may be sent under two ids, and the server drops neither
// for its id. That does no harm: it refuses a repair while a message of the attempt is pending, and one that comes
// after that finds the attempt decided by its record.
func (a Attempt) RepairID(n int) string {
	return string(make(name, 0, room).key(&a).text("/").int(a.Number).text(",").int(n))
}

// BlobName returns the name of a blob that belongs to the attempt; unique is a fresh nuid.
func (a Attempt) BlobName(unique string) string { return a.MessageID() + "/" + unique }

// RunBlobName returns the name of a blob that belongs to the run as a whole (its history or start document).
func RunBlobName(r Run, generation uint64, kind, unique string) string {
	return r.Tenant + "/" + r.ID + "/" + strconv.FormatUint(generation, 10) + "/=" + kind + "/" + unique
}

// RoundBlobName returns the name of the blob that holds the record of a round of an agent which is too large for a message; it
// goes by the SHA-256 of its bytes, in hex, so that who makes the same again finds it.
func RoundBlobName(r Run, generation uint64, digest string) string {
	return RunBlobName(r, generation, "round", digest)
}

// PartName returns the name of the blob that holds one round of an agent's planner request; agent is the token of the
// agent's step.
func PartName(r Run, generation uint64, agent string, round int) string {
	return r.Tenant + "/" + r.ID + "/" + strconv.FormatUint(generation, 10) + "/=part." +
		strings.ReplaceAll(agent, "/", ".") + "." + strconv.Itoa(round)
}

// The ledger's subjects. All take the number of shards the deployment has.

// PlanRecord returns the subject of a run's plan record.
func PlanRecord(r Run, shards int) string {
	return string(make(name, 0, room).ledger(r, shards).text("plan"))
}

// StartRecord returns the subject of a generation's start record.
func StartRecord(r Run, generation uint64, shards int) string {
	return string(make(name, 0, room).generation(r, generation, shards).text("start"))
}

// StopRecord returns the subject of a generation's stop record.
func StopRecord(r Run, generation uint64, shards int) string {
	return string(make(name, 0, room).generation(r, generation, shards).text("stop"))
}

// ToldRecord returns the subject of the record of what an evaluation of a step came to; what is ToldIf, ToldValue,
// ToldApproval, ToldOutput, ToldState or ToldUntil.
func ToldRecord(r Run, generation uint64, step, what string, shards int) string {
	return string(make(name, 0, room).generation(r, generation, shards).text("told.").text(step).text(".").text(what))
}

// ToldAgainRecord returns the subject of the n-th record, from 1, of whether a person is to be asked about a call.
func ToldAgainRecord(r Run, generation uint64, step string, n, shards int) string {
	first := ToldRecord(r, generation, step, ToldApproval, shards)
	if n == 1 {
		return first
	}
	return string(name(first).text(".").int(n))
}

// What is told of a step.
const (
	ToldIf       = "if"       // whether its condition is true
	ToldValue    = "value"    // what its value came to
	ToldUntil    = "until"    // whether its loop is over with it, of an iteration
	ToldApproval = "approval" // whether its tool's contract asks for an approval, or a guard
	ToldState    = "state"    // whether what it returned fits the schema of the state
	ToldOutput   = "output"   // what a plan came to; its step is the scope
)

// AnswerRecord returns the subject of the record that answers the n-th question of a step, from 1; that of the plan
// itself is one of RootScope.
func AnswerRecord(r Run, generation uint64, step string, n, shards int) string {
	return string(make(name, 0, room).generation(r, generation, shards).text("answer.").text(step).text(".").int(n))
}

// AmendRecord returns the subject of the record that changes a scope of a run for the n-th time, from 1; scope is the token
// of its composite, RootScope for the plan.
func AmendRecord(r Run, generation uint64, scope string, n, shards int) string {
	return string(make(name, 0, room).generation(r, generation, shards).text("amend.").text(scope).text(".").int(n))
}

// RoundRecord returns the subject of the record that decides a round of an agent; scope is the token of the round.
func RoundRecord(r Run, generation uint64, scope string, shards int) string {
	return string(make(name, 0, room).generation(r, generation, shards).text("round.").text(scope))
}

// SayRecord returns the subject of the record of a word to an agent, whose token is given; an id is as a step's.
func SayRecord(r Run, generation uint64, agent, id string, shards int) string {
	return string(make(name, 0, room).generation(r, generation, shards).text("say.").text(agent).text(".").text(id))
}

// StepRecord returns the subject of the record that decides an attempt.
func StepRecord(a Attempt, shards int) string {
	return string(make(name, 0, room).stepRecord(&a, shards))
}

// IsStepRecord reports whether subject is an attempt's StepRecord, without making it.
func IsStepRecord(subject string, a Attempt, shards int) bool {
	return string(make(name, 0, room).stepRecord(&a, shards)) == subject
}

// ClaimRecord returns the subject of an attempt's claim.
func ClaimRecord(a Attempt, shards int) string {
	return string(make(name, 0, room).stepRecord(&a, shards).text(".", claim))
}

// NoteRecord returns the subject of what a worker noted of an attempt for the next that is handed it.
func NoteRecord(a Attempt, shards int) string {
	return string(make(name, 0, room).stepRecord(&a, shards).text(".", note))
}

func (n name) stepRecord(a *Attempt, shards int) name {
	return n.generation(a.Run, a.Generation, shards).text("step.").toolOf(a).text(".", a.Step, ".").int(a.Number)
}

// GenerationFilter matches all records of a generation but the plan.
func GenerationFilter(r Run, generation uint64, shards int) string {
	return string(make(name, 0, room).generation(r, generation, shards).text(">"))
}

// PartitionFilter matches all records of a partition.
func PartitionFilter(partition, shards int) string {
	return LedgerPrefix(LedgerShard(partition, shards)) + strconv.Itoa(partition) + ".>"
}

// PartitionPlans matches the plan records of a partition.
func PartitionPlans(partition, shards int) string {
	return LedgerPrefix(LedgerShard(partition, shards)) + strconv.Itoa(partition) + ".*.*.plan"
}

// ActiveFilter matches the plan records of a tenant ("*" for all) in one ledger shard.
func ActiveFilter(shard int, tenant string) string {
	return LedgerPrefix(shard) + "*." + tenant + ".*.plan"
}

// ledger writes what all records of a run begin with.
func (n name) ledger(r Run, shards int) name {
	p := r.Partition()
	return n.text("$KV.runs_").int(LedgerShard(p, shards)).text(".").int(p).text(".").run(r).text(".")
}

// generation writes what all records of a generation but the plan begin with.
func (n name) generation(r Run, g uint64, shards int) name {
	return n.ledger(r, shards).uint(g).text(".")
}

// BucketStream returns the stream of a KV bucket.
func BucketStream(bucket string) string { return "KV_" + bucket }

// IsBucketStream reports whether a stream is that of a KV bucket, in which a message replaces the one before it on the
// same subject.
func IsBucketStream(stream string) bool { return strings.HasPrefix(stream, BucketStream("")) }

// BucketSubject returns the subject of a key of a KV bucket; the key may be a filter.
func BucketSubject(bucket, key string) string { return "$KV." + bucket + "." + key }
