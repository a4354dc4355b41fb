package kv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// Upkeep mends, while a system runs, what somebody took from under it: streams and buckets, sentinels, consumers of
// tools, and registrations that were deleted and not removed (RemoveTool leaves a mark). It takes away what a power
// cut left in a queue where no worker is given it. Its cost while all is well is a list of the streams' names, one of
// each step stream's consumers, and a message of each tool's queue.
//
// Every act is create-once or names the sequence that it replaces, so that several that mend the same do no harm; the
// caller shares the work out by partition all the same.
type Upkeep struct {
	s *Store

	mu    sync.Mutex
	known map[string]tool.Registered // as the registry last had them
	lost  map[string]tool.Registered // that vanished from it

	strange map[queueKey]bool   // consumers of no tool, at the check before
	oldest  map[queueKey]uint64 // the sequence of each tool's first message then

	lives map[int]string // of the step streams, at the look before
}

// queueKey names a consumer of a step stream.
type queueKey struct {
	shard   int
	durable string
}

// NewUpkeep makes an Upkeep. Check does nothing about tools before Watch has read the registry.
func (s *Store) NewUpkeep() *Upkeep {
	return &Upkeep{s: s, lost: map[string]tool.Registered{}, strange: map[queueKey]bool{}, oldest: map[queueKey]uint64{}, lives: map[int]string{}}
}

// Watch follows the registry until ctx ends, and reads it anew where that can't go on: to know what was there once.
func (u *Upkeep) Watch(ctx context.Context) {
	for ctx.Err() == nil {
		seen := map[string]tool.Registered{}
		ready := false
		_ = u.s.Registry.WatchTools(ctx, func(t tool.Registered, deleted bool) { // why it ended does not matter: it is watched again
			if ready {
				u.changed(t, deleted)
			} else if !deleted {
				seen[t.Name] = t
			}
		}, func() {
			ready = true
			u.read(seen)
		})
		u.s.pause(ctx, requestPause)
	}
}

// read takes the whole registry; what was known before and is not in it has vanished.
func (u *Upkeep) read(all map[string]tool.Registered) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for name, t := range u.known {
		if _, there := all[name]; !there {
			u.lost[name] = t
		}
	}
	for name := range all {
		delete(u.lost, name)
	}
	u.known = all
}

func (u *Upkeep) changed(t tool.Registered, deleted bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !deleted {
		u.known[t.Name] = t
		delete(u.lost, t.Name)
		return
	}
	if old, ok := u.known[t.Name]; ok {
		u.lost[t.Name] = old
		delete(u.known, t.Name)
	}
}

// Look returns the step streams that lost all that lay in them since the look before: they were purged, deleted, or
// went back to a time before. It costs one request for each step stream. A stream or sentinel that is gone it puts
// back. Of streams that could not be looked at, the error tells.
func (u *Upkeep) Look(ctx context.Context) (lost []int, err error) {
	u.mu.Lock()
	shards := shardsOf(u.known)
	u.mu.Unlock()
	for shard := range shards {
		life, began, bad := u.s.Queue.stepsLife(ctx, shard)
		was, known := u.lives[shard]
		if began || bad == nil && known && was != life {
			lost = append(lost, shard)
		}
		switch {
		case bad == nil:
			u.lives[shard] = life
		case !errors.Is(bad, errTooSoon): // else a later look sees it
			err = errors.Join(err, bad)
		}
	}
	return lost, err
}

// Check compares what should be there with what is, mends it, and says what it mended, in a person's words. mine tells
// which partitions are the caller's to look after: a tool belongs to the partition of its name, what all share to the
// first. What could not be mended is in the error, and is tried by the next check.
func (u *Upkeep) Check(ctx context.Context, mine func(partition int) bool) (mended []string, err error) {
	u.mu.Lock()
	known, lost, read := maps.Clone(u.known), maps.Clone(u.lost), u.known != nil
	u.mu.Unlock()
	c := &upkeep{u: u, s: u.s, mine: mine, known: known}
	if mine(0) {
		c.streams(ctx)
	}
	if read {
		c.registrations(ctx, lost)
		c.consumers(ctx)
		c.stranded(ctx)
	}
	return c.mended, errors.Join(c.failed...)
}

// upkeep is one check.
type upkeep struct {
	u      *Upkeep
	s      *Store
	mine   func(partition int) bool
	known  map[string]tool.Registered
	mended []string
	failed []error
}

// did notes what an act came to.
func (c *upkeep) did(what string, err error) {
	if errors.Is(err, errTooSoon) {
		return // by a later check
	}
	if err != nil {
		c.failed = append(c.failed, fault.Wrap(fault.As(Fault(err)).Code, err, what))
		return
	}
	c.mended = append(c.mended, what)
}

func (c *upkeep) shards() int { return shardsOf(c.known) }

// shardsOf tells how many step streams some tools have.
func shardsOf(tools map[string]tool.Registered) (n int) {
	n = 1
	for _, t := range tools {
		n = max(n, t.Shard+1)
	}
	return n
}

// streams makes what is absent of streams and buckets. A ledger shard that was deleted comes back empty.
func (c *upkeep) streams(ctx context.Context) {
	there, err := c.s.names(ctx, apiPrefix+"STREAM.NAMES", "streams")
	if err != nil {
		c.failed = append(c.failed, err)
		return
	}
	cfg := c.s.cfg
	all := []jetstream.StreamConfig{
		cfg.historyConfig(), cfg.deadConfig(), cfg.questionsConfig(), cfg.toolsConfig(), cfg.groupsConfig(), cfg.membersConfig(), cfg.blobsConfig(""),
	}
	for i := range c.s.shards {
		all = append(all, cfg.ledgerConfig(i, c.s.shards))
	}
	for _, want := range all {
		if !there[want.Name] {
			_, err := c.s.ensureStream(ctx, want)
			c.did("created the stream "+want.Name+", which was gone", err)
		}
	}
	for i := range c.shards() {
		if !there[subjects.StepsStream(i)] {
			c.did("created the stream "+subjects.StepsStream(i)+", which was gone", c.s.Queue.ensureSteps(ctx, i))
		}
	}
}

func (c *upkeep) owns(tool string) bool { return c.mine(subjects.ToolPartition(tool)) }

// registrations puts back those that vanished without a mark.
func (c *upkeep) registrations(ctx context.Context, lost map[string]tool.Registered) {
	for name, t := range lost {
		if !c.owns(name) {
			continue
		}
		restored, err := c.s.Registry.Restore(ctx, t.Definition, t.Shard, t.AckWait)
		if err != nil || restored {
			c.did("registered the tool "+name+" again, whose entry was gone", err)
		}
		if err == nil {
			c.u.mu.Lock()
			delete(c.u.lost, name)
			c.u.mu.Unlock()
		}
	}
}

// consumers makes those that tools lack, and looks after those that no tool has, once they have been there for a while.
// Those of a stream that is gone wait for a check that finds it made anew.
func (c *upkeep) consumers(ctx context.Context) {
	gone := map[int]bool{}
	owned := map[queueKey]bool{}
	strange := map[queueKey]bool{}
	there := map[queueKey]bool{}
	for shard := range c.shards() {
		names, err := c.s.names(ctx, apiPrefix+"CONSUMER.NAMES."+subjects.StepsStream(shard), "consumers")
		if err != nil {
			if apiCode(err) != codeStreamNotFound {
				c.failed = append(c.failed, err)
				return
			}
			gone[shard] = true
			continue
		}
		for name := range names {
			there[queueKey{shard, name}] = true
		}
		if !names[subjects.Keeper] {
			c.did("created the keeper of "+subjects.StepsStream(shard)+", which was not there", c.s.Queue.ensureKeeper(ctx, shard))
		}
		delete(there, queueKey{shard, subjects.Keeper})
	}
	for name, t := range c.known {
		if !t.Hosted() {
			continue
		}
		key := queueKey{t.Shard, subjects.Durable(name)}
		owned[key] = true
		if !there[key] && !gone[t.Shard] && c.owns(name) {
			c.did("created the consumer of "+name+", which was gone", c.s.Queue.ensureConsumer(ctx, t))
		}
	}
	for key := range there {
		if !owned[key] {
			strange[key] = true
			if c.u.strange[key] {
				c.adopt(ctx, key)
			}
		}
	}
	c.u.strange = strange
}

// adopt registers again the tool of a consumer that is in no registry, or takes away what a removal left.
func (c *upkeep) adopt(ctx context.Context, key queueKey) {
	name, ok := subjects.ToolOfDurable(key.durable)
	if !ok || !c.owns(name) {
		return
	}
	e, err := c.s.Registry.entry(ctx, name)
	if err != nil || e.Definition != nil {
		return // registered this moment
	}
	if e.removed {
		err := c.s.js.DeleteConsumer(ctx, subjects.StepsStream(key.shard), key.durable)
		c.did("deleted the consumer of "+name+", which was removed", err)
		return
	}
	def, err := c.s.Registry.keptDefinition(ctx, name)
	if def == nil || err != nil {
		return // a worker that hosts it registers it
	}
	restored, err := c.s.Registry.Restore(ctx, def, key.shard, 0)
	if err != nil || restored {
		c.did("registered the tool "+name+" again, whose entry was gone", err)
	}
}

// A step message is stranded where it lies in its stream, at or below the floor up to which its consumer takes
// everything for acknowledged: no worker will ever be given it, and the sweep, which sees it, believes that it is on
// its way. A power cut leaves such messages where the server had written the consumer's state to the disk and not the
// stream's, or the other way round; so may a purge by hand.

// stranded removes such messages. What they were about and is not decided yet the sweep then sends again. A tool
// costs one request as long as its oldest message is another one than at the check before.
func (c *upkeep) stranded(ctx context.Context) {
	idle := c.idle(ctx)
	for name, t := range c.known {
		if !c.owns(name) || idle[t.Shard] || !t.Hosted() {
			continue
		}
		oldest := uint64(0) // where there is none, or it isn't known
		e, err := c.s.Queue.nextStep(ctx, t, 1)
		if e != nil {
			oldest = e.Seq
		}
		key := queueKey{t.Shard, name}
		if err != nil || c.u.oldest[key] != oldest {
			c.u.oldest[key] = oldest
			continue
		}
		n, err := c.s.Queue.removeStranded(ctx, t)
		if err != nil || n > 0 {
			c.did(fmt.Sprintf("removed %d messages from the queue of %s that no worker would have been given", n, name), err)
		}
	}
}

// idle returns the step streams that hold nothing but their sentinel.
func (c *upkeep) idle(ctx context.Context) map[int]bool {
	idle := map[int]bool{}
	for shard := range c.shards() {
		info, err := c.s.streamInfo(ctx, subjects.StepsStream(shard), "")
		idle[shard] = err == nil && info.State.Messages <= 1
	}
	return idle
}
