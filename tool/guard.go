package tool

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/expression"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
)

// args begins a reference in a condition of a contract.
const args = "$args"

// argStep is one element of the path of such a reference: a key, an item, or each item.
type argStep struct {
	Elem
	each bool
}

// readArgs is the expression.Reader of contracts: "$args" with a path.
func readArgs(s string, i int) (end int, why string) {
	if !strings.HasPrefix(s[i:], args) {
		return 0, ""
	}
	each := 0
	for end = i + len(args); end < len(s); {
		e, next, ok := argElement(s, end)
		if !ok {
			break
		}
		if e.each {
			each++
		}
		end = next
	}
	switch {
	case each > 1:
		return end, "a path has [*] once at most"
	case end < len(s) && (subjects.IsPlain(s[end]) && s[end] != '-' || s[end] == '[' || s[end] == '.'):
		return end, "a path is .key, [0], [*] or [\"any key\"]"
	}
	return end, ""
}

// argPath returns the path of a reference that readArgs has read.
func argPath(ref string) (path []argStep) {
	for i := len(args); i < len(ref); {
		e, end, _ := argElement(ref, i)
		path, i = append(path, e), end
	}
	return path
}

// elems returns the path as a schema is looked at.
func elems(path []argStep) []Elem {
	all := make([]Elem, len(path))
	for i, e := range path {
		all[i] = e.Elem
	}
	return all
}

// argElement reads one element of a path at s[i:]: a key, an index of one or more digits, or [*].
func argElement(s string, i int) (e argStep, end int, ok bool) {
	switch {
	case s[i] == '.':
		for end = i + 1; end < len(s) && subjects.IsPlain(s[end]); {
			end++
		}
		return argStep{Elem: Elem{Key: s[i+1 : end], Index: -1, IsKey: true}}, end, end > i+1
	case strings.HasPrefix(s[i:], "[*]"):
		return argStep{each: true}, i + len("[*]"), true
	case strings.HasPrefix(s[i:], `["`):
		key, err := strconv.QuotedPrefix(s[i+1:])
		end = i + 1 + len(key)
		if err != nil || end >= len(s) || s[end] != ']' || json.Unmarshal([]byte(key), &e.Key) != nil {
			return e, i, false
		}
		e.IsKey, e.Index = true, -1
		return e, end + 1, true
	case s[i] == '[':
		digits, rest, closed := strings.Cut(s[i+1:], "]")
		n, err := strconv.ParseUint(digits, 10, 31)
		return argStep{Elem: Elem{Index: int(n)}}, len(s) - len(rest), closed && err == nil
	}
	return e, i, false
}

// guard is a compiled condition of a contract.
type guard struct {
	condition *expression.Expression
	refs      []string
	paths     [][]argStep
	work      int // that is left for all items of a call
}

// guardWork bounds the time for one call, in units of expression.Limits.Work: a fifth of a second.
const guardWork = 40 << 20

func newGuard(x *expression.Expression) *guard {
	g := &guard{condition: x, refs: x.References(), work: guardWork}
	for _, ref := range g.refs {
		g.paths = append(g.paths, argPath(ref))
	}
	return g
}

// wants evaluates the condition on one view of the arguments.
func (g *guard) wants(on given) (wanted bool, why *fault.Error) {
	astray := ""
	limits := expression.ConditionLimits
	limits.Work = &g.work
	holds, known, why := g.condition.Decided(func(i int) ([]byte, bool) {
		value, ok, strays := on.find(g.paths[i])
		if strays {
			astray = g.refs[i]
		}
		return value, ok
	}, limits)
	if why == nil && astray != "" {
		why = fault.New(fault.ConditionFailed, "%s goes into a value that has no such parts", clip(astray))
	}
	return holds || !known || why != nil, why
}

// wantsBatch evaluates the condition on a call of a tool with a batch, in the form that the condition speaks of.
func (g *guard) wantsBatch(arguments []byte, batch string) (wanted bool, why *fault.Error) {
	list := jsontape.Member(arguments, jsontape.SkipSpace(arguments, 0), batch)
	switch inArray := g.speaksOf(batch); {
	case inArray && list < 0:
		one := append(append([]byte("["), arguments...), ']')
		return g.wants(given{all: arguments, batch: batch, array: one})
	case inArray || list < 0:
		return g.wants(given{all: arguments})
	}
	if arguments[list] != '[' {
		return true, nil // no tool takes it: its own check says so, once somebody has seen it
	}
	for i := jsontape.Item(arguments, list, 0); i >= 0; i = jsontape.NextItem(arguments, i) {
		item := arguments[i:jsontape.SkipValue(arguments, i)]
		if wanted, why = g.wants(given{all: arguments, batch: batch, item: item}); wanted {
			return wanted, why
		}
	}
	return false, nil
}

// speaksOf reports whether the condition refers to an argument.
func (g *guard) speaksOf(argument string) bool {
	for _, path := range g.paths {
		if len(path) > 0 && path[0].IsKey && path[0].Key == argument {
			return true
		}
	}
	return false
}

// given is the arguments of a call as a condition sees them.
type given struct {
	all   []byte
	batch string // the argument in whose place item or array stands; "" for none
	item  []byte // its members come before those of all
	array []byte // what the argument would be
}

// find returns what is at the end of a path. astray is set where it goes into a value that has no parts of that kind.
func (g given) find(path []argStep) (value []byte, ok, astray bool) {
	if len(path) == 0 || !path[0].IsKey {
		return follow(g.all, path)
	}
	switch key := path[0].Key; {
	case g.batch != "" && key == g.batch:
		if g.array == nil {
			return nil, false, false
		}
		return follow(g.array, path[1:])
	case g.item != nil && (g.item[0] != '{' || jsontape.Member(g.item, 0, key) >= 0):
		return follow(g.item, path)
	}
	return follow(g.all, path)
}

// follow returns what is at the end of a path in JSON. Of [*] it is an array, and nothing where an item lacks it: what
// asks for the sum of all must not be told that of some.
func follow(raw []byte, path []argStep) (value []byte, ok, astray bool) {
	at := jsontape.SkipSpace(raw, 0)
	for n, e := range path {
		switch {
		case at >= len(raw):
			return nil, false, true
		case e.each && raw[at] == '[':
			return followEach(raw, at, path[n+1:])
		case e.each:
			return nil, false, raw[at] != 'n'
		case e.IsKey && raw[at] == '{':
			at = jsontape.Member(raw, at, e.Key)
		case !e.IsKey && raw[at] == '[':
			at = jsontape.Item(raw, at, e.Index)
		default:
			return nil, false, raw[at] != 'n'
		}
		if at < 0 {
			return nil, false, false
		}
	}
	return raw[at:jsontape.SkipValue(raw, at)], true, false
}

func followEach(raw []byte, at int, path []argStep) (value []byte, ok, astray bool) {
	all := [][]byte{}
	for i := jsontape.Item(raw, at, 0); i >= 0; i = jsontape.NextItem(raw, i) {
		value, ok, astray := follow(raw[i:jsontape.SkipValue(raw, i)], path)
		if !ok {
			return nil, false, astray
		}
		all = append(all, value)
	}
	return append(append([]byte("["), bytes.Join(all, []byte(","))...), ']'), true, false
}
