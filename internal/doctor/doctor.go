// Package doctor checks all that Stepjet rests on in one JetStream account, from the server's settings to the runs
// under way, says what each problem costs and what to do about it, and mends what it can. It is what `stepjet doctor`
// runs.
//
// It relies on nothing that it checks: an account need not be set up. It looks through kv.Inspector, which shows what
// lies there as it lies there. Nothing that it mends loses anything: what exists is not replaced, records that decide
// something are removed only where no run can use them.
package doctor

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/tool"
)

// Health is what a check says of what it looked at.
type Health string

// The kinds of Health.
const (
	Healthy Health = "ok"
	// Notable is as it may be, but somebody who looks wants to know it.
	Notable Health = "note"
	// Broken costs users something, now or soon.
	Broken Health = "problem"
)

// Finding is what one check found.
type Finding struct {
	// Check is the name of the check, such as "consumer"; About names what it looked at, where there are several.
	Check  string `json:"check"`
	About  string `json:"about,omitempty"`
	Health Health `json:"health"`
	// Expected is what Stepjet needs, Found what there is.
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found"`
	// Means is what that costs the users.
	Means string `json:"means,omitempty"`
	// Fix is what mending does, where Fixable; otherwise the very command or line of configuration that a person
	// writes.
	Fix     string `json:"fix,omitempty"`
	Fixable bool   `json:"fixable,omitempty"`
	// Mended says that Fix was done; Failure why it could not be.
	Mended  bool   `json:"mended,omitempty"`
	Failure string `json:"failure,omitempty"`
}

// Report is what an examination found, in the order of the checks.
type Report struct {
	Findings []Finding `json:"findings"`
}

// Problems returns the findings that are Broken and were not mended.
func (r *Report) Problems() (all []Finding) {
	for _, f := range r.Findings {
		if f.Health == Broken && !f.Mended {
			all = append(all, f)
		}
	}
	return all
}

// Options say what an examination compares with, and whether it mends.
type Options struct {
	// Want is how things should be set up. Zero fields ask for nothing: what exists is taken as it is, and the
	// defaults of Config count for what is absent.
	Want kv.Config
	// Sync is what the operator asks of the server's flushing; SyncUnknown asks for nothing.
	Sync Sync
	// Seen is what is known of the server's flushing, from its monitoring. JetStream's API does not tell it.
	Seen Sync
	// Ailing is what the servers' monitoring says is wrong with them, such as a stream that could not be written to.
	Ailing []string
	// Mend does what each Fixable finding says.
	Mend bool
	// Stale is how long an unfinished run may go without a record before it is looked into; 0: one minute.
	Stale time.Duration
	// HoldsKey reports whether the user's key file holds a key that secrets are sealed to; nil: no file was named.
	HoldsKey func(id string) bool
	// Tenant is the one under which the way of plans is probed; empty: "default". Nothing is stored.
	Tenant string
}

// Examine checks all that Stepjet rests on in one JetStream account, from the server's settings to the runs under way,
// and mends what it can if that is asked for. Nothing has to be set up before; with Mend it is afterwards. Each check
// works on what the one before has mended, so a second examination shows what is left. It reads every entry of the
// registry and the start of every active run, and at most 1,000 runs closely. A check that can't look is a finding too.
// Errors: InvalidConfig; NoJetStream, NoConnection and Permission where there is nothing to look at.
func Examine(ctx context.Context, nc *nats.Conn, o Options) (*Report, error) {
	if o.Stale == 0 {
		o.Stale = time.Minute
	}
	in, err := kv.Inspect(nc, o.Want)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, kv.Fault(err)
	}
	d := &doctor{in: in, s: in.Store(), nc: nc, js: js, o: o, report: &Report{}}
	if err := d.account(ctx); err != nil {
		return nil, err
	}
	for _, c := range []struct {
		name string
		look func(context.Context) error
	}{
		{"server", d.server}, {"max-payload", d.maxPayload}, {"jetstream", d.jetStream}, {"stream", d.streams},
		{"replica", d.replicas}, {"durability", d.durability}, {"intake", d.intake}, {"sentinel", d.sentinels},
		{"registry", d.registry},
		{"consumer", d.consumers}, {"orphan-consumer", d.orphanConsumers}, {"frozen-tool", d.frozenTools},
		{"tenant", d.tenantBuckets}, {"stuck-step", d.stuckSteps},
		{"orphan-records", d.orphanRecords}, {"orchestrator", d.orchestrators}, {"worker", d.workers},
		{"run", d.staleRuns}, {"redelivery", d.redeliveries}, {"room", d.room}, {"clock", d.clocks},
		{"dead-letters", d.deadLetters}, {"secrets", d.secrets},
		{"blobs", d.blobs},
	} {
		d.check, d.worst = c.name, 0
		if err := in.Try(ctx, c.look); err != nil {
			if ctx.Err() != nil {
				return d.report, err
			}
			d.unseen = d.unseen || c.name == "stream"
			d.couldNotLook(fault.As(err))
		}
	}
	return d.report, nil
}

// couldNotLook reports that a check could not look. A missing permission is no sickness of the account's.
func (d *doctor) couldNotLook(f *fault.Error) {
	x := Finding{Health: Broken, Found: "could not look: " + f.Message, Fix: f.Hint}
	if f.Code == fault.Permission {
		x.Health, x.Means = Notable, "with these credentials the doctor does not know"
	}
	d.add(x, nil)
}

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
	tools      []tool.Registered
	removed    map[string]int  // shards of removed tools
	newer      []string        // keys of the registry that a newer version wrote
	foreign    map[string]bool // consumers of tools among them
	kept       map[string]keptDefinition
	queues     map[queueKey]toolQueue // consumers of the step streams
	skews      []skew
	members    int // live orchestrators
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
