// Package living is about runs that are changed while they go on: their plans, clients that amend them and answer their
// questions, and what has to be true of them, I11 to I15, found out from records and calls alone, without a line of plan or
// machine. It has no world of its own: package chaos runs one, and harms it.
package living

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

// Kind is what the ids of living runs begin with: several clients amend each at once, all of them answer its questions, and
// it has a condition, values, loops and a plan within a step. What its steps refer to is so simple that Check says by itself
// what each amendment does, and with what each step is called.
const Kind = "living"

// Tool returns {"v": n and all of "of" together}.
const Tool = "live"

// Clients is how many clients each living run has. The first submits and closes it.
const Clients = 3

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

// Plan is what follows from the id of such a run.
type Plan struct {
	// Body is what is submitted. Approved says that nothing of it, and of its amendments, begins before somebody has approved
	// of it.
	Body     []byte
	Approved bool
	// Changes are those of each client.
	Changes [Clients]Changes

	run   string
	loops int          // iterations of each loop
	opens [Clients]int // after how many of its changes a client answers the gate
}

// Changes are those of one client, in its order.
type Changes []Change

// meets returns before which change the gate is answered: one of those that are for what waits for it.
func (all Changes) meets(rng *rand.Rand) int {
	var at []int
	for i, c := range all {
		if len(c.Discard) == 1 && c.Discard[0][0] == 'w' {
			at = append(at, i)
		}
	}
	return at[rng.Intn(len(at))]
}

// Change is an amendment of one client. Its label says whose, and is recorded as who asked.
type Change struct {
	Scope, Label string
	Add, Discard []string
	must         bool // somebody waits for it: it is asked for until it is in force, and never rejected
}

func liveStep(id string, n int, rest string, of ...string) string {
	list, _ := json.Marshal(append([]string{}, of...))
	return fmt.Sprintf(`{"id":%q,"tool":%q,"arguments":{"n":%d,"of":%s}%s}`, id, Tool, n, list, rest)
}

func refOf(id string) string {
	if id == liveGate { // its result is the number itself
		return "$ref:" + id
	}
	return "$ref:" + id + ".v"
}

// New returns the plan of a run.
func New(rng *rand.Rand, run string) *Plan {
	l := &Plan{run: run, Approved: rng.Intn(3) == 0, loops: 2 + rng.Intn(3)}
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
		fmt.Sprintf(`{"id":%q,"tool":%q,"arguments":{"n":"$index","of":[]},"repeat":{"until":"$last.v >= %d","max":10}}`, livePoll, Tool, l.loops-1),
		fmt.Sprintf(`{"id":%q,"plan":{"open":true,"open_for":"30m","steps":[%s,%s],"output":{"v":"$ref:y.v"}},"arguments":{"v":"$ref:a.v"}}`,
			liveSub, liveStep("x", n(), "", "$input.v"), liveStep("y", n(), "", "$ref:x.v")),
		liveStep("w", n(), "", refOf(liveGate)),
	}
	for i := range 2 * Clients {
		steps = append(steps, liveStep(fmt.Sprint("w", i), n(), "", refOf(liveGate)))
	}
	approval := ""
	if l.Approved {
		approval = `"approval":true,`
	}
	l.Body = fmt.Appendf(nil, `{%s"open":true,"open_for":"30m","steps":[%s]}`, approval, strings.Join(steps, ","))
	for k := range Clients {
		// No two clients ask for the same: that would be one request, whoever asks.
		l.Changes[k] = newChanges(rng, k, func() int { return 50*(k+1) + n() })
		l.opens[k] = len(l.Changes[k])
	}
	early := rng.Intn(Clients) // the others answer it once they are through, if it was not answered
	l.opens[early] = l.Changes[early].meets(rng)
	return l
}

// newChanges are those of one client, in an order of its own. The last says that it is done.
func newChanges(rng *rand.Rand, k int, n func() int) Changes {
	id := func(of string) string { return fmt.Sprint(of, k) }
	other := fmt.Sprint("w", Clients+k)
	all := []Change{
		{Scope: subjects.RootScope, Add: []string{liveStep(id("s"), n(), "", refOf(liveFirst))}},
		{Scope: subjects.RootScope, Discard: []string{id("w")}, Add: []string{liveStep(id("w"), n(), "", refOf(liveGate), refOf(liveFirst))}},
		{Scope: subjects.RootScope, Discard: []string{"w"}, Add: []string{liveStep("w", n(), "", refOf(liveGate))}},
		{Scope: subjects.RootScope, Discard: []string{other}},
		{Scope: subjects.RootScope, Add: []string{liveStep(id("p"), n(), `,"approval":true`, refOf(liveFirst))}},
		{Scope: subjects.RootScope, Add: []string{liveStep(liveBoth, n(), "", refOf(liveFirst))}},
		{Scope: liveSub, Add: []string{liveStep(id("z"), n(), "", "$ref:x.v")}},
		{Scope: subjects.RootScope, Add: []string{liveStep(id("out"), n(), "", refOf(liveGate))}},
		{Scope: subjects.RootScope, Discard: []string{id("out")}}, // which may be out, or over
	}
	order := rng.Perm(len(all))
	adds, drops := slices.Index(order, len(all)-2), slices.Index(order, len(all)-1)
	if drops < adds { // what is discarded was added before
		order[adds], order[drops] = order[drops], order[adds]
	}
	var list []Change
	for i, at := range order {
		c := all[at]
		c.Label = fmt.Sprintf("c%d/%d", k, i)
		list = append(list, c)
	}
	return append(list, Change{Scope: subjects.RootScope, Label: fmt.Sprintf("c%d/done", k), must: true,
		Add: []string{fmt.Sprintf(`{"id":%q,"value":true}`, id("done"))}})
}

// closes is how the first client ends what is open, once all are done.
func (l *Plan) closes() []Change {
	return []Change{
		{Scope: liveSub, Label: "c0/close sub", must: true},
		{Scope: subjects.RootScope, Label: "c0/close", must: true},
	}
}

// Call is what Tool does. One call in sixteen fails the first time.
func (l *Plan) Call(step string, args []byte, attempt int) reference.Reply {
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
