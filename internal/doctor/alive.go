package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

const (
	// pingPatience is how long an orchestrator may take to answer.
	pingPatience      = 2 * time.Second
	startOrchestrator = "start one: orchestrator --url URL"
)

// orchestrators looks for member keys, which live orchestrators renew, and whether one of them answers.
func (d *doctor) orchestrators(ctx context.Context) error {
	var said map[string]wire.Member
	if d.info(subjects.BucketStream(subjects.MembersBucket)) != nil {
		var err error
		if said, err = d.in.Store().Members.Said(ctx); err != nil {
			return err
		}
	}
	d.members = len(said)
	for _, m := range said {
		d.versions = append(d.versions, m.Version)
	}
	f := Finding{Health: Broken, Expected: "one orchestrator or more, alive and answering"}
	name, err := d.ping(ctx)
	switch {
	case d.unseen && err == nil:
		d.add(Finding{Health: Notable, Found: name + " answers; what others there are these credentials do not show"}, nil)
		return nil
	case d.unseen:
		return err
	case d.members == 0 && err != nil:
		f.Found, f.Means, f.Fix = "none is alive", "accepted plans wait, and no step is sent; nothing is lost",
			startOrchestrator
	case d.members == 0:
		f.Found, f.Means = name+" answers, but keeps no member key", "it owns no partition, so no run goes on"
		f.Fix = "look at its log; it may not be allowed to write to the bucket " + subjects.MembersBucket
	case err != nil:
		f.Found, f.Means = fmt.Sprintf("%s, and none answers: %v", text.Count(d.members, "member key"),
			fault.As(kv.Fault(err)).Message), "requests about runs and registrations of tools fail"
		f.Fix = "look at the orchestrators' logs; this account may not be allowed to publish to " + subjects.PingSubject
	default:
		if err := lookAtNeeds(ctx, d, said); err != nil {
			return err
		}
		d.fine(fmt.Sprintf("%d alive; %s answers", d.members, name))
		return nil
	}
	if d.members > 0 && fault.CodeOf(err) == fault.Permission {
		return err
	}
	d.add(f, nil)
	return nil
}

// ping asks any orchestrator who it is.
func (d *doctor) ping(ctx context.Context) (string, error) {
	sent := time.Now()
	var who struct {
		Name, Version string
		Time          time.Time
		Keys          *string
	}
	if err := d.ask(ctx, subjects.PingSubject, &who); err != nil {
		return "", err
	}
	d.keys = who.Keys
	d.sawTime("orchestrator "+who.Name, who.Time, sent, time.Now())
	return strings.TrimSpace(who.Name + " " + who.Version), nil
}

// ask asks an orchestrator something once.
func (d *doctor) ask(ctx context.Context, subject string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	return d.in.Ask(ctx, subject, out)
}

// demand looks at how much of each tool is wanted: what lies in its stream, and what orchestrators hold back.
func (d *doctor) demand(ctx context.Context) error {
	wanted, err := d.s.Requests.Demand(ctx, d.tools)
	if fault.CodeOf(err) == fault.NotReady {
		d.add(Finding{Health: Notable, Found: "not known: no orchestrator answers", Means: "what waits for workers is not known"}, nil)
		return nil
	}
	if err != nil {
		return err
	}
	d.wanted = wanted
	steps, tools := 0, 0
	for i := range wanted.Tools {
		x := &wanted.Tools[i]
		if steps += x.Steps; x.Steps > 0 {
			tools++
		}
		if x.Oldest() >= waitsLong {
			d.add(waitsForLong(x), nil)
		}
	}
	if len(wanted.Unsure) > 0 && len(d.tools) > 0 {
		d.add(Finding{
			Health: Notable, Expected: "an orchestrator that answers for each partition",
			Found: fmt.Sprintf("for the runs in %s of 64 none answered, or two did", text.Count(len(wanted.Unsure), "partition")),
			Means: "what is held back of those runs is missing from the numbers, or counted twice",
			Fix:   "look again in some seconds; orchestrators of an older version don't answer, and those under permissions that were printed before may not",
		}, nil)
	}
	d.fine(fmt.Sprintf("%s of %s, none of which waits for %v", text.Count(steps, "step"), text.Count(tools, "tool"), waitsLong))
	return nil
}

// workers looks for tools whose steps wait and that no worker asks for.
func (d *doctor) workers(ctx context.Context) error {
	if err := d.readQueues(ctx); err != nil { // as they are now
		return err
	}
	var idle []string
	alive := 0
	for _, t := range d.tools {
		info, there, err := d.queueOf(ctx, t)
		switch {
		case err != nil:
			return err
		case !there:
		case info.NumWaiting > 0 || info.NumAckPending > 0:
			alive++
		case info.NumPending > 0:
			d.add(Finding{
				About: t.Name, Health: Broken, Expected: "a worker that takes its steps",
				Found: fmt.Sprintf("%s and no worker asks for any", text.Count(int(info.NumPending)+heldBack(d.wanted, t.Name), "waiting step")),
				Means: "these steps wait, and the runs they belong to", Fix: "start a worker of " + t.Name,
			}, nil)
		default:
			idle = append(idle, t.Name)
		}
	}
	if len(idle) > 0 {
		names := strings.Join(idle[:min(len(idle), maxNamed)], ", ")
		if len(idle) > maxNamed {
			names += fmt.Sprintf(" and %d more", len(idle)-maxNamed)
		}
		d.add(Finding{
			Health: Notable, Expected: "a worker for every tool", Found: "no worker of " + names,
			Means: "plans that name them are accepted, and their steps wait", Fix: "start workers, or stepjet tools remove TOOL",
		}, nil)
	}
	workerClocks(ctx, d)
	d.fine(fmt.Sprintf("%d of %s have workers that ask for steps or are at work", alive, text.Count(len(d.tools), "tool")))
	return nil
}

// workerClocks compares, in the newest record of each ledger shard, when a worker says that it was done with when the
// record was stored, which can't be before. A clock that is behind looks like a slow write, so it is not told.
func workerClocks(ctx context.Context, d *doctor) {
	for shard := range d.shards {
		e, err := d.s.Ledger.Read(ctx, subjects.StepFilter(shard))
		if err != nil {
			continue
		}
		r := wire.ParseResult(e.Header, e.Data)
		if ahead := r.Ended.Sub(e.Time); r.Worker != "" && !r.Ended.IsZero() && ahead > 0 {
			d.skews = append(d.skews, skew{"worker " + r.Worker, ahead})
		}
	}
}

// redeliveries looks for steps that come back again and again.
func (d *doctor) redeliveries(context.Context) error {
	for _, t := range d.tools {
		info, there := d.queues[queueKey{t.Shard, subjects.Durable(t.Name)}]
		if !there || info.NumRedelivered == 0 {
			continue
		}
		f := Finding{
			About: t.Name, Health: Notable, Expected: "steps that are delivered once",
			Found: fmt.Sprintf("%d of %s were delivered before", info.NumRedelivered,
				text.Count(info.NumAckPending, "leased step")),
			Means: "workers died or were silent for longer than the lease of " + t.AckWait.String() +
				"; after five deliveries a step fails as worker_lost",
			Fix: "look at the workers' logs; stepjet dead list shows what was given up",
		}
		if info.NumRedelivered >= t.Contract.Limit {
			f.Health = Broken
			f.Means = "all slots of the tool are taken by steps whose workers died; others wait; " + f.Means
		}
		d.add(f, nil)
	}
	d.fine("none under way")
	return nil
}

func (d *doctor) deadLetters(context.Context) error {
	info := d.info(subjects.BucketStream(subjects.DeadBucket))
	if info == nil {
		return nil
	}
	if n := info.State.Msgs; n > 0 {
		d.add(Finding{
			Health: Notable, Found: fmt.Sprintf("%s, the newest of %s", text.Count(int(n), "step"),
				info.State.LastTime.UTC().Format(time.RFC3339)),
			Means: "these steps used up their attempts; removed letters count until they expire", Fix: "stepjet dead list",
		}, nil)
	}
	d.fine("none")
	return nil
}

// blobsShare of what the account may store is much for large values alone.
const blobsShare = 0.5

func (d *doctor) blobs(context.Context) error {
	var found []string
	total := uint64(0)
	for i := range d.assets {
		info := d.assets[i].info
		tenant, own := subjects.TenantOfBlobs(d.assets[i].want.Name)
		if info == nil || !own && d.assets[i].want.Name != subjects.BlobsStream("") {
			continue
		}
		text := fmt.Sprintf("%s of large values, the oldest of them kept for %v", bytesText(info.State.Bytes),
			info.Config.MaxAge)
		if own {
			text = tenant + ": " + text
		}
		total += info.State.Bytes
		found = append(found, text)
		if info.Config.MaxAge > 0 && info.Config.MaxAge < d.in.Config().Retention+kv.LongestRun {
			d.add(Finding{
				About: tenant, Health: Broken, Expected: fmt.Sprintf("kept for %v: the retention and the longest run",
					d.assets[i].want.MaxAge), Found: text,
				Means: "outcomes that are still kept lose their large values",
			}, nil)
		}
	}
	if found == nil {
		return nil
	}
	if d.storage.limit > 0 && float64(total) > blobsShare*float64(d.storage.limit) {
		d.add(Finding{
			Health: Notable, Expected: "less than half of what the account may store", Found: strings.Join(found, "; "),
			Means: "they may fill the account; then everything waits",
			Fix:   "a shorter --retention where it is set up, or a higher limit",
		}, nil)
	}
	d.fine(strings.Join(found, "; "))
	return nil
}
