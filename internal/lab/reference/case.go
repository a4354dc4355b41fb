package reference

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strconv"
	"strings"
)

// Options say what plans Generate makes. The zero value makes plans of at most 12 steps, a fifth of which fail in one
// way or another, and that go on after a failure.
type Options struct {
	// Steps is the most steps of a plan; 0 for 12. At most 10,000.
	Steps int
	// NoFailures is whether no tool fails. Steps can still fail by their references.
	NoFailures bool
	// Stop allows on_failure: stop.
	Stop bool
	// ForEach makes some steps run once for each item of a list. Their items fail by their tools alone, with errors
	// that are the same whoever reports them, so that what references see is, too. Items of a fail-fast tool fail at
	// most once in a step, so that the order in which they run doesn't matter, but for the number of attempts of a step
	// that fails.
	ForEach bool
	// Second makes most plans ones of language 2, with conditions and references to how steps ended.
	Second bool
	// Codes is whether references to errors go to their codes alone: what the texts say of what an owner found is no
	// promise.
	Codes bool
	// Questions makes some plans, steps and tools ask people. Of the items of one step at most one is rejected, and none
	// where one fails.
	Questions bool
	// Patience is how long people may take, as a plan writes it, where they may not take as long as they like; empty: 1m.
	Patience string
}

// Case is a random plan with tools to run it.
type Case struct {
	// Plan is the document.
	Plan []byte
	// Contracts has all tools that the plan names.
	Contracts map[string]Contract
	// Scripts say what the tools do, by step; "S=i" is for one item of a for_each step, S for all those without one.
	Scripts map[string]Script
	// Sayings are what people say who are asked, by step as in Scripts; all others agree. Who is asked to say nothing in
	// time is asked with a timeout.
	Sayings map[string]Answer
	// Forms counts what occurs in the plan, by the names of Forms.
	Forms map[string]int
}

// Script is what a tool does with one step.
type Script struct {
	// Failures are the errors of the first attempts.
	Failures []Err
	// Asks is how many attempts ask a person, after the first AsksAfter. Those are not counted where Failures are.
	Asks, AsksAfter int
	// Reply is the answer to every later attempt.
	Reply Reply
	// Echo gives the arguments back in place of Reply, or their length where they are over 4 KiB, so that no chain of
	// steps can explode.
	Echo bool
}

const maxEcho = 4 << 10

// Call is a Behaviour.
func (c Case) Call(step, _ string, args []byte, attempt int) Reply {
	s, own := c.Scripts[step]
	id, item := splitToken(step)
	if !own {
		s = c.Scripts[id]
	}
	if _, err := Convert(args, false); s.Echo && item >= 0 && err != nil { // too deep for an output: not the same error everywhere
		s.Echo, s.Reply = false, Reply{}
	}
	asks, attempt := s.asked(attempt)
	switch {
	case asks:
		return Reply{Asks: true}
	case attempt <= len(s.Failures):
		return Reply{Err: &s.Failures[attempt-1]}
	case s.Echo && len(args) <= maxEcho:
		return Reply{Body: args}
	case s.Echo:
		return Reply{Body: []byte(strconv.Itoa(len(args)))}
	}
	return s.Reply
}

// Forms names everything that Generate can put into a plan and counts.
func Forms() []string {
	return []string{
		"whole", "alternatives of references", "alternatives with scalar", "template bare", "template braced",
		"object form", "object form as arguments", "escape even", "escape odd", "escape even braced", "escape odd braced",
		"key escape", "key $$ref", "key $$text", "verbatim", "$text as data", "foreign beside a right one",
		"no path", "path .key", "path .digits", "path [index]", "path [string]", "path [*]",
		"arguments absent", "arguments empty", "arguments object", "arguments string", "forward reference",
		"depends_on", "optional", "on_missing error", "output_steps", "waves", "retry", "null option", "unknown field",
		"echo", "text output", "JSON output", "empty output", "invalid output", "transient failure", "permanent failure",
	}
}

// generator makes one case. Steps are made in an order in which each only refers to those before it.
type generator struct {
	*rand.Rand
	c      Case
	steps  []made
	second bool // the plan is one of language 2
	codes  bool

	questions bool
	patience  string
}

// made is a step so far. result is what its script gives, where that is known beforehand.
type made struct {
	id     string
	result *value
	tool   string // empty for a value
	each   bool   // it has a for_each
	items  int    // how many, where that is known; else -1

	guarded, timed, together bool // it has an approval; an answer may take only so long; it is one for all items
}

// Generate makes a plan that is valid where its tools are there and declare no types. The same source gives the same
// case.
func Generate(rng *rand.Rand, o Options) Case {
	g := &generator{Rand: rng, c: Case{Contracts: map[string]Contract{}, Scripts: map[string]Script{}, Sayings: map[string]Answer{}, Forms: map[string]int{}}}
	most := o.Steps
	if most == 0 {
		most = 12
	}
	count := 1 + g.Intn(most)
	g.second, g.codes = o.Second && g.Intn(8) > 0, o.Codes
	g.questions, g.patience = o.Questions && g.Intn(4) > 0, cmp.Or(o.Patience, "1m")
	for i := range 1 + g.Intn(4) {
		c := Contract{MaxAttempts: 1 + g.Intn(3)}
		if o.ForEach {
			c.PartialSuccess = g.Intn(2) == 0
		}
		if g.questions {
			c.Approval = g.rule()
			c.Asks = g.Intn(2) == 0
		}
		g.c.Contracts[fmt.Sprintf("tool.%d/x:y", i)] = c
	}
	shape := shapes[g.Intn(len(shapes))]
	var documents []string
	for i := range count {
		deps := shape(g, i, count)
		each := o.ForEach && g.Intn(4) == 0
		documents = append(documents, g.step(deps, each))
		switch {
		case g.steps[i].tool == "":
			g.steps[i].items = -1
		case g.steps[i].tool == askTool:
		case each:
			g.itemScripts(o)
		default:
			g.script(o)
		}
		g.sayings(o)
	}
	order := g.order(count)
	var list []string
	for _, i := range order {
		list = append(list, documents[i])
	}
	g.c.Plan = []byte(g.document(list, o))
	return g.c
}

// order is the one of the steps in the document: mostly their own, else a random one, so that references go forward.
func (g *generator) order(count int) []int {
	if g.Intn(3) > 0 {
		order := make([]int, count)
		for i := range order {
			order[i] = i
		}
		return order
	}
	order := g.Perm(count)
	if !slices.IsSorted(order) {
		g.c.Forms["forward reference"]++
	}
	return order
}

// shapes give the steps that step i of n may depend on: a chain, all of one, one of all, layers, anything.
var shapes = []func(g *generator, i, n int) []int{
	func(_ *generator, i, _ int) []int { // chain
		if i == 0 {
			return nil
		}
		return []int{i - 1}
	},
	func(_ *generator, i, n int) []int { // fan-out from the first, join in the last
		if i == n-1 {
			return upTo(0, i)
		}
		return upTo(0, min(i, 1))
	},
	func(_ *generator, i, _ int) []int { // diamonds: one, two in parallel, one, …
		if i%3 == 0 {
			return upTo(max(i-2, 0), i)
		}
		return []int{i - i%3}
	},
	func(_ *generator, i, _ int) []int { // layers of three
		return upTo(max(i-i%3-3, 0), i-i%3)
	},
	func(g *generator, i, _ int) []int { // anything
		some := g.Perm(i)
		return some[:g.Intn(min(i, 5)+1)]
	},
}

func upTo(from, to int) []int {
	var all []int
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

// newID returns an id that no step has yet; some look like something else.
func (g *generator) newID() string {
	odd := []string{"a", "A", "__proto__", "my-step", "0", "01", "-", "_", "ref", "null", strings.Repeat("z", 64)}
	if id := pick(g.Rand, odd); g.Intn(3) == 0 && !g.taken(id) {
		return id
	}
	return fmt.Sprintf("s%d", len(g.steps))
}

func (g *generator) taken(id string) bool {
	return slices.ContainsFunc(g.steps, func(m made) bool { return m.id == id })
}

// step writes a step that depends on some of those before it, or on none.
func (g *generator) step(deps []int, each bool) string {
	id := g.newID()
	tool := pick(g.Rand, slices.Sorted(maps.Keys(g.c.Contracts)))
	fields := []string{`"id":` + g.spell(id)}
	var targets []made
	for _, d := range deps {
		targets = append(targets, g.steps[d])
	}
	last := made{id: id, tool: tool, each: each}
	switch value := g.second && g.Intn(4) == 0; {
	case value && each:
		g.c.Forms["value of items"]++
		last.tool = ""
		field, as := g.itemsOf(&last, called(targets))
		fields = append(fields, field, `"value":`+g.worth(targets, as))
	case value:
		last.tool = ""
		fields = append(fields, `"value":`+g.worth(targets, ""))
	case each:
		named := `"tool":` + g.spell(tool)
		field, as := g.itemsOf(&last, targets)
		if asks := g.asking(&last, targets, as); asks != nil {
			fields = append(append(fields, field), asks...)
			break
		}
		fields = append(fields, named, field, g.itemArguments(&last, targets, as))
		fields = append(fields, g.approval(&last, targets, as)...)
	default:
		if asks := g.asking(&last, targets, ""); asks != nil {
			fields = append(fields, asks...)
			break
		}
		fields = append(append(fields, `"tool":`+g.spell(tool)), g.arguments(targets)...)
		fields = append(fields, g.approval(&last, targets, "")...)
	}
	if g.Intn(4) == 0 && len(targets) > 0 {
		g.c.Forms["depends_on"]++
		fields = append(fields, `"depends_on":[`+g.spell(pick(g.Rand, targets).id)+`]`)
	}
	if g.second && g.Intn(3) == 0 && (len(targets) > 0 || g.Intn(3) == 0) {
		fields = append(fields, `"if":`+g.spell(g.condition(targets)))
	}
	if g.Intn(5) == 0 {
		g.c.Forms["optional"]++
		fields = append(fields, `"optional":true`)
	}
	if g.Intn(4) == 0 && last.tool != "" && last.tool != askTool {
		g.c.Forms["retry"]++
		fields = append(fields, fmt.Sprintf(`"retry":{"max_attempts":%d,"backoff":{"strategy":"none"}}`, 1+g.Intn(4)))
	}
	if g.Intn(8) == 0 && !(last.tool == askTool && last.timed) {
		g.c.Forms["null option"]++
		fields = append(fields, `"timeout":null`)
	}
	if g.Intn(8) == 0 {
		g.c.Forms["unknown field"]++
		fields = append(fields, `"thought":"see $ref: and ${ref:"`)
	}
	g.steps = append(g.steps, last)
	return g.object(fields)
}

// document writes the plan around its steps.
func (g *generator) document(steps []string, o Options) string {
	fields := []string{`"steps":` + g.space() + `[` + strings.Join(steps, g.space()+","+g.space()) + `]`}
	switch {
	case g.second && g.Intn(4) == 0:
		fields = append(fields, `"output":`+g.argument(g.Intn(3), g.steps))
	case g.Intn(2) == 0:
		g.c.Forms["output_steps"]++
		var ids []string
		for _, i := range g.Perm(len(g.steps))[:1+g.Intn(len(g.steps))] {
			ids = append(ids, g.spell(g.steps[i].id))
		}
		fields = append(fields, `"output_steps":[`+strings.Join(ids, ",")+`]`)
	}
	if g.second && g.Intn(4) == 0 {
		fields = append(fields, fmt.Sprintf(`"concurrency":%d`, 1+g.Intn(3)))
	}
	if g.Intn(4) == 0 {
		g.c.Forms["on_missing error"]++
		fields = append(fields, `"on_missing":"error"`)
	}
	if g.Intn(3) == 0 {
		g.c.Forms["waves"]++
		fields = append(fields, `"schedule":"waves"`)
	}
	fields = append(fields, g.planApproval(o)...)
	if o.Stop && g.Intn(2) == 0 {
		g.c.Forms["stop"]++
		fields = append(fields, `"on_failure":"stop"`)
	}
	return g.space() + g.object(fields) + g.space()
}

// object writes fields in any order, with any space.
func (g *generator) object(fields []string) string {
	g.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	return "{" + g.space() + strings.Join(fields, g.space()+","+g.space()) + g.space() + "}"
}

func pick[T any](rng *rand.Rand, from []T) T { return from[rng.Intn(len(from))] }
