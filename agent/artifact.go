package agent

import (
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// artifactOf reads what of a result goes to the blackboard.
func (p *parser) artifactOf(e *Entry, v value) {
	if !v.there() {
		return
	}
	m := p.object(v, "an artifact", "type", "path", "when", "sink")
	if m == nil {
		return
	}
	rule := &artifactRule{typ: p.name(m["type"], "write the name of its type")}
	if !m["type"].there() {
		p.problem(fault.InvalidValue, v.at, `add "type": "Document"`, "an artifact has a type")
	} else if rule.typ != "" && !validName(rule.typ) {
		p.problem(fault.InvalidValue, m["type"].at, "a type is 1 to 128 of A-Z a-z 0-9 _ . : / -", "%q is no type", clip(rule.typ))
	}
	if s := p.text(m["path"]); s != "" {
		r, end, why := readReference("$result"+dotted(s), 1, []string{ofResult})
		if why == "" && end != len("$result"+dotted(s)) {
			why = "it ends before " + clip(("$result" + dotted(s))[end:])
		}
		if why != "" {
			p.problem(fault.InvalidRef, m["path"].at, `write "document" or "hits[0].document"`, "%q is no path: %s", clip(s), why)
		}
		rule.path = r.path
	}
	rule.when = p.condition(m["when"], chainWords)
	rule.sinks = p.sinks(m["sink"])
	if rule.typ != "" {
		e.artifact = rule
	}
}

// dotted makes the rest of a reference of a path.
func dotted(path string) string {
	if strings.HasPrefix(path, "[") {
		return path
	}
	return "." + path
}

func (p *parser) sinks(v value) (all []Sink) {
	if !v.there() {
		return nil
	}
	list := []value{v}
	if v.kind() == jsontape.Array {
		list = v.items()
	}
	for _, x := range list {
		m := p.object(x, "a sink", "subject", "bucket")
		s := Sink{Subject: p.text(m["subject"]), Bucket: p.text(m["bucket"])}
		if m != nil && (s.Subject == "") == (s.Bucket == "") {
			p.problem(fault.InvalidValue, x.at, `write {"subject": "…"} or {"bucket": "…"}`, "a sink is a subject or a bucket")
			continue
		}
		all = append(all, s)
	}
	return all
}
