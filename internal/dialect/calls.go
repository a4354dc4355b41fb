package dialect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/subjects"
)

// call is one call of a tool, or of a template by _delegate.
type call struct {
	at   string // its pointer in what was submitted
	node int32  // 0 for one that is no object
	id   string
	meta [metaFields]int32 // values of its own fields, 0 for what is absent

	wrong [metaFields]bool // fields that are there, but are not what they have to be

	results, errors []path // where its result and its error are written
	method          string // how its result is put together with what was written before
}

// The fields of a call that are no arguments.
const (
	metaTool = iota
	metaOutput
	metaID
	metaIf
	metaAfter
	metaMethod
	metaDelegate
	metaScopes
	metaFields
)

var metaNames = [metaFields]string{"_tool", "_outputPath", "_id", "_if", "_after", "_outputMethod", "_delegate", "_scopes"}

// readCalls reads what of the calls stands by itself: all but their readings.
func (c *compiler) readCalls(list int32) {
	c.eachItem(list, func(n int32) {
		c.in = len(c.calls)
		k := call{at: "/calls/" + strconv.Itoa(c.in)}
		if c.tape[n].Kind == jsontape.Object {
			k.node = n
			c.readMeta(&k)
		} else {
			c.add(fault.InvalidValue, k.at, `a call is an object: {"_tool": "…", "_outputPath": "†state.…"}`,
				"a call must be an object, but is %s", c.tape[n].Kind)
		}
		c.calls = append(c.calls, k)
	})
	c.nameCalls()
	for i := range c.calls {
		if c.in = i; c.calls[i].id != "" {
			c.readOutput(&c.calls[i])
		}
	}
}

// readMeta reads the fields of a call that begin with "_".
func (c *compiler) readMeta(k *call) {
	c.eachMember(k.node, func(key string, value int32) {
		f := slices.Index(metaNames[:], key)
		switch kind := c.tape[value].Kind; {
		case f < 0 && strings.HasPrefix(key, "_") && !strings.HasPrefix(key, "__"):
			c.strangeMeta(k, key)
		case f < 0 || kind == jsontape.Null:
		case f == metaScopes && kind != jsontape.Object:
			c.add(fault.InvalidValue, k.at+"/"+key, `write "_scopes": {"name": "†state.name"}`, "%s must be an object, but is %s", key, kind)
			k.wrong[f] = true
		case kind != jsontape.String && f != metaAfter && f != metaScopes:
			c.add(fault.InvalidValue, k.at+"/"+key, "write it in quotes", "%s must be a string, but is %s", key, kind)
			k.wrong[f] = true
		default:
			k.meta[f] = value
		}
	})
	k.checkCallee(c)
}

// checkCallee checks that a call says what it calls, once, and hands that its input in the one way that goes with it.
func (k *call) checkCallee(c *compiler) {
	has := func(f int) bool { return k.meta[f] != 0 || k.wrong[f] }
	switch {
	case has(metaTool) && has(metaDelegate):
		c.add(fault.InvalidValue, k.at+"/_delegate", "make two calls of it", "the call has a _tool as well")
	case !has(metaTool) && !has(metaDelegate):
		c.add(fault.InvalidID, k.at, `write "_tool": "name"`, "the call has no _tool")
	}
	if has(metaScopes) && !has(metaDelegate) {
		c.add(fault.InvalidValue, k.at+"/_scopes", `write the arguments of a tool into the call; "_scopes" is what a template is handed that "_delegate" names`,
			"the call has no _delegate")
	}
	if !has(metaDelegate) || has(metaTool) {
		return
	}
	c.eachMember(k.node, func(key string, _ int32) {
		if !strings.HasPrefix(key, "_") || strings.HasPrefix(key, "__") {
			c.add(fault.UnknownField, k.at+string(jsontape.AppendToken(nil, key)), fmt.Sprintf(`write "_scopes": {%q: …}`, clip(strings.TrimPrefix(key, "_"))),
				"what a delegate is handed stands in _scopes")
		}
	})
}

// callee returns the field that says what is called, and its value; 0 where none does.
func (k *call) callee() (field int, name int32) {
	if k.meta[metaDelegate] != 0 {
		return metaDelegate, k.meta[metaDelegate]
	}
	return metaTool, k.meta[metaTool]
}

// strangeMeta refuses a field that begins with "_" and that nobody knows: to ignore it would run something else than was
// meant.
func (c *compiler) strangeMeta(k *call, key string) {
	at := k.at + string(jsontape.AppendToken(nil, key))
	switch meant := text.NearMiss(key, metaNames[:]...); {
	case meant != "":
		c.add(fault.UnknownField, at, fmt.Sprintf("write %q", meant), "a call has no field %q", clip(key))
	default:
		c.add(fault.UnknownField, at, fmt.Sprintf("a call has %s; an argument of that name is written %q", strings.Join(metaNames[:], ", "), "_"+clip(key)),
			"a call has no field %q", clip(key))
	}
}

// nameCalls gives each call its id: what _id says, else the name of what it calls, with a number where that is taken.
func (c *compiler) nameCalls() {
	c.ids = make(map[string]int, len(c.calls))
	for i := range c.calls {
		k := &c.calls[i]
		if n := k.meta[metaID]; n != 0 {
			k.id = c.str(n)
			c.takeID(k, i)
		}
	}
	c.nextID = map[string]int{}
	for i := range c.calls {
		k := &c.calls[i]
		if _, name := k.callee(); k.id == "" && name != 0 {
			k.id = c.freeID(idFrom(c.str(name)), c.nextID)
			c.ids[k.id] = i
		}
	}
}

// takeID checks an id that was given.
func (c *compiler) takeID(k *call, i int) {
	at := k.at + "/_id"
	if first, taken := c.ids[k.id]; taken {
		c.add(fault.DuplicateStep, at, "give each call an id of its own", "the id %q is used by call number %d already", clip(k.id), first+1)
		return
	}
	if !subjects.ValidStepID(k.id) {
		c.add(fault.InvalidID, at, fmt.Sprintf("an id is 1 to 64 of A-Z a-z 0-9 _ -, as in %q", idFrom(k.id)), "%q is no id", clip(k.id))
	}
	c.ids[k.id] = i
}

// idFrom makes an id of a tool's name.
func idFrom(name string) string {
	id := strings.Map(func(r rune) rune {
		if r < 0x80 && subjects.IsPlain(byte(r)) {
			return r
		}
		return '_'
	}, name)
	if id == "" {
		return "call"
	}
	return id[:min(len(id), subjects.MaxStepID)]
}

// freeID returns the id, or id_2, id_3, … . next remembers how far it went.
func (c *compiler) freeID(id string, next map[string]int) string {
	if _, taken := c.ids[id]; !taken {
		return id
	}
	for n := max(next[id], 2); ; n++ {
		suffix := "_" + strconv.Itoa(n)
		better := id[:min(len(id), subjects.MaxStepID-len(suffix))] + suffix
		if _, taken := c.ids[better]; !taken {
			next[id] = n + 1
			return better
		}
	}
}

// knows reports whether there is a call of an id.
func (c *compiler) knows(id string) bool {
	i, known := c.ids[id]
	return known && i >= 0
}

// readOutput reads where a call writes.
func (c *compiler) readOutput(k *call) {
	n := k.meta[metaOutput]
	k.method = c.method(k)
	if n == 0 {
		k.results = []path{{{key: k.id}}}
		return
	}
	at := k.at + "/_outputPath"
	parts := strings.Split(c.str(n), "||")
	if len(parts) > 2 {
		c.add(fault.InvalidValue, at, `write "†state.result || †state.error"`, "there is one place for the result and, behind ||, one for the error")
		return
	}
	k.results = c.outputPaths(at, parts[0])
	if len(parts) == 2 {
		k.errors = c.outputPaths(at, parts[1])
	}
}

// methodSet puts a result in the place of what was written there before.
const methodSet = "set"

// method returns how a call's result is put together with what was written before.
func (c *compiler) method(k *call) string {
	methods := []string{methodSet, "merge", "push", "concat"}
	n := k.meta[metaMethod]
	if n == 0 {
		return methods[0]
	}
	name := c.str(n)
	if !slices.Contains(methods, name) {
		hint := "write one of " + strings.Join(methods, ", ")
		if meant := text.NearMiss(name, methods...); meant != "" {
			hint = "write " + quoted(meant)
		}
		c.add(fault.InvalidValue, k.at+"/_outputMethod", hint, "%s is no method", clip(quoted(name)))
	}
	return name
}

// outputPaths reads places in the state that are parted by &&.
func (c *compiler) outputPaths(at, s string) (all []path) {
	for _, part := range strings.Split(s, "&&") {
		part = strings.TrimSpace(part)
		r, end, why, ok := refAt(part, 0)
		switch {
		case ok && why == "" && end == len(part) && r.of == ofState && r.path.keysOnly():
			all = append(all, r.path)
		case ok && why != "":
			c.add(fault.InvalidValue, at, `write "_outputPath": "†state.name"`, "%s", why)
		case ok && r.of == ofInput:
			c.add(fault.InvalidValue, at, "write to †state", "the input can't be written to")
		case ok && why == "" && end == len(part):
			c.add(fault.InvalidValue, at, "write to a key, and collect results in a list by \"_outputMethod\": \"push\"", "nothing can be written to an item of a list: %s", clip(part))
		default:
			c.add(fault.InvalidValue, at, `write "_outputPath": "†state.name", or "†state.result || †state.error"`, "%s is no place in the state", clip(quoted(part)))
		}
	}
	return all
}
