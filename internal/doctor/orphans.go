package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// orphanConsumers looks at consumers that no tool has.
func (d *doctor) orphanConsumers(ctx context.Context) error {
	owned := map[queueKey]bool{}
	byName := map[string]tool.Registered{}
	for _, t := range d.tools {
		owned[queueKey{t.Shard, subjects.Durable(t.Name)}] = true
		byName[subjects.Durable(t.Name)] = t
	}
	for key, info := range d.queues {
		if !owned[key] && !d.foreign[key.durable] && key.durable != subjects.Keeper {
			d.orphan(ctx, key, info, byName)
		}
	}
	d.fine("none")
	if d.worst > 0 && d.o.Mend {
		if _, _, err := d.readRegistry(ctx); err != nil {
			return err
		}
		return d.readQueues(ctx)
	}
	return nil
}

func (d *doctor) orphan(ctx context.Context, key queueKey, info toolQueue, byName map[string]tool.Registered) {
	stream := subjects.StepsStream(key.shard)
	f := Finding{About: stream + " " + key.durable, Expected: "a registered tool for every consumer",
		Found: "no tool has this consumer", Health: Broken}
	remove := func() error {
		err := d.js.DeleteConsumer(ctx, stream, key.durable)
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			return nil
		}
		return err
	}
	name, ok := subjects.ToolOfDurable(key.durable)
	_, removed := d.removed[name]
	kept, known := d.kept[name]
	t, elsewhere := byName[key.durable]
	switch {
	case elsewhere && info.NumPending == 0 && info.NumAckPending == 0:
		f.Health, f.Found = Notable, fmt.Sprintf("the tool %s takes its steps from %s", t.Name, subjects.StepsStream(t.Shard))
		f.Means, f.Fix = "it slows every acknowledgement of its stream a little", "deletes it; it has nothing to deliver"
		d.add(f, remove)
	case elsewhere:
		f.Found = fmt.Sprintf("the tool %s takes its steps from %s, and %d steps wait here", t.Name,
			subjects.StepsStream(t.Shard), int(info.NumPending)+info.NumAckPending)
		f.Means, f.Fix = "runs that were started before wait for them",
			"stepjet cancel the runs that wait, then stepjet retry them; stepjet list --status running names them"
		d.add(f, nil)
	case ok && removed:
		f.Health, f.Means, f.Fix = Notable, "the tool was removed, and a crash left its consumer", "deletes it"
		d.add(f, remove)
	case ok && known:
		f.Found = "the registration of " + name + " is gone"
		f.Means, f.Fix = "plans that name the tool are rejected, and its workers are not known",
			"registers the definition of it that was kept last"
		d.add(f, func() error { return d.restore(ctx, kept.def, key.shard, info.Config.AckWait) })
	case ok:
		f.Found = "the registration of " + name + " is gone, and its definition with it"
		f.Means, f.Fix = "plans that name the tool are rejected",
			"start a worker of it or stepjet tools apply FILE; if there is no such tool: nats consumer rm "+stream+" "+
				key.durable
		d.add(f, nil)
	default:
		f.Means, f.Fix = "whatever it takes is lost to the tool's own workers", "nats consumer rm "+stream+" "+key.durable
		d.add(f, nil)
	}
}

// keeper looks for the consumer that keeps what waits for its time from forged acknowledgements.
func (d *doctor) keeper(ctx context.Context, shard int) error {
	stream := subjects.StepsStream(shard)
	if there, err := d.in.Consumer(ctx, shard, subjects.Keeper); there != nil || err != nil {
		return err
	}
	d.add(Finding{
		About: stream, Health: Notable, Expected: "the consumer " + subjects.Keeper + ", from which nobody pulls",
		Found: "no such consumer",
		Means: "a worker that forges acknowledgements removes scheduled retries of other tools until the sweep sends them again", Fix: "creates it",
	}, func() error { return d.in.MakeKeeper(ctx, shard) })
	return nil
}

// sentinels looks for the message that keeps a step stream from emptying.
func (d *doctor) sentinels(ctx context.Context) error {
	for shard := range d.stepShards {
		if d.info(subjects.StepsStream(shard)) == nil {
			continue
		}
		if err := d.keeper(ctx, shard); err != nil {
			return err
		}
		_, err := d.s.Ledger.Read(ctx, subjects.Sentinel(shard))
		if err == nil {
			continue
		}
		if fault.CodeOf(err) != fault.NotFound {
			return err
		}
		d.add(Finding{
			About: subjects.StepsStream(shard), Health: Notable, Expected: "a sentinel message, which no consumer takes",
			Found: "none: the stream was purged",
			Means: "a step takes about twice as long whenever the stream empties; steps that were purged are sent again by the sweep", Fix: "puts one there",
		}, func() error { return d.make(ctx, subjects.StepsStream(shard)) })
	}
	d.fine(text.Count(d.stepShards, "step stream") + ", each with its sentinel")
	return nil
}
