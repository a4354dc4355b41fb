package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// readQueues reads all consumers of the step streams.
func (d *doctor) readQueues(ctx context.Context) error {
	d.queues = map[queueKey]toolQueue{}
	for shard := range d.stepShards {
		all, err := d.in.Consumers(ctx, shard)
		if err != nil {
			return err
		}
		for _, info := range all {
			d.queues[queueKey{shard, info.Name}] = *info
		}
	}
	return nil
}

// queueOf returns a tool's consumer. A list may lack one whose leader did not answer, so absence is asked for again.
func (d *doctor) queueOf(ctx context.Context, t tool.Registered) (info toolQueue, there bool, err error) {
	key := queueKey{t.Shard, subjects.Durable(t.Name)}
	if info, ok := d.queues[key]; ok {
		return info, true, nil
	}
	now, err := d.in.Consumer(ctx, t.Shard, key.durable)
	if now == nil || err != nil {
		return info, false, err
	}
	d.queues[key] = *now
	return d.queues[key], true, nil
}

// consumers looks at the durable consumer of every tool.
func (d *doctor) consumers(ctx context.Context) error {
	if err := d.readQueues(ctx); err != nil {
		return err
	}
	for _, t := range d.tools {
		info, there, err := d.queueOf(ctx, t)
		if err != nil {
			return err
		}
		if !there {
			d.add(Finding{
				About: t.Name, Health: Broken, Expected: "the consumer " + subjects.Durable(t.Name) + " of " +
					subjects.StepsStream(t.Shard), Found: "no such consumer",
				Means: "no worker gets steps of the tool; they wait", Fix: "creates it; steps that were leased are delivered again",
			}, func() error { return d.in.MakeConsumer(ctx, t) })
			continue
		}
		d.drift(ctx, t, info)
	}
	d.fine(fmt.Sprintf("%s, each with the limit and the lease of its tool", text.Count(len(d.tools), "consumer")))
	if d.worst > 0 && d.o.Mend {
		return d.readQueues(ctx)
	}
	return nil
}

// drift reports what of a consumer is not as its tool says.
func (d *doctor) drift(ctx context.Context, t tool.Registered, info toolQueue) {
	want, have := d.in.WantedConsumer(t), info.Config
	f := Finding{About: t.Name, Health: Broken}
	firm := consumerDifferences(&f, want, &have)
	if f.Expected != "" {
		f.Fix = "sets it as the tool's contract says"
		if firm {
			f.Fix = "deletes the consumer and creates it again; steps that are leased are delivered again"
		}
		d.add(f, func() error { return d.resetConsumer(ctx, t, have, firm) })
	}
	if info.Paused {
		d.add(Finding{
			About: t.Name, Health: Broken, Expected: "a consumer at work",
			Found: "it is paused for another " + info.PauseRemaining.Round(time.Second).String(),
			Means: "no worker gets steps of the tool", Fix: "resumes it",
		}, func() error {
			_, err := d.js.ResumeConsumer(ctx, info.Stream, info.Name)
			return err
		})
	}
}

// consumerDifferences fills in what is expected and found, and puts what is expected into have; firm says that the
// server takes no such update.
func consumerDifferences(f *Finding, want jetstream.ConsumerConfig, have *jetstream.ConsumerConfig) (firm bool) {
	var expected, found, means []string
	note := func(differ bool, name string, want, have any, costs string, fixed bool) bool {
		if differ {
			expected, found = append(expected, fmt.Sprintf("%s %v", name, want)), append(found, fmt.Sprintf("%s %v", name, have))
			means = append(means, costs)
			firm = firm || fixed
		}
		return differ
	}
	if note(have.MaxAckPending != want.MaxAckPending, "max_ack_pending", want.MaxAckPending, have.MaxAckPending,
		"more or fewer steps are leased at a time than the contract allows", false) {
		have.MaxAckPending = want.MaxAckPending
	}
	if note(have.AckWait != want.AckWait, "ack_wait", want.AckWait, have.AckWait,
		"a lost worker's steps go to another one too early or too late", false) {
		have.AckWait = want.AckWait
	}
	if note(have.FilterSubject != want.FilterSubject ||
		len(have.FilterSubjects) > 0, "filter", want.FilterSubject, have.FilterSubject+strings.Join(have.FilterSubjects, " "),
		"steps of the tool are not delivered, or another tool's are", false) {
		have.FilterSubject, have.FilterSubjects = want.FilterSubject, nil
	}
	if note(have.MaxDeliver > 0, "max_deliver", "unlimited", have.MaxDeliver,
		"a step whose workers died that often vanishes", false) {
		have.MaxDeliver = -1
	}
	if note(len(have.BackOff) > 0, "backoff", "none", have.BackOff, "leases have another length than the contract says",
		false) {
		have.BackOff = nil
	}
	if note(have.MaxRequestBatch > 0 || have.MaxRequestExpires > 0 ||
		have.MaxRequestMaxBytes > 0, "request limits", "none", "some", "requests of workers are refused", false) {
		have.MaxRequestBatch, have.MaxRequestExpires, have.MaxRequestMaxBytes = 0, 0, 0
	}
	if note(have.InactiveThreshold > 0, "inactive_threshold", "none", have.InactiveThreshold,
		"the consumer goes when no worker is there", false) {
		have.InactiveThreshold = 0
	}
	note(have.AckPolicy != want.AckPolicy, "ack_policy", want.AckPolicy, have.AckPolicy,
		"steps count as done before they are", true)
	note(have.DeliverPolicy != want.DeliverPolicy, "deliver_policy", want.DeliverPolicy, have.DeliverPolicy,
		"steps that are there already are left out", true)
	note(have.DeliverSubject != "", "deliver_subject", "none", have.DeliverSubject, "workers can't pull", true)
	note(have.HeadersOnly, "headers_only", false, true, "workers get no arguments", true)
	note(have.MaxWaiting < want.MaxWaiting, "max_waiting", want.MaxWaiting, have.MaxWaiting,
		"with many workers some are refused", true)
	f.Expected, f.Found, f.Means = strings.Join(expected, ", "), strings.Join(found, ", "), strings.Join(means, "; ")
	return firm
}

// resetConsumer sets a tool's consumer, or puts another in its place.
func (d *doctor) resetConsumer(ctx context.Context, t tool.Registered, cfg jetstream.ConsumerConfig, anew bool) error {
	stream := subjects.StepsStream(t.Shard)
	if !anew {
		_, err := d.js.UpdateConsumer(ctx, stream, cfg)
		return err
	}
	if err := d.js.DeleteConsumer(ctx, stream, subjects.Durable(t.Name)); err != nil &&
		!errors.Is(err, jetstream.ErrConsumerNotFound) {
		return err
	}
	return d.in.MakeConsumer(ctx, t)
}
