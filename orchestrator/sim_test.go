//go:build !race

package orchestrator

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	simSeed  = flag.Int64("seed", -1, "simulate the world of this one seed and print all that happens in it")
	simSeeds = flag.Int("seeds", 0, "simulate so many worlds; 0 for what fits into a test run")
	simFrom  = flag.Int("from", 0, "the first seed")
)

// simulate lets one world live.
func simulate(seed int64, b bug, tracing bool) (*world, error) {
	w := newWorld(seed, b, tracing)
	return w, w.live()
}

// report lets a world that went wrong live again, and tells what happened in it.
func report(seed int64, b bug) string {
	w, err := simulate(seed, b, true)
	const most = 400
	lines := w.trace
	if len(lines) > most && *simSeed < 0 {
		lines = append([]string{fmt.Sprintf("… %d lines; all with -seed %d", len(lines)-most, seed)}, lines[len(lines)-most:]...)
	}
	return fmt.Sprintf("seed %d: %v\n%s\nseed %d: %v", seed, err, strings.Join(lines, "\n"), seed, err)
}

// TestSimulatedWorlds runs the real loop against random worlds that fail wherever they can: see world.
func TestSimulatedWorlds(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	if *simSeed >= 0 {
		t.Log(report(*simSeed, none))
		return
	}
	n := 10_000
	if *simSeeds > 0 {
		n = *simSeeds
	}
	total, failed := simulateAll(*simFrom, n, func(int64) bool { return true }, none)
	if len(failed) > 0 {
		t.Fatalf("%d of %d worlds went wrong: %v\n%s", len(failed), n, failed[:min(len(failed), 20)], report(failed[0], none))
	}
	t.Logf("%d worlds\n%s", n, total)
	if n < 10_000 {
		return // too few to expect everything
	}
	var never []string
	for _, f := range simFaults {
		if total["fault: "+f.name] == 0 {
			never = append(never, f.name)
		}
	}
	for _, what := range sometimes {
		if total[what] == 0 {
			never = append(never, what)
		}
	}
	require.Empty(t, never, "what never happened was not tried")
}

// simulateAll lets worlds live side by side, those of some seeds, and gives what happened in all and which went wrong, lowest
// first.
// tooLong is how long no world takes: one that stands in one place would let all others wait without a word.
const tooLong = 2 * time.Minute

func simulateAll(from, n int, such func(seed int64) bool, b bug) (stats, []int64) {
	total := stats{}
	var failed []int64
	var mu sync.Mutex
	var next atomic.Int64
	next.Store(int64(from))
	began := time.Now()
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for {
				seed := next.Add(1) - 1
				if seed >= int64(from+n) {
					return
				}
				if !such(seed) {
					continue
				}
				long := time.AfterFunc(tooLong, func() { fmt.Fprintf(os.Stderr, "%d: it goes on after %v\n", seed, tooLong) })
				w, err := simulate(seed, b, false)
				long.Stop()
				mu.Lock()
				total.add(w.stats)
				if err != nil {
					if b == none {
						fmt.Fprintf(os.Stderr, "%d: %.160s\n", seed, strings.ReplaceAll(err.Error(), "\n", " "))
					}
					failed = append(failed, seed)
				}
				if total["world"]%50_000 == 0 {
					fmt.Fprintf(os.Stderr, "%d worlds, %d wrong, %v\n", total["world"], len(failed), time.Since(began).Round(time.Second))
				}
				stop := len(failed) >= 20
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	all.Wait()
	slices.Sort(failed)
	return total, failed
}

// sometimes are conditions without which a simulation would prove little.
var sometimes = []string{
	"lost request", "lost answer", "crash before a request", "crash after a request", "a cursor lagged", "refused by a full store",
	"own record found after a lost answer", "dispatch by the sweep", "dispatch refused by its message id", "redelivery", "execution timeout",
	"worker died before the effect", "worker died after the effect", "worker died after the record", "worker died after the ack",
	"late write refused", "late record of a purged run", "a step that nobody survived", "a worker heard of a cancel", "result in a blob",
	"a cancel was told that it counts", "a cancel was told that another stands", "cancel that came too late",
	"an attempt claimed by a worker that was lost", "an attempt claimed for another message", "an attempt whose claim outlived its worker", "claim of a run that was over refused",
	"a sleeping orchestrator was taken for dead", "an orchestrator slept before a start", "finished by two owners", "finished again after it was purged", "effect after its run was purged",
	"a plan submitted while its run goes on", "a plan submitted again while its workers slept", "stop record",
	"run succeeded", "run partial", "run failed", "run cancelled", "run expired", "run rejected",
	"a rejection that gave way to a later outcome", "a rejection given again", "judged again after its rejection", "announced again after a later plan came",
	"a leased step was left to its worker", "a redelivered step of a run that was over",
	"an item taken over", "a forged record", "a forged record of another version decided an attempt",
	"two loops of a process have runs", "a loop was told of room", "a loop was told of room in bytes",
	"a run that started before its tenant was declared", "a tenant was declared before the start of a run that was submitted before",
	"a need recorded", "a run left alone for what it needs", "a run left alone for its conditions",
	"crash between an evaluation and its record",
	"an amendment of a plan within an approved one waits", "an amendment of a plan within an approved one in force", "an amendment of a plan within an approved one was asked for: approve, in force",
	"an amendment of a plan within an approved one was asked for: reject, rejected", "an amendment of a plan within another was answered",
	"a step of a plan within another was discarded before it was ready", "dispatch of what an amendment of a plan within an approved one has, or that plan itself",
	"told by a record: if", "told by a record: value", "told by a record: state", "told by a record that a result does not fit the state", "told by a record: until", "an iteration after another", "dispatch in language 2", "step not_taken in language 2", "step skipped in language 2",
	"a question", "a void answer", "ended while somebody was asked", "dispatch that a person approved of, or need not",
	"answer approve", "answer reject", "answer expire", "answer to what a step asks", "answer in the place of a tool", "answer with other arguments",
	"a plan was asked for: approve", "a plan was asked for: reject", "a plan was asked for: expire", "an item was asked for", "all items were asked for",
	"an answer came before its time was recorded to be over", "there was nothing to show",
	"a contract's condition: approval true, error true", "a contract's condition: approval false, error false",
	"a plan in parts", "a run whose plan came in parts compared with the whole", "an amendment by a rival", "a step was discarded before it was ready",
	"an amendment was read by another owner, or again", "an amendment was refused: conflict", "an amendment was refused: overtaken",
	"a plan in parts that is approved of", "an amendment of an approved plan waits", "an amendment of an approved plan in force",
	"an amendment of an approved plan was asked for: approve, in force", "an amendment of an approved plan was asked for: reject, rejected",
	"an amendment of an approved plan was asked for: expire, in force", "an amendment of an approved plan was asked for: expire, rejected",
	"a plan in the state dialect", "a plan in the state dialect compared with the tools", "a result that does not fit the state",
	"a run with plans within it", "a run with plans within it compared with the tools",
	"a planner was asked", "a round was decided", "a round after another", "a round was made by two", "a part was stored", "a part was there already", "an agent compared with its script", "a word was heard", "an agent that was told something came to its end",
	"a step took longer than its timeout", "the same, of one that had waited for something", "an attempt was sent that has a timeout",
	"a turn of a run whose results were let go of", "a result in a document compared with its record",
	"a turn while what an agent's round refers to was read again",
	"an owner began to read at a mark", "an owner skipped what is over", "what was skipped was looked for",
	"compared with the records", "compared with the tools", "a shared shard was purged", "a run was purged by its name",
}

// TestASeedIsReplayed: the same seed, the same world, event by event.
func TestASeedIsReplayed(t *testing.T) {
	t.Parallel()
	for seed := range int64(50) {
		a, err := simulate(seed, none, true)
		b, again := simulate(seed, none, true)
		require.Equal(t, a.trace, b.trace, "seed %d", seed)
		require.Equal(t, err == nil, again == nil)
	}
}

// caughtBy is a world that shows each bug. It lives first, for some bugs take thousands to be seen. Once it has become another
// world, as the code draws other numbers, the bug is looked for from the first one on, and the log says what shows it now.
const caughtBy = "testdata/caught.txt"

// TestSeededBugsAreCaught proves that the simulation is good for something.
func TestSeededBugsAreCaught(t *testing.T) {
	const most = 5000
	known := map[string]int64{}
	lines, err := os.ReadFile(caughtBy)
	require.NoError(t, err)
	for line := range strings.Lines(string(lines)) {
		seed, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		known[name], err = strconv.ParseInt(seed, 10, 64)
		require.NoError(t, err, line)
	}
	shown := make([]int64, lastBug+1) // each by its own test
	t.Run("bugs", func(t *testing.T) {
		for b := unknownIsDecided; b <= lastBug; b++ {
			name := bugs[b]
			seed, is := known[name]
			shown[b] = seed
			t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
				t.Parallel()
				if is {
					if _, err := simulate(seed, b, false); err != nil {
						t.Logf("caught by seed %d: %.200v", seed, err)
						return
					}
				}
				for seed := range int64(most) {
					if _, err := simulate(seed, b, false); err != nil {
						t.Logf("caught by seed %d now, and by no earlier one; -update notes it: %.200v", seed, err)
						shown[b] = seed
						return
					}
				}
				require.Fail(t, "not caught", "%s: in %d worlds", name, most)
			})
		}
	})
	if *update && !t.Failed() {
		var all strings.Builder
		for b := unknownIsDecided; b <= lastBug; b++ {
			fmt.Fprintln(&all, shown[b], bugs[b])
		}
		require.NoError(t, os.WriteFile(caughtBy, []byte(all.String()), 0o644))
	}
}
