package doctor

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// doctor is one examination. What a check learns, later ones use.
type doctor struct {
	in     *kv.Inspector
	s      *kv.Store
	nc     *nats.Conn
	js     jetstream.JetStream
	o      Options
	report *Report
	check  string  // the one at work
	keys   *string // ids of those that the orchestrator which answers opens secrets with; nil: not known
	worst  int     // how many findings it has that are not Healthy

	storage accountStorage
	// these credentials do not show the streams, so that nothing follows from what was not found
	unseen     bool
	names      map[string]bool // of all streams; nil where these credentials may not list them
	shards     int             // of the ledger; 0 where the ledger can't be used
	stepShards int
	assets     []asset
	tools      []tool.Registered // that workers host
	templates  []tool.Registered
	removed    map[string]int  // shards of removed tools
	newer      []string        // keys of the registry that a newer version wrote
	foreign    map[string]bool // consumers of tools among them
	kept       map[string]keptDefinition
	queues     map[queueKey]toolQueue // consumers of the step streams
	skews      []skew
	wanted     *tool.Demands               // of the tools
	members    int                         // live orchestrators
	versions   []string                    // theirs, where they say it
	alive      func(context.Context) error // looks at what workers say of themselves
	active     []activeRun
}

// add reports a finding, and mends it where that was asked for.
func (d *doctor) add(f Finding, mend func() error) {
	f.Check = d.check
	if f.Health != Healthy {
		d.worst++
	}
	f.Fixable = mend != nil
	if mend != nil && d.o.Mend {
		if err := mend(); err != nil {
			f.Failure = fault.As(kv.Fault(err)).Message
		} else {
			f.Mended = true
		}
	}
	d.report.Findings = append(d.report.Findings, f)
}

// fine reports that all of a check is well, unless it has said otherwise.
func (d *doctor) fine(found string) {
	if d.worst == 0 {
		d.add(Finding{Health: Healthy, Found: found}, nil)
	}
}

// couldNotLook reports that a check could not look. A missing permission is no sickness of the account's.
func (d *doctor) couldNotLook(f *fault.Error) {
	x := Finding{Health: Broken, Found: "could not look: " + f.Message, Fix: f.Hint}
	if f.Code == fault.Permission {
		x.Health, x.Means = Notable, "with these credentials the doctor does not know"
	}
	d.add(x, nil)
}

// accountStorage is what the account uses of JetStream and what it may use; a limit below 1 is none.
type accountStorage struct {
	used, reserved, limit             uint64
	streams, maxStreams, maxConsumers int
	consumers                         int
	bytesRequired                     bool
}

// asset is one stream that Stepjet needs, and what is there of it.
type asset struct {
	want jetstream.StreamConfig
	role string
	lost string                // what its absence costs
	info *jetstream.StreamInfo // nil where it is absent
}

// keptDefinition is a definition that is kept under its digest.
type keptDefinition struct {
	def *tool.Definition
	seq uint64
}

type queueKey struct {
	shard   int
	durable string
}

// toolQueue is the durable consumer of a tool.
type toolQueue = jetstream.ConsumerInfo

// skew is how far a clock is ahead of this machine's, give or take half a round trip.
type skew struct {
	whose string
	ahead time.Duration
}

// activeRun is a run with a start record.
type activeRun struct {
	run        subjects.Run
	generation uint64
	tools      map[string]*wire.FrozenTool
	bucket     string // of its large values; empty: blobs
}

// look asks for a stream's state; nil where there is no such stream. What it shows of the leader's clock is noted.
func (d *doctor) look(ctx context.Context, stream string) (*jetstream.StreamInfo, error) {
	sent := time.Now()
	info, err := d.in.Stream(ctx, stream)
	if info == nil || err != nil {
		return nil, err
	}
	whose := "the NATS server"
	if info.Cluster != nil && info.Cluster.Leader != "" {
		whose = "NATS server " + info.Cluster.Leader
	}
	d.sawTime(whose, info.TimeStamp, sent, time.Now())
	return info, nil
}
