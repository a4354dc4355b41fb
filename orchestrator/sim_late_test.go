package orchestrator

import (
	"context"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// quietWorld is one in which nothing goes wrong by itself, and in which no sweep finds what was forgotten. Each of its two
// owners takes itself for the only one.
func quietWorld(seed int64) *world {
	w := &world{Rand: rand.New(rand.NewSource(seed)), seed: seed, tracing: true, stats: stats{}, buckets: map[string]*stream{}, blobs: map[string][]byte{}}
	w.truths, w.steps = newTruths(w), newQueue(w)
	w.knobs = knobs{jobs: 3, loops: 1, reads: readsAtMost, sweep: time.Hour, lag: 10 * time.Millisecond, bounds: shipped, tools: map[string]tool.Registered{}}
	w.shards = append(w.shards, newStream(w, subjects.LedgerStream(0)))
	for _, bucket := range []string{subjects.HistoryBucket, subjects.DeadBucket} {
		w.buckets[subjects.BucketStream(bucket)] = newStream(w, bucket)
	}
	for _, name := range simTools {
		w.register(name, 1)
	}
	w.registerAgents()
	w.hands = append(w.hands, w.newHand("worker0", 0))
	w.questions.entries = map[string]simQuestion{}
	for i := range 2 {
		o := w.newOrch(fmt.Sprint("owner", i), 0)
		w.owners = append(w.owners, o)
		o.tell([]string{o.name})
	}
	return w
}

// lateJobs are those of an owner that stands still beside its loop once there is something to keep it.
type lateJobs struct {
	*simJobs
	keeps func() bool
	kept  []func(context.Context)
}

func (j *lateJobs) add(do func(context.Context)) {
	if j.keeps() {
		j.kept = append(j.kept, do)
		return
	}
	j.simJobs.add(do)
}

// While an owner still finds out what a planner's answer comes to, another records that round, runs it and has the planner
// asked again; then it dies. The first goes on with the planner's next answer, by itself: no sweep is there to find it, and
// nothing comes of the ledger any more that would.
func TestAnOwnerThatIsLateGoesOnWithTheNextAnswer(t *testing.T) {
	t.Parallel()
	w := quietWorld(26)
	require.True(t, w.withAgents() && !w.approvesRounds() && !w.patient())
	late, other := w.owners[0], w.owners[1]
	id := subjects.NewRun("t", "agent")
	of := func() *run { return late.loops.of(id.Partition()).runs.byID[id] }
	freed := false
	jobs := &lateJobs{simJobs: late.jobs}
	jobs.keeps = func() bool {
		r := of()
		return !freed && (len(jobs.kept) > 0 || r != nil && r.agents != nil && r.agents.deciding.Len() > 0)
	}
	for _, l := range late.loops.all {
		l.jobs = jobs
	}
	body := fmt.Appendf(nil, `{"steps":[{"id":"a","tool":%q,"arguments":{"n":1}}]}`, simAgent)
	w.truths.agents[plan.Digest(body)] = true
	w.at(time.Second, func() { w.submit(id, body, nil) })
	stands := func(what string) bool {
		for subject := range w.shards[0].bySubj {
			if strings.Contains(subject, what) {
				return true
			}
		}
		return false
	}
	for !stands(".a/=1/=plan.1") {
		require.NotEmpty(t, w.events, strings.Join(w.trace, "\n"))
		w.run(w.events[0].at)
		require.NoError(t, w.bad)
	}
	require.True(t, stands(".round.a/=0"))
	require.False(t, stands(".round.a/=1"), "the planner's answer was stored this moment")
	other.died = nil
	other.kill("before it has heard of the answer")
	w.run(w.now + time.Second)
	require.NotEmpty(t, jobs.kept, "it is late")
	require.False(t, stands(".round.a/=1"))
	freed = true
	late.after(0, func() {
		for _, do := range jobs.kept {
			jobs.simJobs.add(do)
		}
	})
	w.run(w.now + time.Second) // the run is not purged before
	require.NoError(t, w.bad)
	require.True(t, stands(".round.a/=1"), strings.Join(w.trace, "\n"))
}
