package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/subjects"
)

// intake sends a message the way of a plan and looks where it comes out. It names a stream that does not exist, so no
// stream stores it.
func (d *doctor) intake(ctx context.Context) error {
	if d.shards == 0 {
		return nil
	}
	tenant := d.o.Tenant
	if tenant == "" {
		tenant = subjects.DefaultTenant
	}
	published, arrives := subjects.IntakeProbe(subjects.NewRun(tenant, "doctor-"+nuid.Next()), d.shards)
	there, err := d.comesThrough(ctx, published, arrives)
	if err != nil {
		return err
	}
	source, destination := subjects.IntakeMapping(d.shards)
	line := fmt.Sprintf("mappings: { %q: %q }", source, destination)
	f := Finding{Health: Broken, Expected: "what is published to " + source + " arrives at " + arrives,
		Found: "it does not arrive there"}
	switch {
	case there && d.shards == 1:
		d.fine(source + " leads to the ledger")
		return nil
	case there:
		d.fine(source + " is mapped to the ledger's " + text.Count(d.shards, "shard"))
		return nil
	case d.shards == 1:
		f.Means, f.Fix = "plans are not stored, and their submitters get no answer",
			"take the mapping of "+source+" out of the account's configuration"
	default:
		f.Means = "plans of stock NATS clients are not stored; Go clients name the shard themselves"
		f.Fix = "in the account's configuration: " + line
	}
	d.add(f, nil)
	return nil
}

// probeStream is the name of no stream; JetStream stores no message that expects it.
const probeStream = "none-this-is-a-probe"

func (d *doctor) comesThrough(ctx context.Context, published, arrives string) (bool, error) {
	sub, err := d.nc.SubscribeSync(arrives)
	if err != nil {
		return false, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	probe := &nats.Msg{Subject: published, Header: nats.Header{"Nats-Expected-Stream": {probeStream}}}
	if err := d.nc.PublishMsg(probe); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	if err := d.nc.FlushWithContext(ctx); err != nil { // the server has seen both; what comes is before the answer
		return false, err
	}
	if _, err = sub.NextMsg(100 * time.Millisecond); err == nil {
		return true, nil
	}
	return false, d.s.Heard(ctx, published, arrives)
}
