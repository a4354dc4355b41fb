package agent

import (
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
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
	rule.when = p.aboutObject(m["when"])
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

// mostSinks is how many sinks an entry may name.
const mostSinks = 8

// sound reports whether objects may be sent to a sink: what can be named leads nowhere but below the tenant of a run.
func (s Sink) sound() bool {
	return s.Bucket == "" && subjects.ValidSinkSubject(s.Subject) || s.Subject == "" && subjects.ValidSinkBucket(s.Bucket)
}

// BadSinks are the problems of the sinks that an entry names. They are those of who applies a definition: to such a sink of one
// that was applied before nothing is sent, and all else of it goes on.
func (e *Entry) BadSinks() (problems []fault.Problem) {
	problem := func(code fault.Code, hint, message string, args ...any) {
		p := fault.New(code, message, args...)
		problems = append(problems, fault.Problem{Code: code, Path: e.At + "/artifact/sink", Message: p.Message, Hint: hint})
	}
	seen := map[Sink]bool{}
	for _, s := range e.Sinks() {
		switch {
		case s.sound():
		case s.Bucket == "":
			problem(fault.InvalidValue, "write 1 to 8 words of A-Z a-z 0-9 _ - with dots between them: it is published on sink.<tenant>.<subject>", "%q is no subject of a sink", clip(s.Subject))
		default:
			problem(fault.InvalidValue, "write one word of A-Z a-z 0-9 _ -: it is put into the bucket sinks, under <tenant>.<bucket>", "%q is no bucket of a sink", clip(s.Bucket))
		}
		if seen[s] {
			problem(fault.InvalidValue, "leave one of them out", "the sink %q is named twice", clip(s.Subject+s.Bucket))
		}
		seen[s] = true
	}
	if len(e.Sinks()) > mostSinks {
		problem(fault.LimitExceeded, "have whoever takes the objects pass them on", "an entry has at most %d sinks", mostSinks)
	}
	return problems
}

// Sends reports whether objects of an agent go to sinks.
func Sends(d *Definition) bool {
	for _, e := range d.entries {
		if len(e.Sinks()) > 0 {
			return true
		}
	}
	return false
}
