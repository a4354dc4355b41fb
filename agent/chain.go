package agent

import (
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// chainEntry reads the tools of an object that some tool returns.
func (p *entryReader) chainEntry(m map[string]value, at string, in place) {
	typ := p.name(m["chain"], `write the type of the object, or "*" for any`)
	if m == nil || typ == "" {
		return
	}
	if typ != anyType && !validName(typ) {
		p.problem(fault.InvalidValue, m["chain"].at, "a type is 1 to 128 of A-Z a-z 0-9 _ . : / -", "%q is no type", clip(typ))
		return
	}
	for _, other := range p.def.chains {
		if other.typ == typ {
			p.problem(fault.InvalidValue, m["chain"].at, "put its tools into that at "+other.at, "there are two chains of %q", clip(typ))
			return
		}
	}
	c := &chain{typ: typ, when: p.aboutObject(m["when"]), at: at}
	p.def.chains = append(p.def.chains, c)
	binds := p.binds(m["bind"], bindWords, true)
	if !m["tools"].there() {
		if typ != anyType {
			p.problem(fault.InvalidValue, at, `add "tools": […]`, "the chain of %q has no tools", clip(typ))
		}
		return
	}
	in.chain, in.chainBinds = c, binds
	if m["tools"].kind() != jsontape.Array {
		p.wrong(m["tools"], "an array of tools", "")
		return
	}
	for _, v := range m["tools"].items() {
		before := len(p.def.entries)
		p.entry(v, in)
		if v.kind() == jsontape.String && len(p.def.entries) > before { // {"tool": …} takes bound arguments out by itself
			p.bind(p.def.entries[before], value{at: m["bind"].at}, in)
		}
	}
}
