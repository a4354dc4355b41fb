package agent

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// This file is a second reading of docs/agents.md. It shares no code with the package: it keeps everything that has
// happened, and answers each question by going through all of it again. Random definitions are written for both.

// simpleAgent is a definition, as the naive interpreter has it.
type simpleAgent struct {
	tools    []simpleTool
	facades  []simpleFacade
	initial  string
	replaces bool                       // {"chain": "*"} stands beside the chains
	takes    map[string]simpleCondition // of the chain of a type: when
}

// simpleCondition is one about an object, over facts and the object itself; empty for none.
type simpleCondition struct{ about, name string }

// randomCondition makes one up, mostly none.
func randomCondition(r *rand.Rand, name func() string, states bool) simpleCondition {
	if r.IntN(2) == 0 {
		return simpleCondition{}
	}
	about := []string{"id", "succeeded", "called", "failed", "round", "board", "bound", "input", "state"}
	switch c := (simpleCondition{about: about[r.IntN(len(about))]}); c.about {
	case "succeeded", "called", "failed":
		return simpleCondition{c.about, name()}
	case "board", "bound":
		return simpleCondition{c.about, simpleTypes[r.IntN(2)]}
	case "state":
		if states {
			return simpleCondition{c.about, simpleStates[r.IntN(3)]}
		}
		return simpleCondition{}
	default:
		return c
	}
}

// text writes it. What nobody can bind is refused, so a chain has to be there.
func (c simpleCondition) text(a simpleAgent) string {
	switch c.about {
	case "id":
		return "$artifact.id < 600"
	case "succeeded":
		return "$succeeded." + c.name
	case "called":
		return "not $called." + c.name
	case "failed":
		return "$called." + c.name + " and not $succeeded." + c.name
	case "round":
		return "$round >= 1"
	case "board":
		return "$blackboard." + c.name + ".id != null"
	case "bound":
		if slices.ContainsFunc(a.tools, func(t simpleTool) bool { return t.chain == c.name }) {
			return "$bound." + c.name + " == null"
		}
		return "1 == 1"
	case "input":
		return "$input.yes == null"
	case "state":
		return "$state == '" + c.name + "'"
	}
	return ""
}

// holds decides it of an object that has come by the last event of a history, behind others.
func (c simpleCondition) holds(h history, before []object, o object) bool {
	switch c.about {
	case "id":
		return !o.list && o.id < 600
	case "succeeded":
		return h.count(c.name, true) > 0
	case "called":
		return h.count(c.name, false) == 0
	case "failed":
		return h.count(c.name, false) > 0 && h.count(c.name, true) == 0
	case "round":
		return h.round() >= 1
	case "board":
		for _, x := range slices.Backward(before) {
			if x.typ == c.name {
				return !x.list
			}
		}
		return false
	case "bound":
		_, is := h.among(before, c.name)
		return !is
	case "state":
		return h.state() == c.name
	}
	return true
}

// simpleTool is an entry of a tool, with at most one of each thing.
type simpleTool struct {
	name      string // of the tool; entries have the same name, or as
	as        string
	all, any  []string
	called    bool
	needsType string
	round     int // needs.when: $round >= round; 0 for none
	unless    string
	in        []string
	to        string
	once      bool
	returns   string          // artifact.type
	when      simpleCondition // artifact.when
	chain     string
	facade    int // -1 for none
	category  []string
}

// simpleFacade is a facade.
type simpleFacade struct {
	name                string
	above               int // -1 for none
	exclusive, category bool
}

var (
	simpleStates     = []string{"A", "B", "C"}
	simpleTypes      = []string{"User", "Order"}
	simpleCategories = []string{"read", "write"}
)

// withConditions makes up conditions about its objects.
func (a simpleAgent) withConditions(r *rand.Rand) simpleAgent {
	name := func() string { return a.tools[r.IntN(len(a.tools))].name }
	for i := range a.tools {
		if t := &a.tools[i]; t.returns != "" {
			t.when = randomCondition(r, name, a.initial != "")
		}
	}
	a.takes = map[string]simpleCondition{}
	for _, typ := range simpleTypes {
		a.takes[typ] = randomCondition(r, name, a.initial != "")
	}
	return a
}

// conditional reports whether conditions decide which objects there are.
func (a simpleAgent) conditional() bool {
	return slices.ContainsFunc(a.tools, func(t simpleTool) bool { return t.when.about != "" }) || a.takes["User"].about+a.takes["Order"].about != ""
}

func (t simpleTool) entry() string {
	if t.as != "" {
		return t.as
	}
	return t.name
}

// happened is an outcome, or the beginning of a round.
type happened struct {
	entry    string
	failed   bool
	typ      string // said by the worker
	list     bool   // the result is a list
	id       int    // of the object
	category string
	round    bool
}

// randomAgent makes up a definition. Some of them contradict themselves.
func randomAgent(r *rand.Rand) simpleAgent {
	var a simpleAgent
	if r.IntN(2) == 0 {
		a.initial = simpleStates[r.IntN(3)]
	}
	for i := range r.IntN(4) {
		f := simpleFacade{name: fmt.Sprintf("f%d", i), above: -1, exclusive: r.IntN(5) == 0, category: r.IntN(3) == 0}
		if i > 0 && r.IntN(3) == 0 {
			f.above = r.IntN(i)
		}
		a.facades = append(a.facades, f)
	}
	n := 2 + r.IntN(6)
	name := func() string { return fmt.Sprintf("t%d", r.IntN(n)) }
	for i := range n {
		t := simpleTool{name: fmt.Sprintf("t%d", i), facade: -1}
		if r.IntN(6) == 0 {
			t.as = fmt.Sprintf("as%d", i)
		}
		if len(a.facades) > 0 && r.IntN(3) == 0 {
			t.facade = r.IntN(len(a.facades))
			if a.facades[t.facade].category {
				t.category = simpleCategories[r.IntN(2):][:1]
			}
		}
		if r.IntN(4) == 0 {
			t.returns = simpleTypes[r.IntN(2)]
		}
		if r.IntN(8) == 0 {
			t.chain, t.category = simpleTypes[r.IntN(2)], nil
			t.facade, t.returns = -1, ""
			a.tools = append(a.tools, t)
			continue
		}
		a.gate(r, &t, name)
		a.tools = append(a.tools, t)
	}
	a.replaces = r.IntN(3) == 0
	return a
}

// gate makes up when a tool may be called.
func (a *simpleAgent) gate(r *rand.Rand, t *simpleTool, name func() string) {
	switch r.IntN(7) {
	case 0:
		t.all = distinct(name(), name())
	case 1:
		t.any = distinct(name(), name())
	case 2:
		t.needsType = simpleTypes[r.IntN(2)]
	case 3:
		t.round = 1 + r.IntN(2)
	case 4:
		t.unless = name()
	}
	t.called = r.IntN(3) == 0 && (t.all != nil || t.any != nil)
	if a.initial != "" && r.IntN(2) == 0 {
		t.in = distinct(simpleStates[r.IntN(3)], simpleStates[r.IntN(3)])
		if r.IntN(2) == 0 {
			t.to = simpleStates[r.IntN(3)]
		}
	}
	t.once = r.IntN(5) == 0
}

func distinct(a, b string) []string {
	if a == b {
		return []string{a}
	}
	return []string{a, b}
}

// JSON writes the definition.
func (a simpleAgent) JSON() []byte {
	agent := map[string]any{"planner": map[string]any{"tool": "model"}}
	if a.initial != "" {
		agent["states"] = map[string]any{"initial": a.initial, "final": simpleStates}
	}
	entries := a.entries(-1)
	for _, typ := range simpleTypes {
		var of []any
		for _, t := range a.tools {
			if t.chain == typ {
				of = append(of, t.JSON(a))
			}
		}
		if of != nil {
			c := map[string]any{"chain": typ, "tools": of, "bind": map[string]any{"id": "$artifact.id"}}
			if when := a.takes[typ].text(a); when != "" {
				c["when"] = when
			}
			entries = append(entries, c)
		}
	}
	if a.replaces {
		entries = append(entries, map[string]any{"chain": "*"})
	}
	agent["tools"] = entries
	raw, err := json.Marshal(map[string]any{"name": "random", "agent": agent})
	if err != nil {
		panic(err)
	}
	return raw
}

// entries writes those of a facade; of the definition for -1.
func (a simpleAgent) entries(facade int) []any {
	list := []any{}
	for i, f := range a.facades {
		if f.above != facade {
			continue
		}
		m := map[string]any{"unfold": f.name, "description": "X.", "tools": a.entries(i)}
		if f.exclusive {
			m["exclusive"] = true
		}
		if f.category {
			by := map[string]any{}
			for _, c := range simpleCategories {
				in := []any{}
				for _, t := range a.tools {
					if t.facade == i && slices.Contains(t.category, c) {
						in = append(in, t.JSON(a))
					}
				}
				by[c] = in
			}
			m["by"] = map[string]any{"category": by}
		}
		list = append(list, m)
	}
	for _, t := range a.tools {
		if t.facade == facade && t.chain == "" && t.category == nil {
			list = append(list, t.JSON(a))
		}
	}
	return list
}

func (t simpleTool) JSON(a simpleAgent) any {
	m := map[string]any{"tool": t.name}
	put := func(key string, v any, is bool) {
		if is {
			m[key] = v
		}
	}
	put("as", t.as, t.as != "")
	put("in", t.in, t.in != nil)
	put("to", t.to, t.to != "")
	put("once", "Go on.", t.once)
	artifact := map[string]any{"type": t.returns}
	if when := t.when.text(a); when != "" {
		artifact["when"] = when
	}
	put("artifact", artifact, t.returns != "")
	needs := map[string]any{}
	for key, list := range map[string][]string{"all": t.all, "any": t.any} {
		if list != nil {
			needs[key] = list
		}
	}
	if t.called {
		needs["called"] = true
	}
	if t.needsType != "" {
		needs["artifact"] = t.needsType
	}
	if t.round > 0 {
		needs["when"] = fmt.Sprintf("$round >= %d", t.round)
	}
	if t.unless != "" {
		needs["when"] = "not $succeeded." + t.unless
	}
	put("needs", needs, len(needs) > 0)
	return m
}

// hopeless reports whether the definition has to be refused: nobody can ever call one of its tools, however often others
// are called with success, or it names a state that nothing leads to, or a facade of it is empty.
func (a simpleAgent) hopeless() bool {
	reached := map[string]bool{a.initial: true}
	for _, t := range a.tools {
		reached[t.to] = true
	}
	for _, s := range simpleStates {
		named := slices.ContainsFunc(a.tools, func(t simpleTool) bool { return slices.Contains(t.in, s) })
		if a.initial != "" && !reached[s] && (named || true) { // all of them are named as final
			return true
		}
	}
	could := map[string]bool{}
	for range len(a.tools) + 1 {
		for _, t := range a.tools {
			all, some := true, t.any == nil
			for _, n := range t.all {
				all = all && could[n]
			}
			for _, n := range t.any {
				some = some || could[n]
			}
			if all && some {
				could[t.name] = true
			}
		}
	}
	return len(could) < len(a.tools)
}

// history is what has happened to an agent.
type history struct {
	agent  simpleAgent
	events []happened
}

func (h history) tool(entry string) (simpleTool, bool) {
	i := slices.IndexFunc(h.agent.tools, func(t simpleTool) bool { return t.entry() == entry })
	if i < 0 {
		return simpleTool{}, false
	}
	return h.agent.tools[i], true
}

// count is how often a tool was called; with success alone where that is asked for.
func (h history) count(tool string, succeeded bool) (n int) {
	for _, e := range h.events {
		if t, is := h.tool(e.entry); is && t.name == tool && (!e.failed || !succeeded) {
			n++
		}
	}
	return n
}

func (h history) round() (n int) {
	for _, e := range h.events {
		if e.round {
			n++
		}
	}
	return n
}

func (h history) state() string {
	for _, e := range slices.Backward(h.events) {
		if t, is := h.tool(e.entry); is && !e.failed && t.to != "" {
			return t.to
		}
	}
	return h.agent.initial
}

// opened is the category that a facade was last opened with.
func (h history) opened(facade int) (category string, is bool) {
	f := h.agent.facades[facade]
	for _, e := range h.events {
		if e.entry == f.name && !e.failed && (!is || f.category && e.category != "") {
			category, is = e.category, true
		}
	}
	return category, is
}

// object is one that a tool has returned, by an event.
type object struct {
	typ   string
	list  bool
	id    int
	event int
}

// until is what had happened by an event.
func (h history) until(event int) history { return history{h.agent, h.events[:event+1]} }

// objects are all of them. A worker's word comes before what the entry says.
func (h history) objects() (all []object) {
	for i, e := range h.events {
		t, is := h.tool(e.entry)
		if !is || e.failed {
			continue
		}
		if e.typ != "" {
			all = append(all, object{e.typ, e.list, e.id, i})
		}
		if o := (object{t.returns, e.list, e.id, i}); t.returns != "" && t.when.holds(h.until(i), all, o) {
			all = append(all, o)
		}
	}
	return all
}

// acts is the object that the chain of a type acts upon.
func (h history) acts(typ string) (id int, is bool) { return h.among(h.objects(), typ) }

// among is acts for the first objects.
func (h history) among(objects []object, typ string) (id int, is bool) {
	chained := func(typ string) bool {
		return slices.ContainsFunc(h.agent.tools, func(t simpleTool) bool { return t.chain == typ })
	}
	for i, o := range slices.Backward(objects) {
		if o.list || !chained(o.typ) || !h.agent.takes[o.typ].holds(h.until(o.event), objects[:i], o) {
			continue
		}
		if o.typ == typ {
			return o.id, true
		}
		if h.agent.replaces {
			return 0, false
		}
	}
	return 0, false
}

// hidden reports whether a planner is not shown what stands in a facade (-1: in none).
func (h history) hidden(facade int, category []string) bool {
	for f := facade; f >= 0; f = h.agent.facades[f].above {
		if _, is := h.opened(f); !is {
			return true
		}
	}
	if category != nil {
		if c, _ := h.opened(facade); !slices.Contains(category, c) {
			return true
		}
	}
	return h.excluded(facade)
}

// excluded reports whether a facade that excludes others was opened, and this is not in it, nor around it.
func (h history) excluded(facade int) bool {
	for x, f := range h.agent.facades {
		if _, is := h.opened(x); !is || !f.exclusive {
			continue
		}
		in := false
		for g := facade; g >= 0; g = h.agent.facades[g].above {
			in = in || g == x
		}
		if !in {
			return true
		}
	}
	return false
}

// verdict says of an entry "hidden", "locked", "loaded" or "open".
func (h history) verdict(entry string) string {
	for i, f := range h.agent.facades {
		if f.name == entry || f.name+"_context" == entry {
			return h.facadeVerdict(i, entry != f.name)
		}
	}
	t, _ := h.tool(entry)
	switch {
	case h.hidden(t.facade, t.category), t.in != nil && !slices.Contains(t.in, h.state()):
		return "hidden"
	case h.locked(t):
		return "locked"
	case t.once && h.count(t.name, true) > 0:
		return "loaded"
	}
	return "open"
}

// facadeVerdict is that of a facade, or of its context. A facade around one that excludes others stays.
func (h history) facadeVerdict(facade int, context bool) string {
	within := h.agent.facades[facade].above
	if context {
		within = facade
	}
	for f := within; f >= 0; f = h.agent.facades[f].above {
		if _, is := h.opened(f); !is {
			return "hidden"
		}
	}
	for x, f := range h.agent.facades {
		if _, is := h.opened(x); !is || !f.exclusive {
			continue
		}
		in, around := false, false
		for g := facade; g >= 0; g = h.agent.facades[g].above {
			in = in || g == x
		}
		for g := x; g >= 0; g = h.agent.facades[g].above {
			around = around || g == facade && !context
		}
		if !in && !around {
			return "hidden"
		}
	}
	return "open"
}

func (h history) locked(t simpleTool) bool {
	missing := func(tool string) bool { return h.count(tool, !t.called) == 0 }
	if slices.ContainsFunc(t.all, missing) {
		return true
	}
	if t.any != nil && !slices.ContainsFunc(t.any, func(n string) bool { return !missing(n) }) {
		return true
	}
	if t.needsType != "" && !slices.ContainsFunc(h.objects(), func(o object) bool { return o.typ == t.needsType }) {
		return true
	}
	if t.round > h.round() || t.unless != "" && h.count(t.unless, true) > 0 {
		return true
	}
	if t.chain != "" {
		_, is := h.acts(t.chain)
		return !is
	}
	return false
}

// names are those of all entries.
func (a simpleAgent) names() (all []string) {
	for _, t := range a.tools {
		all = append(all, t.entry())
	}
	for _, f := range a.facades {
		all = append(all, f.name, f.name+"_context")
	}
	return all
}

// randomEvent makes up what happens next, of what may.
func (h history) randomEvent(r *rand.Rand) happened {
	if r.IntN(6) == 0 {
		return happened{round: true}
	}
	names := h.agent.names()
	e := happened{entry: names[r.IntN(len(names))], failed: r.IntN(4) == 0, id: r.IntN(1000), list: r.IntN(3) == 0}
	if _, is := h.tool(e.entry); is && r.IntN(3) == 0 {
		e.typ = simpleTypes[r.IntN(2)]
	}
	for _, f := range h.agent.facades {
		if f.name == e.entry && f.category {
			e.category = append(slices.Clone(simpleCategories), "")[r.IntN(3)]
		}
	}
	return e
}

// outcome is what happened, as the package is told it.
func (e happened) outcome() Outcome {
	o := Outcome{Entry: e.entry, Failed: e.failed, Type: e.typ, Result: json.RawMessage(fmt.Sprintf(`{"id": %d}`, e.id))}
	if e.list {
		o.Result = json.RawMessage(fmt.Sprintf(`[{"id": %d}]`, e.id))
	}
	if e.category != "" {
		o.Arguments = json.RawMessage(`{"category": "` + e.category + `"}`)
	}
	return o
}

func (h history) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", h.agent.JSON())
	for _, e := range h.events {
		fmt.Fprintf(&b, "%+v\n", e)
	}
	return b.String()
}
