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
)

// check is one thing to look at.
type check struct {
	name string
	look func(context.Context) error
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
	checks := []check{
		{"server", d.server}, {"max-payload", d.maxPayload}, {"jetstream", d.jetStream}, {"stream", d.streams},
		{"replica", d.replicas}, {"durability", d.durability}, {"intake", d.intake}, {"sentinel", d.sentinels},
		{"registry", d.registry},
		{"consumer", d.consumers}, {"orphan-consumer", d.orphanConsumers}, {"frozen-tool", d.frozenTools},
		{"tenant", d.tenantBuckets},
	}
	if !o.SetUp {
		live := listen(ctx, d)
		defer live.stop()
		d.alive = live.look
		checks = append(checks, []check{
			{"stuck-step", d.stuckSteps},
			{"orphan-records", d.orphanRecords}, {"orchestrator", d.orchestrators}, {"demand", d.demand}, {"worker", d.workers},
			{"alive", d.alive},
			{"run", d.staleRuns}, {"redelivery", d.redeliveries}, {"room", d.room}, {"clock", d.clocks},
			{"dead-letters", d.deadLetters}, {"sinks", func(ctx context.Context) error { return lookAtSinks(ctx, d) }}, {"secrets", d.secrets},
			{"blobs", d.blobs},
		}...)
	}
	for _, c := range checks {
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
