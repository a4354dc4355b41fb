package kv

import (
	"log/slog"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// Config says how JetStream's assets are created where they are absent. What exists already is taken as it is: a change
// of these fields changes nothing that was set up before.
type Config struct {
	// Replicas of every stream: 1 (default), 3 or 5.
	Replicas int
	// Shards is the number of ledger streams; it divides 64 and can't be changed later. 0: as many as exist, or 1.
	Shards int
	// Retention is how long finished runs are kept; 0: 7 days. At least 1 s.
	Retention time.Duration
	// LedgerMaxBytes bounds each ledger stream; 0: only the account's and the disk's limits count. A full ledger
	// takes no plans and no results until runs have been purged or the bound is raised; nothing is lost by it.
	LedgerMaxBytes int64
	// AckWait is the lease of a step: so long after the last sign of life it goes to another worker. 0: 30 s. At least
	// 200 ms.
	AckWait time.Duration
	// StepsAsync lets step streams of one replica acknowledge before they write (PersistMode async). What they hold
	// is derived and repaired by the sweep, so nothing is lost with it; with sync_interval always it saves two
	// flushes a step.
	StepsAsync bool
	// Cluster is the name of the NATS cluster that streams are made in. Empty: the one that the connection leads to, where
	// that has room, else any that gateways join it with.
	Cluster string
	// Knows is what this program knows of needs; nil: wire.Ours. It is code, and no part of a configuration as JSON.
	Knows wire.Knowledge `json:"-"`
	// Logger takes warnings, such as a store that is full; nil: none.
	Logger *slog.Logger
}

// Defaults of Config.
const (
	DefaultRetention = 7 * 24 * time.Hour
	DefaultAckWait   = 30 * time.Second
)

// LongestRun is the longest time that a run may take (design: plan language, "timeout").
const LongestRun = 168 * time.Hour

func (c Config) withDefaults() Config {
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.Retention == 0 {
		c.Retention = DefaultRetention
	}
	if c.AckWait == 0 {
		c.AckWait = DefaultAckWait
	}
	if c.Knows == nil {
		c.Knows = wire.Ours()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Replicas < 1 || c.Replicas > 5:
		return fault.New(fault.InvalidConfig, "%d replicas: JetStream has 1 to 5", c.Replicas)
	case c.Shards < 0 || c.Shards > 0 && subjects.Partitions%c.Shards != 0:
		return fault.New(fault.InvalidConfig, "%d ledger shards: the number must divide %d", c.Shards, subjects.Partitions)
	case c.Retention < time.Second:
		return fault.New(fault.InvalidConfig, "a retention of %v: at least 1s", c.Retention)
	case c.AckWait < 200*time.Millisecond:
		return fault.New(fault.InvalidConfig, "an ack wait of %v: at least 200ms", c.AckWait)
	case c.LedgerMaxBytes < 0:
		return fault.New(fault.InvalidConfig, "a ledger of %d bytes", c.LedgerMaxBytes)
	}
	return nil
}

// metaShards is the key of the ledger's metadata that says how many shards there are.
const metaShards = "stepjet-shards"

// memberTTL is how long a member's key outlives its last renewal.
const memberTTL = 3 * time.Second

// maxRecord bounds a record of the ledger, headers included, in bytes: the largest plan with its headers. Orchestrators
// read records into their memory, and a worker of another make may write what a server with a large max_payload takes.
const maxRecord = 1 << 20

// ledgerConfig is the stream of a ledger shard. Create-once is enforced by the server: a subject takes one message and
// refuses the second. All that lets a message around that (rollup, message TTL, schedules, deletes) is off. It binds as
// a KV bucket.
func (c Config) ledgerConfig(shard, shards int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        subjects.LedgerStream(shard),
		Description: "Stepjet: immutable records of runs",
		Subjects:    []string{subjects.LedgerPrefix(shard) + ">", subjects.ShardIntakeFilter(shard, shards)},
		SubjectTransform: &jetstream.SubjectTransformConfig{
			Source:      subjects.ShardIntakeFilter(shard, shards),
			Destination: subjects.ShardIntakeTarget(shard, shards),
		},
		Storage: jetstream.FileStorage, Replicas: c.Replicas, MaxBytes: orUnlimited(c.LedgerMaxBytes),
		MaxMsgSize: maxRecord, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
		AllowDirect: true, DenyDelete: true, Duplicates: 100 * time.Millisecond,
		Metadata: map[string]string{metaShards: strconv.Itoa(shards)},
	}
}

// stepsConfig is the work queue of a tool shard.
func (c Config) stepsConfig(shard int) jetstream.StreamConfig {
	cfg := jetstream.StreamConfig{
		Name:        subjects.StepsStream(shard),
		Description: "Stepjet: steps on their way to workers",
		Subjects:    subjects.StepsSubjects(shard),
		Retention:   jetstream.WorkQueuePolicy,
		Storage:     jetstream.FileStorage, Replicas: c.Replicas,
		AllowMsgSchedules: true, AllowMsgTTL: true, AllowRollup: true, Duplicates: 2 * time.Minute,
	}
	if c.StepsAsync && c.Replicas == 1 {
		cfg.PersistMode = jetstream.AsyncPersistMode
	}
	return cfg
}

// historyConfig is the bucket of finished runs, create-once like the ledger. Stepjet's own reads are the leader's; the
// direct get is for programs that may read one tenant's runs only (account_read.go).
func (c Config) historyConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        subjects.BucketStream(subjects.HistoryBucket),
		Description: "Stepjet: finished runs",
		Subjects:    []string{subjects.BucketSubject(subjects.HistoryBucket, ">")},
		Storage:     jetstream.FileStorage, Replicas: c.Replicas, MaxAge: c.Retention,
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
		AllowDirect: true, DenyDelete: true, Duplicates: 100 * time.Millisecond,
	}
}

// deadConfig is the bucket of dead letters, an ordinary KV bucket whose keys expire as finished runs do. Letters are
// created once by the condition that nothing is there; one that was removed leaves a marker, so it does not come back.
func (c Config) deadConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        subjects.BucketStream(subjects.DeadBucket),
		Description: "Stepjet: steps that used up their attempts",
		Subjects:    []string{subjects.BucketSubject(subjects.DeadBucket, ">")},
		Storage:     jetstream.FileStorage, Replicas: c.Replicas, MaxAge: c.Retention,
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew,
		AllowDirect: true, DenyDelete: true, Duplicates: 100 * time.Millisecond,
	}
}

// questionsConfig is the bucket of what runs wait for people to say, an ordinary KV bucket. Its entries are derived and
// go with their answers; those that nobody removed expire when no run of theirs can be left.
func (c Config) questionsConfig() jetstream.StreamConfig {
	cfg := c.bucket(subjects.QuestionsBucket, "Stepjet: what runs wait for people to say", 100*time.Millisecond)
	cfg.MaxAge = 2 * LongestRun
	return cfg
}

// toolsConfig is the tool registry, an ordinary KV bucket.
func (c Config) toolsConfig() jetstream.StreamConfig {
	return c.bucket(subjects.ToolsBucket, "Stepjet: tool registry", 2*time.Minute)
}

// groupsConfig is the bucket of groups of tools, an ordinary KV bucket.
func (c Config) groupsConfig() jetstream.StreamConfig {
	return c.bucket(subjects.GroupsBucket, "Stepjet: groups of tools", 100*time.Millisecond)
}

// bucket is an ordinary KV bucket that remembers message ids for so long.
func (c Config) bucket(name, description string, duplicates time.Duration) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        subjects.BucketStream(name),
		Description: description,
		Subjects:    []string{subjects.BucketSubject(name, ">")},
		Storage:     jetstream.FileStorage, Replicas: c.Replicas,
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew,
		AllowDirect: true, DenyDelete: true, Duplicates: duplicates,
	}
}

// membersConfig is the bucket of live orchestrators, whose keys expire. A marker tells watchers of each that did. The
// server turns rollups on where there are such markers, as it does where there are schedules: so here, and into a step
// stream, nobody but orchestrators may publish.
func (c Config) membersConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        subjects.BucketStream(subjects.MembersBucket),
		Description: "Stepjet: live orchestrators",
		Subjects:    []string{subjects.BucketSubject(subjects.MembersBucket, ">")},
		Storage:     jetstream.FileStorage, Replicas: c.Replicas,
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew,
		AllowDirect: true, DenyDelete: true, AllowRollup: true, Duplicates: 2 * time.Minute,
		AllowMsgTTL: true, SubjectDeleteMarkerTTL: memberTTL,
	}
}

// GatherLease is how long the lease of a gathering worker outlives its last renewal.
const GatherLease = 3 * time.Second

// gatherConfig is the bucket of the workers that gather batches, one key for each such tool.
func (c Config) gatherConfig() jetstream.StreamConfig {
	return c.workersBucket(subjects.GatherBucket, "*", "which worker gathers a tool's batches", GatherLease, 4096)
}

// rateKept is how long a rate is kept that nobody asks for: a bucket is full again after a minute.
const rateKept = 10 * time.Minute

// ratesConfig is the bucket of language models' rates, a key for each model of each tool.
func (c Config) ratesConfig() jetstream.StreamConfig {
	return c.workersBucket(subjects.RatesBucket, "*.*", "how much of language models' rates is left", rateKept, 128<<10)
}

// workersBucket is a bucket that workers write. So nothing is on by which a message reaches further than its own
// subject: keys expire by the age of the whole stream, not by a TTL of their own, which would bring delete markers and
// with them rollup.
func (c Config) workersBucket(bucket, keys, holds string, age time.Duration, maxSize int32) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        subjects.BucketStream(bucket),
		Description: "Stepjet: " + holds,
		Subjects:    []string{subjects.BucketSubject(bucket, keys)},
		Storage:     jetstream.MemoryStorage, Replicas: c.Replicas, MaxAge: age,
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardOld, MaxMsgSize: maxSize,
		AllowDirect: true, DenyDelete: true, Duplicates: 100 * time.Millisecond,
	}
}

// blobsConfig is a bucket of the object store, a declared tenant's or, without a name, that of all others; it binds
// as one of client libraries. Blobs outlive the longest run and its retention.
func (c Config) blobsConfig(bucket string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        subjects.BlobsStream(bucket),
		Description: "Stepjet: large arguments, results and documents",
		Subjects:    subjects.BlobsSubjects(bucket),
		Storage:     jetstream.FileStorage, Replicas: c.Replicas, MaxAge: c.Retention + LongestRun + time.Hour,
		Discard: jetstream.DiscardNew, AllowDirect: true,
	}
}

// streamConfig is any of these streams, by its name, beside a ledger of so many shards.
func (c Config) streamConfig(stream string, shards int) jetstream.StreamConfig {
	switch stream {
	case subjects.BucketStream(subjects.HistoryBucket):
		return c.historyConfig()
	case subjects.BucketStream(subjects.DeadBucket):
		return c.deadConfig()
	case subjects.BucketStream(subjects.QuestionsBucket):
		return c.questionsConfig()
	case subjects.BucketStream(subjects.ToolsBucket):
		return c.toolsConfig()
	case subjects.BucketStream(subjects.MembersBucket):
		return c.membersConfig()
	case subjects.BucketStream(subjects.GatherBucket):
		return c.gatherConfig()
	case subjects.BucketStream(subjects.RatesBucket):
		return c.ratesConfig()
	case subjects.BucketStream(subjects.GroupsBucket):
		return c.groupsConfig()
	case subjects.BlobsStream(""):
		return c.blobsConfig("")
	}
	if tenant, ok := subjects.TenantOfBlobs(stream); ok {
		return c.blobsConfig(subjects.BlobsOf(tenant))
	}
	if shard, ok := subjects.ParseStepsStream(stream); ok {
		return c.stepsConfig(shard)
	}
	for shard := range shards {
		if stream == subjects.LedgerStream(shard) {
			return c.ledgerConfig(shard, shards)
		}
	}
	return jetstream.StreamConfig{Name: stream}
}

// consumerConfig is the durable consumer of a tool. MaxAckPending is the tool's fan-out limit over all workers.
func consumerConfig(t tool.Registered) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: subjects.Durable(t.Name), Description: "Stepjet tool " + t.Name,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: t.AckWait, MaxDeliver: -1, MaxAckPending: t.Contract.Limit,
		MaxWaiting: maxWaiting, FilterSubject: subjects.ToolFilter(t.Name, t.Shard),
	}
}

// keeperConfig is the consumer of a step stream that nobody pulls from. A worker writes the number of the message
// that it acknowledges itself, and a work queue removes what no consumer is interested in: without the keeper, with a
// forged number, sentinels and scheduled retries of every tool.
func keeperConfig(shard int) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: subjects.Keeper, Description: "Stepjet: keeps what waits for its time",
		AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 1, MaxWaiting: 1, FilterSubjects: subjects.KeeperFilters(shard),
	}
}

// maxWaiting is how many pull requests of workers a consumer holds. It can't be changed once the consumer exists.
const maxWaiting = 4096

// placed returns the settings of a stream that is to be made where this program's streams are.
func (c Config) placed(cfg jetstream.StreamConfig) jetstream.StreamConfig {
	if c.Cluster != "" {
		cfg.Placement = &jetstream.Placement{Cluster: c.Cluster}
	}
	return cfg
}

func orUnlimited(n int64) int64 {
	if n == 0 {
		return -1
	}
	return n
}

// checkLedger says what of an existing stream breaks the promise of create-once; nil for a sound one.
func checkLedger(c jetstream.StreamConfig) error {
	wrong := ""
	switch {
	case c.MaxMsgsPerSubject != 1 || c.Discard != jetstream.DiscardNew || !c.DiscardNewPerSubject:
		wrong = "does not refuse a second message on a subject"
	case c.AllowRollup || c.AllowMsgTTL || c.AllowMsgSchedules || c.MaxAge != 0:
		wrong = "lets messages be replaced or expire"
	case c.Retention != jetstream.LimitsPolicy || c.Storage != jetstream.FileStorage:
		wrong = "does not keep its messages on disk"
	default:
		return nil
	}
	return fault.New(fault.InvalidConfig, "the stream %s was not made by Stepjet: it %s", c.Name, wrong).
		WithHint("delete it, or use another account")
}
