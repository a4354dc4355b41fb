package kv_test

import (
	"context"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

func everything(int) bool { return true }

// keeper is an account with an Upkeep that knows its tools.
type keeper struct {
	*kv.Store
	t  *testing.T
	js jetstream.JetStream
	up *kv.Upkeep
}

func keep(t *testing.T, cfg kv.Config) *keeper {
	t.Helper()
	return keepOn(t, setup(t, cfg))
}

// until checks until it says that it mended something, and returns all that it said.
func (k *keeper) until(mended string) {
	k.t.Helper()
	var said []string
	require.Eventually(k.t, func() bool {
		now, _ := k.up.Check(ctx(k.t), everything)
		said = append(said, now...)
		for _, s := range said {
			if s == mended {
				return true
			}
		}
		return false
	}, 2*time.Minute, 10*time.Millisecond, "%q", mended)
}

// well says that a check finds nothing to do, after one that may have been needed.
func (k *keeper) well() {
	k.t.Helper()
	require.Eventually(k.t, func() bool {
		mended, err := k.up.Check(ctx(k.t), everything)
		return err == nil && len(mended) == 0
	}, 2*time.Minute, 10*time.Millisecond)
}

func TestUpkeepMendsWhatWasTaken(t *testing.T) {
	t.Parallel()
	k := keep(t, kv.Config{Shards: 2})
	echo := register(t, k.Store, "echo", 8)
	k.well()
	before := streams(t, k.js)
	require.NoError(t, k.js.DeleteConsumer(ctx(t), "STEPS_0", "echo"))
	k.until("created the consumer of echo, which was gone")
	require.Equal(t, 8, consumer(t, k.Store, echo).Config.MaxAckPending)

	require.NoError(t, k.js.DeleteStream(ctx(t), "STEPS_0"))
	k.until("created the stream STEPS_0, which was gone")
	k.well()
	consumer(t, k.Store, echo)
	_, err := k.Ledger.Read(ctx(t), subjects.Sentinel(0))
	require.NoError(t, err)

	for _, name := range []string{"KV_history", "KV_dead", "KV_questions", "KV_members", "OBJ_blobs", "KV_runs_1"} {
		require.NoError(t, k.js.DeleteStream(ctx(t), name))
	}
	require.Eventually(t, func() bool {
		k.well()
		return reflect.DeepEqual(before, streams(t, k.js))
	}, 2*time.Minute, 50*time.Millisecond)
}

// Whoever looks after a tool leaves its stream to the one that looks after streams, who says so: it would create it by
// the way, with the tool's consumer, and only that would be told.
func TestUpkeepOfAToolCreatesNoStream(t *testing.T) {
	t.Parallel()
	k := keep(t, kv.Config{})
	register(t, k.Store, "echo", 8)
	k.well()
	require.NotZero(t, subjects.ToolPartition("echo"))
	require.NoError(t, k.js.DeleteStream(ctx(t), "STEPS_0"))
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		mended, err := k.up.Check(ctx(t), func(partition int) bool { return partition != 0 })
		require.NoError(t, err)
		require.Empty(t, mended)
	}
	require.NotContains(t, streams(t, k.js), "STEPS_0")
	k.until("created the stream STEPS_0, which was gone")
	k.well()
}

// A look finds out that a step stream lost what lay in it, also where somebody has put a sentinel there again since,
// and not where a sentinel was renewed.
func TestALookFindsLostSteps(t *testing.T) {
	t.Parallel()
	k := keep(t, kv.Config{})
	echo := register(t, k.Store, "echo", 8)
	look := func() []int {
		lost, err := k.up.Look(ctx(t))
		require.NoError(t, err)
		return lost
	}
	sentinel := func() uint64 {
		e, err := k.Ledger.Read(ctx(t), subjects.Sentinel(0))
		require.NoError(t, err)
		return e.Seq
	}
	require.Empty(t, look())
	require.Empty(t, look())

	before := sentinel()
	for i := range 40 { // a part of a block
		dispatch(t, k.Store, kv.Dispatch{Attempt: attempt(echo.Name, strconv.Itoa(i)), Body: make([]byte, 60<<10)})
	}
	require.Eventually(t, func() bool { return sentinel() != before }, 2*time.Minute, 5*time.Millisecond, "no other sentinel took its place")
	require.Empty(t, look())

	steps, err := k.js.Stream(ctx(t), "STEPS_0")
	require.NoError(t, err)
	require.NoError(t, steps.Purge(ctx(t)))
	require.Equal(t, []int{0}, look())
	sentinel()
	require.Empty(t, look())

	require.NoError(t, steps.Purge(ctx(t)))
	again, err := kv.Setup(ctx(t), k.Conn(), kv.Config{})
	require.NoError(t, err)
	again.Close()
	require.Equal(t, []int{0}, look())
	require.Empty(t, look())

	require.NoError(t, k.js.DeleteStream(ctx(t), "STEPS_0"))
	var lost []int
	require.Eventually(t, func() bool { lost = look(); return len(lost) > 0 }, 2*time.Minute, 50*time.Millisecond)
	require.Equal(t, []int{0}, lost)
	sentinel()
	require.Empty(t, look())
}

func TestUpkeepRegistersAgainWhatWasDeleted(t *testing.T) {
	t.Parallel()
	k := keep(t, kv.Config{})
	register(t, k.Store, "echo", 8)
	override(t, k.Store, "echo", `{"x-orchestration": {"max_concurrency": 3}}`)
	k.well()
	bucket, err := k.js.KeyValue(ctx(t), "tools")
	require.NoError(t, err)
	require.NoError(t, bucket.Delete(ctx(t), "echo"))
	k.until("registered the tool echo again, whose entry was gone")
	back, err := k.Registry.Tool(ctx(t), "echo")
	require.NoError(t, err)
	require.Equal(t, 3, back.Contract.Limit, "under the operator's override")
	k.well()

	// The whole registry, with the definitions that were kept.
	require.NoError(t, k.js.DeleteStream(ctx(t), "KV_tools"))
	k.until("registered the tool echo again, whose entry was gone")
	again, err := k.Registry.Tool(ctx(t), "echo")
	require.NoError(t, err)
	require.Equal(t, back.Digest, again.Digest)
	_, err = k.Registry.Definition(ctx(t), back.Digest)
	require.NoError(t, err)
}

func TestUpkeepRegistersWhatItNeverSaw(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	echo := register(t, s, "echo", 8)
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	require.NoError(t, emptied(t, js, "echo"))
	k := keepOn(t, s) // started after the loss: the consumer and the kept definition tell
	k.until("registered the tool echo again, whose entry was gone")
	back, err := s.Registry.Tool(ctx(t), "echo")
	require.NoError(t, err)
	require.Equal(t, echo.Digest, back.Digest)
}

func keepOn(t *testing.T, s *kv.Store) *keeper {
	t.Helper()
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	k := &keeper{t: t, Store: s, js: js, up: s.NewUpkeep()}
	work, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.up.Watch(work)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return k
}

func TestUpkeepLeavesWhatWasRemoved(t *testing.T) {
	t.Parallel()
	k := keep(t, kv.Config{})
	register(t, k.Store, "echo", 8)
	k.well()
	_, err := k.Registry.RemoveTool(ctx(t), "echo", false)
	require.NoError(t, err)
	k.well()
	_, err = k.Registry.Tool(ctx(t), "echo")
	require.Equal(t, fault.NotFound, fault.CodeOf(err))

	_, err = k.js.CreateConsumer(ctx(t), "STEPS_0", jetstream.ConsumerConfig{Durable: "echo", FilterSubject: subjects.ToolFilter("echo", 0), AckPolicy: jetstream.AckExplicitPolicy})
	require.NoError(t, err)
	k.until("deleted the consumer of echo, which was removed")
}

func TestUpkeepDoesOnlyItsOwnShare(t *testing.T) {
	t.Parallel()
	k := keep(t, kv.Config{})
	register(t, k.Store, "echo", 8)
	require.NoError(t, k.js.DeleteConsumer(ctx(t), "STEPS_0", "echo"))
	k.until("created the consumer of echo, which was gone") // so it knows the tool
	require.NoError(t, k.js.DeleteConsumer(ctx(t), "STEPS_0", "echo"))
	mine := subjects.Partition("echo")
	mended, err := k.up.Check(ctx(t), func(p int) bool { return p != mine })
	require.NoError(t, err)
	require.Empty(t, mended)
	mended, err = k.up.Check(ctx(t), func(p int) bool { return p == mine })
	require.NoError(t, err)
	require.Equal(t, []string{"created the consumer of echo, which was gone"}, mended)
}

// A tool whose entry was lost gets its place back, wherever room is now.
func TestALostEntryKeepsItsShard(t *testing.T) {
	t.Parallel()
	k := keep(t, kv.Config{})
	def := definition("echo", 4)
	first := register(t, k.Store, "first", 1)
	parsed, err := k.Registry.Definition(ctx(t), first.Digest)
	require.NoError(t, err)
	require.NotNil(t, parsed)
	echo, err := k.Registry.Register(ctx(t), def)
	require.NoError(t, err)
	restored, err := k.Registry.Restore(ctx(t), echo.Definition, 1, 0)
	require.NoError(t, err)
	require.False(t, restored, "it is there")
	require.NoError(t, emptied(t, k.js, "echo"))
	require.NoError(t, k.js.DeleteConsumer(ctx(t), "STEPS_0", "echo"))
	restored, err = k.Registry.Restore(ctx(t), echo.Definition, 1, time.Minute)
	require.NoError(t, err)
	require.True(t, restored)
	back, err := k.Registry.Tool(ctx(t), "echo")
	require.NoError(t, err)
	require.Equal(t, 1, back.Shard)
	require.Equal(t, time.Minute, back.AckWait)
	require.NoError(t, emptied(t, k.js, "echo"))
	again, err := k.Registry.Register(ctx(t), def)
	require.NoError(t, err)
	require.Equal(t, 1, again.Shard, "where its consumer is")
}

// A purge by hand makes the server forget a lease (TestTakingBackALeasedStepForgetsNoOtherLease has the details). The
// step still lies in the stream, and nobody is given it.
func TestUpkeepRemovesWhatNoWorkerIsGiven(t *testing.T) {
	t.Parallel()
	k := keep(t, kv.Config{AckWait: 4 * time.Second})
	tool := register(t, k.Store, "tool", 10)
	k.well()
	_, got := pull(t, k.Store, tool, 10)
	of := func(run string) subjects.Attempt {
		return subjects.Attempt{Run: subjects.NewRun("t", run), Generation: 1, Tool: "tool", Step: "a", Number: 1}
	}
	leased := map[string]*kv.Delivery{}
	for _, run := range []string{"forgotten", "purged", "done", "alive"} {
		dispatch(t, k.Store, kv.Dispatch{Attempt: of(run)})
		leased[run] = receive(t, got, run)
	}
	require.NoError(t, k.Ledger.PurgeSubject(ctx(t), subjects.Step(of("purged"), tool.Shard)))
	require.NoError(t, leased["done"].Ack())
	k.until("removed 1 messages from the queue of tool that no worker would have been given")
	_, err := k.Ledger.Read(ctx(t), subjects.Step(of("forgotten"), tool.Shard))
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
	require.Equal(t, subjects.Step(of("alive"), tool.Shard), receive(t, got, "a lease that ran out").Subject)
	k.well()
	_, err = k.Ledger.Read(ctx(t), subjects.Step(of("alive"), tool.Shard))
	require.NoError(t, err, "what is leased stays")
}
