package dialect_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// The reference interpreter of the dialect. It knows no plan, no step and no condition: it goes through the calls of a
// program, asks for each reading who wrote there, and says what becomes of each call.

// program is a plan of the dialect, and what its tools answer.
type program struct {
	calls          []progCall
	input, initial map[string]any
}

type progCall struct {
	args    []read // a0, a1, …
	cond    []test // any of them holds; none: always
	after   []int
	results [][]string
	errors  [][]string
	result  any            // what the tool returns
	fails   map[string]any // or its error, {code, message, details}
}

// read is one string of the arguments.
type read struct {
	from    []from
	literal any  // ends alternatives; nil for none
	all     bool // joined by &&
	text    bool // "<${†state.x}>"
}

// from is a reference.
type from struct {
	input bool
	path  []string
}

// test is a part of a condition.
type test struct {
	from
	equals any // nil: "!= null"
	alone  bool
}

// seen is somebody whom a reading sees.
type seen struct {
	call  int
	error bool
	rest  []string
}

type interpretation struct {
	*program
	status []string
	args   []map[string]any
	deps   []map[int]bool
	// refused says that there is nothing to read somewhere, or a circle.
	refused bool
	lacking bool // a form that can't be compiled yet
}

func interpret(p *program) *interpretation {
	n := len(p.calls)
	x := &interpretation{program: p, status: make([]string, n), args: make([]map[string]any, n), deps: make([]map[int]bool, n)}
	for i := range p.calls {
		x.look(i)
	}
	state := make([]int, n)
	for i := range p.calls {
		x.refused = x.refused || x.circle(i, state)
	}
	if !x.refused {
		for i := range p.calls {
			x.decide(i)
		}
	}
	return x
}

// under returns what lies behind the place q on the path p.
func under(p, q []string) ([]string, bool) {
	if len(p) < len(q) || !slices.Equal(p[:len(q)], q) {
		return nil, false
	}
	return p[len(q):], true
}

func find(v any, path []string) any {
	for _, key := range path {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

// has reports whether there is something on a path, and be it null.
func has(v any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	m, _ := v.(map[string]any)
	next, ok := m[path[0]]
	return ok && has(next, path[1:])
}

// sees returns whom call i sees who reads a path, the last first, what is there without any of them, and whether
// somebody writes below.
func (x *interpretation) sees(i int, f from) (all []seen, initial any, parts bool) {
	if f.input {
		return nil, find(x.input, f.path), false
	}
	var before, others []seen
	below, belowOthers := false, false
	for j := len(x.calls) - 1; j >= 0; j-- {
		for k, places := range [][][]string{x.calls[j].results, x.calls[j].errors} {
			for _, q := range slices.Backward(places) {
				rest, at := under(f.path, q)
				_, part := under(q, f.path)
				switch {
				case j == i || !at && !part:
				case at && j < i:
					before = append(before, seen{j, k == 1, rest})
				case at:
					others = append(others, seen{j, k == 1, rest})
				case j < i:
					below = true
				default:
					belowOthers = true
				}
			}
		}
	}
	initial = find(x.initial, f.path)
	nearest := func(a, b seen) int { return cmp.Or(b.call-a.call, len(a.rest)-len(b.rest)) } // of the places of one call
	slices.SortStableFunc(before, nearest)
	slices.SortStableFunc(others, nearest)
	if len(before) > 0 || below || initial != nil {
		return before, initial, below
	}
	return others, nil, belowOthers
}

// flat is what the alternatives of a reading come to together.
func (x *interpretation) flat(i int, r read) (all []seen, constant any) {
	constant = nil
	for _, f := range r.from {
		who, initial, _ := x.sees(i, f)
		if constant == nil {
			all, constant = append(all, who...), initial
		}
	}
	if constant == nil {
		constant = r.literal
	}
	return all, constant
}

// look finds out whom a call waits for, and what is wrong with it.
func (x *interpretation) look(i int) {
	x.deps[i] = map[int]bool{}
	wait := func(f from) {
		who, initial, parts := x.sees(i, f)
		x.refused = x.refused || len(who) == 0 && initial == nil && !parts && !(f.input && has(x.input, f.path))
		x.lacking = x.lacking || parts
		for _, s := range who {
			x.refused = x.refused || s.error && (len(s.rest) > 1 || len(s.rest) == 1 && s.rest[0] != "code" && s.rest[0] != "message" && s.rest[0] != "details")
		}
	}
	depend := func(who []seen) {
		for _, s := range who {
			x.deps[i][s.call] = true
		}
	}
	for _, r := range x.calls[i].args {
		for _, f := range r.from {
			wait(f)
		}
		for n, one := range r.each() {
			who, constant := x.flat(i, one)
			depend(who)
			if r.all && n < len(r.from)-1 {
				continue // it is only asked whether it is there
			}
			errs := slices.ContainsFunc(who, func(s seen) bool { return s.error })
			_, object := constant.(map[string]any)
			several := len(who) > 1 || len(who) == 1 && constant != nil
			x.lacking = x.lacking || several && (errs || object || r.text) || r.text && errs && (len(who[0].rest) == 0 || who[0].rest[0] == "code")
		}
	}
	for _, c := range x.calls[i].cond {
		wait(c.from)
		who, constant, _ := x.sees(i, c.from)
		depend(who)
		_, object := constant.(map[string]any)
		x.lacking = x.lacking || object
	}
	for _, j := range x.calls[i].after {
		x.deps[i][j] = true
	}
}

// each returns the readings that have to come to something, each by itself.
func (r read) each() (all []read) {
	if !r.all {
		return []read{r}
	}
	for _, f := range r.from {
		all = append(all, read{from: []from{f}, text: r.text})
	}
	return all
}

func (x *interpretation) circle(i int, state []int) bool {
	if state[i] != 0 {
		return state[i] == 1
	}
	state[i] = 1
	for j := range x.deps[i] {
		if x.circle(j, state) {
			return true
		}
	}
	state[i] = 2
	return false
}

// what returns what a writer wrote: nil where it did not.
func (x *interpretation) what(s seen) any {
	switch {
	case s.error && x.status[s.call] == "failed":
		return find(x.calls[s.call].fails, s.rest)
	case !s.error && x.status[s.call] == "succeeded":
		return find(x.calls[s.call].result, s.rest)
	}
	return nil
}

// decide says what becomes of a call.
func (x *interpretation) decide(i int) {
	if x.status[i] != "" {
		return
	}
	for j := range x.deps[i] {
		x.decide(j)
	}
	c := &x.calls[i]
	dealt := map[int]bool{} // calls whose failure it deals with, since it reads their error
	for _, r := range c.args {
		for _, one := range r.each() {
			who, _ := x.flat(i, one)
			x.deal(dealt, who)
		}
	}
	for _, t := range c.cond {
		who, _, _ := x.sees(i, t.from)
		x.deal(dealt, who)
	}
	skipped, missing := false, false
	for _, j := range c.after {
		skipped = skipped || !dealt[j] && (x.status[j] == "failed" || x.status[j] == "skipped")
	}
	args := map[string]any{}
	for k, r := range c.args {
		for n, one := range r.each() {
			v, there, spoiled := x.value(i, one, dealt)
			skipped, missing = skipped || spoiled, missing || !there || r.all && n < len(r.from)-1 && v == nil
			args["a"+string(rune('0'+k))] = v
		}
	}
	holds := len(c.cond) == 0
	for _, t := range c.cond {
		who, constant, _ := x.sees(i, t.from)
		v, spoiled := x.first(who, constant, dealt)
		skipped = skipped || spoiled
		holds = holds || t.holds(v)
	}
	switch {
	case skipped:
		x.status[i] = "skipped"
	case missing || !holds:
		x.status[i] = "not_taken"
	case c.fails != nil:
		x.status[i], x.args[i] = "failed", args
	default:
		x.status[i], x.args[i] = "succeeded", args
	}
}

func (x *interpretation) deal(dealt map[int]bool, who []seen) {
	for _, s := range who {
		if s.error {
			dealt[s.call] = true
		}
	}
}

// first returns the first that was written, else the constant; spoiled is whether a failure keeps it from being there.
func (x *interpretation) first(who []seen, constant any, dealt map[int]bool) (v any, spoiled bool) {
	errs := false
	for _, s := range who {
		if v := x.what(s); v != nil {
			return v, false
		}
		errs = errs || s.error
	}
	if constant != nil || errs {
		return constant, false
	}
	for _, s := range who {
		switch x.status[s.call] {
		case "succeeded":
			return nil, false
		case "failed", "skipped":
			spoiled = spoiled || !dealt[s.call]
		}
	}
	return nil, spoiled
}

// value returns what an argument comes to.
func (x *interpretation) value(i int, r read, dealt map[int]bool) (v any, there, spoiled bool) {
	who, constant := x.flat(i, r)
	v, spoiled = x.first(who, constant, dealt)
	there = v != nil || len(who) == 0 // null of the input is
	if !there && len(who) > 0 {       // a result that is null as a whole is there, where nothing else tells that it is not
		there = !slices.ContainsFunc(who, func(s seen) bool { return s.error || len(s.rest) > 0 || dealt[s.call] }) &&
			slices.ContainsFunc(who, func(s seen) bool { return x.status[s.call] == "succeeded" })
	}
	if r.text && there {
		v = "<" + inText(v) + ">"
	}
	return v, there, spoiled
}

func inText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, _ := json.Marshal(v)
	return string(b)
}

func (t test) holds(v any) bool {
	switch {
	case t.alone:
		switch v := v.(type) {
		case nil:
			return false
		case bool:
			return v
		case float64:
			return v != 0
		case string:
			return v != ""
		case map[string]any:
			return len(v) > 0
		}
		return true
	case t.equals == nil:
		return v != nil
	}
	return v == t.equals
}

// String writes a reference.
func (f from) String() string {
	root := "†state"
	if f.input {
		root = "†input"
	}
	return strings.Join(append([]string{root}, f.path...), ".")
}
