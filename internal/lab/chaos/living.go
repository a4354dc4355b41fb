package chaos

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/subjects"
)

// kindLiving are runs that are changed while they go on: several clients amend each at once, all of them answer its
// questions, and it has a condition, values, loops and a plan within a step. What its steps refer to is so simple that
// the checker says by itself what each amendment does, and with what each step is called.
const kindLiving = "living"

// liveTool returns {"v": n and all of "of" together}.
const liveTool = "live"

// livingClients is how many clients each living run has. The first submits and closes it.
const livingClients = 3

// The steps of every living run that the checker has to know by name.
const (
	liveFirst = "a"    // which everything else refers to
	liveGate  = "gate" // a question; what waits for its answer is discarded and written again
	livePay   = "pay"  // a person approves of it
	liveSub   = "sub"  // has a plan of its own that is open too
	liveLoop  = "loop" // of two steps
	livePoll  = "poll" // of one call
	liveBoth  = "u"    // which every client adds, each with another content
)

// living is what follows from the id of such a run.
type living struct {
	run      string
	approved bool // nothing of the plan, and of its amendments, begins before somebody has approved of it
	loops    int  // iterations of each loop
	plan     []byte
	changes  [livingClients]liveChanges
	opens    [livingClients]int // after how many of its changes a client answers the gate
}

// liveChanges are those of one client.
type liveChanges []liveChange

// meets returns before which change the gate is answered: one of those that are for what waits for it.
func (all liveChanges) meets(rng *rand.Rand) int {
	var at []int
	for i, c := range all {
		if len(c.discard) == 1 && c.discard[0][0] == 'w' {
			at = append(at, i)
		}
	}
	return at[rng.Intn(len(at))]
}

// liveChange is an amendment of one client. Its label says whose, and is recorded as who asked.
type liveChange struct {
	scope, label string
	add, discard []string
	must         bool // somebody waits for it: it is asked for until it is in force, and never rejected
}

func liveStep(id string, n int, rest string, of ...string) string {
	list, _ := json.Marshal(append([]string{}, of...))
	return fmt.Sprintf(`{"id":%q,"tool":%q,"arguments":{"n":%d,"of":%s}%s}`, id, liveTool, n, list, rest)
}

func refOf(id string) string {
	if id == liveGate { // its result is the number itself
		return "$ref:" + id
	}
	return "$ref:" + id + ".v"
}

func newLiving(rng *rand.Rand, run string) *living {
	l := &living{run: run, approved: rng.Intn(3) == 0, loops: 2 + rng.Intn(3)}
	n := func() int { return 1 + rng.Intn(40) }
	first := n()
	every := []string{"", `,"every":"30ms"`}[rng.Intn(2)]
	steps := []string{
		liveStep(liveFirst, first, ""),
		`{"id":"val","value":{"$calc":"$ref:a.v * 2"}}`,
		liveStep("cond", n(), fmt.Sprintf(`,"if":"$ref:val > %d"`, 2*first+rng.Intn(3)-1), refOf(liveFirst)),
		liveStep(livePay, n(), `,"approval":{"ask":"Pay ${ref:a.v}?"}`, refOf(liveFirst)),
		fmt.Sprintf(`{"id":%q,"tool":"ask","arguments":{"question":"Shall %s go on?"}}`, liveGate, run),
		fmt.Sprintf(`{"id":%q,"plan":{"steps":[%s,%s],"output":{"v":"$ref:t.v"}},"arguments":{"i":"$index"},"repeat":{"until":"$index >= %d","max":10%s}}`,
			liveLoop, liveStep("s", n(), "", "$input.i"), liveStep("t", n(), "", "$ref:s.v"), l.loops-1, every),
		fmt.Sprintf(`{"id":%q,"tool":%q,"arguments":{"n":"$index","of":[]},"repeat":{"until":"$last.v >= %d","max":10}}`, livePoll, liveTool, l.loops-1),
		fmt.Sprintf(`{"id":%q,"plan":{"open":true,"open_for":"30m","steps":[%s,%s],"output":{"v":"$ref:y.v"}},"arguments":{"v":"$ref:a.v"}}`,
			liveSub, liveStep("x", n(), "", "$input.v"), liveStep("y", n(), "", "$ref:x.v")),
		liveStep("w", n(), "", refOf(liveGate)),
	}
	for i := range 2 * livingClients {
		steps = append(steps, liveStep(fmt.Sprint("w", i), n(), "", refOf(liveGate)))
	}
	approval := ""
	if l.approved {
		approval = `"approval":true,`
	}
	l.plan = fmt.Appendf(nil, `{%s"open":true,"open_for":"30m","steps":[%s]}`, approval, strings.Join(steps, ","))
	for k := range livingClients {
		// No two clients ask for the same: that would be one request, whoever asks.
		l.changes[k] = newLiveChanges(rng, k, func() int { return 50*(k+1) + n() })
		l.opens[k] = len(l.changes[k])
	}
	early := rng.Intn(livingClients) // the others answer it once they are through, if it was not answered
	l.opens[early] = l.changes[early].meets(rng)
	return l
}

// newLiveChanges are those of one client, in an order of its own. The last says that it is done.
func newLiveChanges(rng *rand.Rand, k int, n func() int) liveChanges {
	id := func(of string) string { return fmt.Sprint(of, k) }
	other := fmt.Sprint("w", livingClients+k)
	all := []liveChange{
		{scope: subjects.RootScope, add: []string{liveStep(id("s"), n(), "", refOf(liveFirst))}},
		{scope: subjects.RootScope, discard: []string{id("w")}, add: []string{liveStep(id("w"), n(), "", refOf(liveGate), refOf(liveFirst))}},
		{scope: subjects.RootScope, discard: []string{"w"}, add: []string{liveStep("w", n(), "", refOf(liveGate))}},
		{scope: subjects.RootScope, discard: []string{other}},
		{scope: subjects.RootScope, add: []string{liveStep(id("p"), n(), `,"approval":true`, refOf(liveFirst))}},
		{scope: subjects.RootScope, add: []string{liveStep(liveBoth, n(), "", refOf(liveFirst))}},
		{scope: liveSub, add: []string{liveStep(id("z"), n(), "", "$ref:x.v")}},
		{scope: subjects.RootScope, add: []string{liveStep(id("out"), n(), "", refOf(liveGate))}},
		{scope: subjects.RootScope, discard: []string{id("out")}}, // which may be out, or over
	}
	order := rng.Perm(len(all))
	adds, drops := slices.Index(order, len(all)-2), slices.Index(order, len(all)-1)
	if drops < adds { // what is discarded was added before
		order[adds], order[drops] = order[drops], order[adds]
	}
	var list []liveChange
	for i, at := range order {
		c := all[at]
		c.label = fmt.Sprintf("c%d/%d", k, i)
		list = append(list, c)
	}
	return append(list, liveChange{scope: subjects.RootScope, label: fmt.Sprintf("c%d/done", k), must: true,
		add: []string{fmt.Sprintf(`{"id":%q,"value":true}`, id("done"))}})
}

// closes is how the first client ends what is open, once all are done.
func (l *living) closes() []liveChange {
	return []liveChange{
		{scope: liveSub, label: "c0/close sub", must: true},
		{scope: subjects.RootScope, label: "c0/close", must: true},
	}
}

// Call is what the tool of living runs does. One call in sixteen fails the first time.
func (l *living) Call(step string, args []byte, attempt int) reference.Reply {
	if attempt == 1 && lot(l.run, step)%16 == 0 {
		return reference.Reply{Err: &reference.Err{Code: string(fault.ToolFailed), Message: "not yet", Retryable: true}}
	}
	v, err := liveSum(args)
	if err != nil {
		return reference.Reply{Err: &reference.Err{Code: string(fault.ToolTerminal), Message: err.Error()}}
	}
	return reference.Reply{Body: fmt.Appendf(nil, `{"v":%d}`, v)}
}

// liveSum adds up what the tool is called with.
func liveSum(args []byte) (int, error) {
	var in struct {
		N  int   `json:"n"`
		Of []int `json:"of"`
	}
	err := json.Unmarshal(args, &in)
	for _, v := range in.Of {
		in.N += v
	}
	return in.N, err
}

// lot is a number that follows from words.
func lot(words ...any) int {
	h := fnv.New32a()
	fmt.Fprintln(h, words...)
	return int(h.Sum32() >> 1)
}
