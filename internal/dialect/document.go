package dialect

import (
	"maps"
	"slices"
	"strconv"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// document is a text that was scanned. Its root is node 0, which also stands for what is absent: it is no value of any
// member.
type document struct {
	src  []byte
	tape []jsontape.Node
}

// member returns the value of an object's member; 0 where it has none.
func (c *document) member(object int32, name string) (found int32) {
	c.eachMember(object, func(key string, value int32) {
		if key == name && found == 0 {
			found = value
		}
	})
	return found
}

// eachMember goes through the members of a node, which has none unless it is an object.
func (c *document) eachMember(object int32, do func(key string, value int32)) {
	if c.tape[object].Kind != jsontape.Object {
		return
	}
	for k := object + 1; k < c.tape[object].Next; k = c.tape[k+1].Next {
		do(c.str(k), k+1)
	}
}

// eachItem goes through the items of a node, which has none unless it is an array.
func (c *document) eachItem(array int32, do func(item int32)) {
	if c.tape[array].Kind != jsontape.Array {
		return
	}
	for n := array + 1; n < c.tape[array].Next; n = c.tape[n].Next {
		do(n)
	}
}

// str returns the text of a string or a key; it is empty for the root, which stands for what is absent.
func (c *document) str(n int32) string {
	if n == 0 {
		return ""
	}
	return c.tape[n].Inside().Text(c.src)
}

// raw returns the JSON of a node as it was written.
func (c *document) raw(n int32) []byte { return c.src[c.tape[n].Start:c.tape[n].End] }

// constant returns the node behind a path of some JSON; 0 where nothing is there, or null.
func (c *document) constant(n int32, p path) int32 {
	for _, e := range p {
		if n == 0 {
			return 0
		}
		switch at := int32(0); {
		case e.kind == isKey && c.tape[n].Kind == jsontape.Object:
			n = c.member(n, e.key)
		case e.kind == isIndex && c.tape[n].Kind == jsontape.Array:
			i := 0
			c.eachItem(n, func(item int32) {
				if i == e.index {
					at = item
				}
				i++
			})
			n = at
		default:
			return 0
		}
	}
	if n != 0 && c.tape[n].Kind == jsontape.Null {
		return 0
	}
	return n
}

// isNull reports whether null stands behind a path.
func (c *document) isNull(n int32, p path) bool {
	if n == 0 {
		return false
	}
	if len(p) == 0 {
		return c.tape[n].Kind == jsontape.Null
	}
	last := p[len(p)-1]
	parent := c.constant(n, p[:len(p)-1])
	if parent == 0 || last.kind != isKey || c.tape[parent].Kind != jsontape.Object {
		return false
	}
	found := c.member(parent, last.key)
	return found != 0 && c.tape[found].Kind == jsontape.Null
}

// keysOf returns the keys of an object, sorted; none of anything else.
func (c *document) keysOf(n int32) []string {
	keys := map[string]bool{}
	if n != 0 {
		c.eachMember(n, func(key string, _ int32) { keys[key] = true })
	}
	return slices.Sorted(maps.Keys(keys))
}

// follow returns how far a pointer leads into a value.
func (c *document) follow(n int32, tokens []string) string {
	at := ""
	for _, t := range tokens {
		next := int32(0)
		switch c.tape[n].Kind {
		case jsontape.Object:
			next = c.member(n, jsontape.UnescapeToken(t))
		case jsontape.Array:
			i := 0
			c.eachItem(n, func(item int32) {
				if strconv.Itoa(i) == t {
					next = item
				}
				i++
			})
		default: // a string that stands for what the pointer leads into
		}
		if next == 0 {
			break
		}
		n, at = next, at+"/"+t
	}
	return at
}
