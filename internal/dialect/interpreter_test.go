package dialect_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// The reference interpreter of the dialect. It knows no plan, no step and no condition: it goes through the calls of a
// program, asks for each reading who wrote there, and says what becomes of each call.

// program is a plan of the dialect, and what its tools answer.
type program struct {
	calls          []progCall
	input, initial map[string]any
	output         []read // o0, o1, …; none: no output
}

type progCall struct {
	args    []read // a0, a1, …
	cond    []test // any of them holds; none: always
	after   []int
	results [][]string
	errors  [][]string
	method  string         // set, merge, push or concat
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

// view is what a reading sees: the calls before it, or all others.
type view struct {
	call   int
	others bool
	inside int // one more than the length of a path whose parts are read: lists and texts there have no parts
}

// candidate is what a reading may come to.
type candidate struct {
	value any
	fine  bool // whoever writes it has succeeded
	bad   bool // it failed, or was skipped
	whole bool // null is a value, too: it is what a call returned
}

type interpretation struct {
	*program
	status []string
	args   []map[string]any
	result any // the output
	// written says that something in the output is of a call.
	written bool
	deps    []map[int]bool
	// refused says that there is nothing to read somewhere, or a circle.
	refused bool
}

func interpret(p *program) *interpretation {
	n := len(p.calls)
	x := &interpretation{program: p, status: make([]string, n), args: make([]map[string]any, n), deps: make([]map[int]bool, n+1)}
	for i := range n + 1 {
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
		x.finish()
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

// writers returns who writes at a path or above it, the last in the list first, and below which of its keys others do,
// as far as it is seen.
func (x *interpretation) writers(path []string, sees func(call int) bool) (at []seen, below []string) {
	for j := range x.calls {
		for k, places := range [][][]string{x.calls[j].results, x.calls[j].errors} {
			for _, q := range places {
				rest, is := under(path, q)
				part, under := under(q, path)
				switch {
				case !sees(j):
				case is:
					at = append(at, seen{j, k == 1, rest})
				case under && !slices.Contains(below, part[0]):
					below = append(below, part[0])
				}
			}
		}
	}
	slices.SortStableFunc(at, func(a, b seen) int { return cmp.Or(b.call-a.call, len(a.rest)-len(b.rest)) })
	return at, below
}

// view says what a reading of a path by a call sees.
func (x *interpretation) view(i int, path []string) view {
	at, below := x.writers(path, func(call int) bool { return call < i })
	return view{call: i, others: len(at) == 0 && len(below) == 0 && find(x.initial, path) == nil}
}

func (v view) sees(call int) bool {
	if v.others {
		return call != v.call
	}
	return call < v.call
}

// seen returns the writers that a view sees.
func (x *interpretation) seen(v view, path []string) (at []seen, below []string) {
	at, below = x.writers(path, v.sees)
	return slices.DeleteFunc(at, func(s seen) bool {
		m := x.calls[s.call].method
		return !s.error && (m == "push" || m == "concat") && len(path)-len(s.rest) < v.inside
	}), below
}

// joinedAt returns where on the way to a path results are put together; -1 where they are not.
func (x *interpretation) joinedAt(v view, path []string) int {
	at, below := x.seen(v, path)
	joined := -1
	for _, s := range at {
		own := len(path) - len(s.rest)
		if m := x.calls[s.call].method; !s.error && (m == "push" || m == "concat" || m == "merge" && len(s.rest) == 0) && (joined < 0 || own < joined) {
			joined = own
		}
	}
	if joined < 0 && len(below) > 0 {
		return len(path)
	}
	return joined
}

// waits notes whom a reading of a path waits for.
func (x *interpretation) waits(v view, path []string, who map[int]bool) {
	if n := x.joinedAt(v, path); n >= 0 {
		path = path[:n]
		_, below := x.seen(v, path)
		in := v
		in.inside = len(path) + 1
		for _, k := range below {
			x.waits(in, append(slices.Clip(path), k), who)
		}
	}
	at, _ := x.seen(v, path)
	for _, s := range at {
		who[s.call] = true
	}
}

// look finds out whom a call waits for, and whether there is anything to read.
func (x *interpretation) look(i int) {
	x.deps[i] = map[int]bool{}
	see := func(f from, wait bool) (constant bool) {
		if f.input {
			x.refused = x.refused || !has(x.input, f.path)
			return find(x.input, f.path) != nil
		}
		v := x.view(i, f.path)
		at, below := x.seen(v, f.path)
		initial := find(x.initial, f.path)
		x.refused = x.refused || len(at) == 0 && len(below) == 0 && initial == nil
		if wait {
			x.waits(v, f.path, x.deps[i])
		}
		return initial != nil && x.joinedAt(v, f.path) < 0
	}
	for _, r := range x.readsOf(i) {
		wait := true
		for _, f := range r.from {
			constant := see(f, wait)
			wait = wait && (r.all || !constant)
		}
	}
	if i == len(x.calls) {
		return
	}
	for _, c := range x.calls[i].cond {
		see(c.from, true)
	}
	for _, j := range x.calls[i].after {
		x.deps[i][j] = true
	}
}

// readsOf returns what a call reads or, behind the last, the output.
func (x *interpretation) readsOf(i int) []read {
	if i == len(x.calls) {
		return x.output
	}
	return x.calls[i].args
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

// of returns what a writer wrote.
func (x *interpretation) of(s seen) candidate {
	status, c := x.status[s.call], &x.calls[s.call]
	switch {
	case s.error && status == "failed":
		return candidate{value: find(c.fails, s.rest), fine: true, whole: len(s.rest) == 0}
	case s.error:
		return candidate{whole: len(s.rest) == 0}
	case status == "succeeded":
		return candidate{value: find(c.result, s.rest), fine: true, whole: len(s.rest) == 0}
	}
	return candidate{bad: status == "failed" || status == "skipped", whole: len(s.rest) == 0}
}

// candidates returns what a reference may come to, and what is there without any of them.
func (x *interpretation) candidates(i int, f from) (all []candidate, constant any) {
	if f.input {
		return nil, find(x.input, f.path)
	}
	v := x.view(i, f.path)
	if n := x.joinedAt(v, f.path); n >= 0 {
		whole, bad := x.joined(v, f.path[:n])
		return []candidate{{value: find(whole, f.path[n:]), fine: !bad, bad: bad}}, nil
	}
	at, _ := x.seen(v, f.path)
	for _, s := range at {
		all = append(all, x.of(s))
	}
	return all, find(x.initial, f.path)
}

// joined puts together what was written at a path and below it. bad says that it can't be.
func (x *interpretation) joined(v view, path []string) (value any, bad bool) {
	value = find(x.initial, path)
	at, below := x.seen(v, path)
	var base []candidate
	sets, broken := true, false
	for _, s := range slices.Backward(at) {
		method := x.calls[s.call].method
		if s.error || len(s.rest) > 0 {
			method = "set"
		}
		c := x.of(s)
		if sets = sets && method == "set"; sets {
			base = append(base, c)
		} else {
			bad = bad || c.bad
		}
		if c.value == nil && method == "set" {
			continue
		}
		if method == "set" { // what was wrong before is gone
			value, broken = c.value, false
			continue
		}
		more, wrong := put(method, value, c.value)
		value, broken = more, broken || wrong
	}
	bad = bad || broken
	_, spoiled := first(base, find(x.initial, path))
	bad = bad || spoiled
	v.inside = len(path) + 1
	for _, k := range below {
		child := append(slices.Clip(path), k)
		all, constant := []candidate(nil), any(nil)
		if n := x.joinedAt(v, child); n >= 0 {
			whole, spoiled := x.joined(v, child[:n])
			all = []candidate{{value: find(whole, child[n:]), fine: !spoiled, bad: spoiled}}
		} else {
			at, _ := x.seen(v, child)
			for _, s := range at {
				all = append(all, x.of(s))
			}
			constant = find(x.initial, child)
		}
		part, spoiled := first(all, constant)
		bad = bad || spoiled
		m, object := value.(map[string]any)
		if value != nil && !object {
			return nil, true
		}
		if part != nil {
			m = maps.Clone(m)
			if m == nil {
				m = map[string]any{}
			}
			m[k], value = part, m
			value = m
		}
	}
	if bad {
		return nil, true
	}
	return value, false
}

// put puts what a call returned together with what is there.
func put(method string, value, more any) (_ any, broken bool) {
	if method == "push" && more != nil {
		more = []any{more}
	}
	switch method {
	case "push", "concat":
		list, is := value.([]any)
		text, isText := value.(string)
		items, adds := more.([]any)
		end, addsText := more.(string)
		switch {
		case value != nil && !is && !isText || more != nil && !adds && !addsText:
			return nil, true
		case value == nil:
			return more, false
		case more == nil:
			return value, false
		case is && adds:
			return append(slices.Clip(list), items...), false
		case isText && addsText:
			return text + end, false
		}
		return nil, true
	case "merge":
		m, is := value.(map[string]any)
		adds, fits := more.(map[string]any)
		switch {
		case more != nil && !fits || value != nil && !is:
			return nil, true
		case more == nil && value == nil:
			return nil, false
		}
		both := map[string]any{}
		for _, from := range []map[string]any{m, adds} {
			for k, v := range from {
				if v != nil {
					both[k] = v
				}
			}
		}
		return both, false
	}
	return more, false
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
	skipped, missing := false, false
	for _, j := range c.after {
		skipped = skipped || x.status[j] == "failed" || x.status[j] == "skipped"
	}
	args := map[string]any{}
	for k, r := range c.args {
		for n, one := range r.each() {
			v, there, spoiled := x.value(i, one)
			skipped, missing = skipped || spoiled, missing || !there || r.all && n < len(r.from)-1 && v == nil
			args["a"+string(rune('0'+k))] = v
		}
	}
	holds := len(c.cond) == 0
	for _, t := range c.cond {
		v, spoiled := first(x.candidates(i, t.from))
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

// finish puts the output together. What is missing is null in it, whatever failed.
func (x *interpretation) finish() {
	out := map[string]any{}
	for k, r := range x.output {
		v, _, _ := x.value(len(x.calls), r)
		out["o"+string(rune('0'+k))] = v
		all, _ := x.gathered(len(x.calls), r)
		x.written = x.written || slices.ContainsFunc(all, func(c candidate) bool { return c.value != nil })
	}
	x.result = out
}

// first returns the first that was written, else the constant; spoiled is whether a failure keeps it from being there.
func first(all []candidate, constant any) (v any, spoiled bool) {
	for _, c := range all {
		if c.value != nil {
			return c.value, false
		}
	}
	if constant != nil {
		return constant, false
	}
	for _, c := range all {
		if c.fine {
			return nil, false
		}
		spoiled = spoiled || c.bad
	}
	return nil, spoiled
}

// gathered returns all that an argument may come to, and what it comes to otherwise.
func (x *interpretation) gathered(i int, r read) (all []candidate, constant any) {
	for _, f := range r.from {
		if more, c := x.candidates(i, f); constant == nil {
			all, constant = append(all, more...), c
		}
	}
	if constant == nil {
		constant = r.literal
	}
	return all, constant
}

// value returns what an argument comes to.
func (x *interpretation) value(i int, r read) (v any, there, spoiled bool) {
	all, constant := x.gathered(i, r)
	v, spoiled = first(all, constant)
	there = v != nil || len(all) == 0 // null of the input is
	if !there {                       // a result that is null as a whole is, where nothing else may tell that it is not
		there = !slices.ContainsFunc(all, func(c candidate) bool { return !c.whole }) &&
			slices.ContainsFunc(all, func(c candidate) bool { return c.fine })
	}
	if r.text && (there || i == len(x.calls)) {
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
		case []any:
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
