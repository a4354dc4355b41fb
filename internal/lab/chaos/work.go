package chaos

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand"
	"strings"
	"sync"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/living"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/tool"
)

// The kinds of runs; a run id is "<kind>-<anything>".
const (
	kindRandom = "random" // what it comes to is known beforehand
	kindStop   = "stop"   // it may fail fast, so the order of events has a say
	kindCancel = "cancel" // its agent cancels it at some moment
	kindOnce   = "once"   // of tools that may run at most once
	kindChain  = "chain"  // twenty steps one after the other
	kindPoison = "poison" // one step kills its worker, every time
	kindLarge  = "large"  // results too large for a message
	kindLate   = "late"   // its run, and some of its steps, have deadlines that they may just meet or just miss
	kindSingle = "single" // one step
	kindBranch = "branch" // with conditions, in every fourth over what lies in blobs
	kindNest   = "nest"   // with steps that have plans of their own
)

// Work is all that follows from a run's id.
type Work struct {
	Kind string
	reference.Case
	nested *reference.Nested // of kindNest: its plan, and what it comes to
	living *living.Plan      // of living.Kind
	state  *living.State     // of living.StateKind
}

// Call is what a tool does for an attempt.
func (w *Work) Call(step, tool string, args []byte, attempt int) reference.Reply {
	if w.nested != nil {
		return w.nested.Call(step, tool, args, attempt)
	}
	if w.living != nil {
		return w.living.Call(step, args, attempt)
	}
	if w.state != nil {
		return w.state.Call(step)
	}
	return w.Case.Call(step, tool, args, attempt)
}

// Strict reports whether the outcome does not depend on the order of events.
func (w *Work) Strict() bool {
	return w.Kind == kindRandom || w.Kind == kindChain || w.Kind == kindLarge || w.Kind == kindSingle || w.Kind == kindBranch
}

var works sync.Map // *Work by run id

// WorkOf returns the work of a run; nil for an id that no agent of ours makes.
func WorkOf(run string) *Work {
	if w, ok := works.Load(run); ok {
		return w.(*Work)
	}
	kind, _, _ := strings.Cut(run, "-")
	h := fnv.New64a()
	_, _ = h.Write([]byte(run))
	rng := rand.New(rand.NewSource(int64(h.Sum64())))
	w := &Work{Kind: kind}
	switch kind {
	case kindRandom, kindOnce:
		w.Case = generate(rng, kind, reference.Options{Steps: 10, ForEach: true})
	case kindStop, kindCancel:
		w.Case = generate(rng, kind, reference.Options{Steps: 12, ForEach: true, Stop: true})
	case kindBranch:
		w.Case = branch(rng, run)
	case kindChain:
		w.Case = chain(20, `{"v":1}`, "")
	case kindNest:
		w.nest(rng)
	case kindLate:
		w.Case = hurried(rng, generate(rng, kind, reference.Options{Steps: 10, ForEach: true, Stop: true}))
	case kindSingle:
		w.Case = chain(1, `{"v":1}`, "")
	case kindLarge:
		w.Case = chain(3, large(run), "")
	case kindPoison:
		w.Case = poison()
	case living.StateKind:
		w.state = living.NewState(rng, large(run))
		w.Case = reference.Case{Plan: w.state.Body}
	case living.Kind:
		w.living = living.New(rng, run)
		w.Case = reference.Case{Plan: w.living.Body}
	default:
		return nil
	}
	works.Store(run, w)
	return w
}

// generate makes a random case and gives its tools the names of ours with the same contract.
func generate(rng *rand.Rand, kind string, o reference.Options) reference.Case {
	c := reference.Generate(rng, o)
	names, contracts := map[string]string{}, map[string]reference.Contract{}
	for name, k := range c.Contracts {
		if kind == kindOnce {
			k.MaxAttempts = 1
		}
		names[name] = toolName(kind, k)
		contracts[names[name]] = k
	}
	var doc map[string]json.RawMessage
	var steps []map[string]json.RawMessage
	must(json.Unmarshal(c.Plan, &doc))
	must(json.Unmarshal(doc["steps"], &steps))
	for _, s := range steps {
		if s["tool"] == nil { // a value, which calls nothing
			continue
		}
		var name string
		must(json.Unmarshal(s["tool"], &name))
		s["tool"], _ = json.Marshal(names[name])
		if kind == kindOnce {
			delete(s, "retry")
		}
	}
	doc["steps"], _ = json.Marshal(steps)
	c.Plan, _ = json.Marshal(doc)
	c.Contracts = contracts
	for _, s := range c.Scripts {
		for i, f := range s.Failures {
			// What a worker makes of it: only these two may be tried again, and others are told so.
			s.Failures[i].Retryable = f.Retryable && (f.Code == string(fault.ToolFailed) || f.Code == string(fault.Timeout))
		}
	}
	return c
}

// hurried returns a case deadlines about as long as what they bound takes.
func hurried(rng *rand.Rand, c reference.Case) reference.Case {
	var doc map[string]json.RawMessage
	var steps []map[string]json.RawMessage
	must(json.Unmarshal(c.Plan, &doc))
	must(json.Unmarshal(doc["steps"], &steps))
	within := func(most int) json.RawMessage { return fmt.Appendf(nil, `"%dms"`, 5+rng.Intn(most)) }
	for _, s := range steps {
		if rng.Intn(4) == 0 {
			s["timeout"] = within(120)
		}
	}
	if rng.Intn(3) > 0 {
		doc["timeout"] = within(500)
	}
	doc["steps"], _ = json.Marshal(steps)
	c.Plan, _ = json.Marshal(doc)
	return c
}

func must(err error) {
	if err != nil {
		panic(err) // of a plan that reference.Generate made
	}
}

func toolName(kind string, c reference.Contract) string {
	propagation := "all"
	if c.PartialSuccess {
		propagation = "each"
	}
	if kind == kindOnce {
		return "once_" + propagation
	}
	return fmt.Sprintf("try%d_%s", c.MaxAttempts, propagation)
}

// branch is a plan of language 2.
func branch(rng *rand.Rand, run string) reference.Case {
	if rng.Intn(4) == 0 {
		return chain(4, `{"v":1,"text":`+large(run)+`}`, "$ref:%s.v == 1")
	}
	return generate(rng, kindBranch, reference.Options{Steps: 10, ForEach: true, Second: true, Codes: true})
}

// nest makes a plan with plans within it.
func (w *Work) nest(rng *rand.Rand) {
	w.nested = reference.GenerateNested(rng, reference.NestedTools{Echo: "try3_each", Flaky: "try3_all", Broken: "try1_all", Text: "try2_all"}, false)
	w.Case = reference.Case{Plan: w.nested.Plan, Contracts: map[string]reference.Contract{
		"try3_each": {MaxAttempts: 3, PartialSuccess: true}, "try3_all": {MaxAttempts: 3}, "try1_all": {MaxAttempts: 1}, "try2_all": {MaxAttempts: 2},
	}}
}

// large is a result that is too large for a message.
func large(run string) string { return `"` + strings.Repeat(run, (300<<10)/len(run)) + `"` }

// chain is steps of which each is handed what the one before it returned, where the condition holds: "" for none.
func chain(n int, result, condition string) reference.Case {
	c := reference.Case{Contracts: map[string]reference.Contract{"try3_all": {MaxAttempts: 3}},
		Scripts: map[string]reference.Script{}}
	var steps []string
	for i := range n {
		id, before, rest := fmt.Sprint("s", i), fmt.Sprint("s", i-1), `{}`
		if i > 0 {
			rest = fmt.Sprintf(`{"before":"$ref:%s"}`, before)
		}
		if i > 0 && condition != "" {
			rest += fmt.Sprintf(`,"if":%q`, fmt.Sprintf(condition, before))
		}
		steps = append(steps, fmt.Sprintf(`{"id":%q,"tool":"try3_all","arguments":%s}`, id, rest))
		c.Scripts[id] = reference.Script{Reply: reference.Reply{Body: []byte(result)}}
	}
	c.Plan = fmt.Appendf(nil, `{"steps":[%s],"output_steps":["s%d"]}`, strings.Join(steps, ","), n-1)
	return c
}

// poison is a run of which one step, and all that need it, can't be done.
func poison() reference.Case {
	ok := reference.Script{Reply: reference.Reply{Body: []byte(`1`)}}
	return reference.Case{
		Plan:      []byte(`{"steps":[{"id":"a","tool":"try1_all"},{"id":"b","tool":"poison","depends_on":["a"]},{"id":"c","tool":"try1_all","depends_on":["b"]},{"id":"d","tool":"try1_all","depends_on":["a"]}]}`),
		Contracts: map[string]reference.Contract{"try1_all": {MaxAttempts: 1}, "poison": {MaxAttempts: 1}},
		Scripts:   map[string]reference.Script{"a": ok, "b": ok, "c": ok, "d": ok},
	}
}

// definitions are the tools that every worker hosts.
func definitions() []*tool.Definition {
	var all []*tool.Definition
	add := func(name string, attempts, limit int, p tool.Propagation, d tool.Delivery) {
		all = append(all, &tool.Definition{
			Name: name, Description: "Does what the run's id says.",
			Orchestration: &tool.Orchestration{
				Mode: tool.FanOutBounded, MaxConcurrency: limit, Retry: &tool.Retry{MaxAttempts: attempts},
				Backoff: &tool.Backoff{Strategy: tool.Constant, Initial: 250 * time.Millisecond}, ErrorPropagation: p, Delivery: d,
				TimeoutMS: 60_000,
			},
		})
	}
	for attempts, limit := range map[int]int{1: 64, 2: 8, 3: 32} {
		add(fmt.Sprintf("try%d_all", attempts), attempts, limit, tool.FailFast, tool.AtLeastOnce)
		add(fmt.Sprintf("try%d_each", attempts), attempts, limit, tool.PartialSuccess, tool.AtLeastOnce)
	}
	add("once_all", 1, 16, tool.FailFast, tool.AtMostOnce)
	add("once_each", 1, 16, tool.PartialSuccess, tool.AtMostOnce)
	add("poison", 1, 2, tool.FailFast, tool.AtLeastOnce)
	add(living.Tool, 3, 64, tool.FailFast, tool.AtLeastOnce)
	return all
}

// limits returns the fan-out limit of each tool.
func limits() map[string]int {
	m := map[string]int{}
	for _, d := range definitions() {
		m[d.Name] = d.Orchestration.MaxConcurrency
	}
	return m
}

// pauseOf is how long a tool takes for an attempt: mostly some milliseconds, now and then a fifth of a second. The
// steps of a chain are all quick, so that a silence of theirs means something.
func pauseOf(run, key string, attempt int) time.Duration {
	h := fnv.New32a()
	fmt.Fprint(h, key, attempt)
	n := h.Sum32()
	if n%23 == 0 && !strings.HasPrefix(run, kindChain) {
		return 200 * time.Millisecond
	}
	return time.Duration(n%16) * time.Millisecond
}

// valueDigest is a digest of a JSON value that does not depend on how it is written.
func valueDigest(raw []byte) string { return living.Digest(raw) }

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:12])
}
