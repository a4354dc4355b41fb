package dialect

import (
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/expression"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
)

// condition returns the condition of the step: its own, and that what it reads is there.
func (w *stepWriter) condition() string {
	own, alone := w.own()
	w.guard()
	switch {
	case alone && (len(w.guards) > 0 || !strings.HasPrefix(own, "$")): // only one reference by itself may be of any kind
		own = "truthy(" + own + ")"
	case own != "" && len(w.guards) > 0:
		own = "(" + own + ")"
	}
	if own != "" {
		w.guards = append(w.guards, own)
	}
	return strings.Join(w.guards, " and ")
}

// span is a reference in a condition.
type span struct {
	start, end int
	ref        ref
}

// own translates the call's condition. alone says that it is one reference and nothing else.
func (w *stepWriter) own() (text string, alone bool) {
	n := w.call.meta[metaIf]
	if n == 0 {
		return "", false
	}
	s, at := w.str(n), w.call.at+"/_if"
	var spans []span
	foreign := false
	x, err := expression.Compile(s, func(s string, i int) (int, string) {
		r, end, why, ok := refAt(s, i)
		switch {
		case ok && why == "":
			spans = append(spans, span{i, end, r})
			return end, ""
		case ok:
			return i, why
		case strings.HasPrefix(s[i:], "$ref:"):
			foreign = true
			return i, "references of plans with steps have no meaning beside calls"
		}
		return w.namesStep(s, i), ""
	})
	if foreign {
		w.add(fault.InvalidRef, at, "write †state.name for what a call wrote, without quotes, or $status:id for how it ended",
			"references of plans with \"steps\" have no meaning beside \"calls\": %s", clip(s))
		return "", false
	}
	if err != nil {
		w.add(err.Code, at, w.words(err.Hint), "%s", w.words(err.Message))
		return "", false
	}
	var b strings.Builder
	from := 0
	for _, x := range spans {
		b.WriteString(s[from:x.start])
		from = x.end
		b.WriteString(w.inOwn(x.ref, at))
	}
	b.WriteString(s[from:])
	refs := x.References()
	return strings.TrimSpace(b.String()), len(spans) == 1 && len(refs) == 1 && refs[0] == strings.TrimSpace(s)
}

// inOwn writes a reference of the call's own condition.
func (w *stepWriter) inOwn(r ref, at string) string {
	s, ok := w.source(operand{ref: r}, at)
	switch {
	case !ok:
		return "null"
	case !s.scalar():
		s = w.chosen(s, r.path)
	}
	return w.chain(s, "")
}

// namesStep returns where $status:id or $error:id.path ends at s[i:], which say how a call ended.
func (w *stepWriter) namesStep(s string, i int) int {
	for _, prefix := range []string{"$status:", "$error:"} {
		if !strings.HasPrefix(s[i:], prefix) {
			continue
		}
		id := i + len(prefix)
		end := plainEnd(s, id)
		if w.knows(s[id:end]) {
			w.named[s[id:end]] = true
			_, end, _ = parsePath(s, end)
			return end
		}
	}
	return 0
}

// after appends the ids of calls to wait for.
func (w *stepWriter) after(out []byte, n int32) []byte {
	at := w.call.at + "/_after"
	switch w.tape[n].Kind {
	case jsontape.String:
		return append(w.afterID(append(out, '['), n, at), ']')
	case jsontape.Array:
		out = append(out, '[')
		i := 0
		w.eachItem(n, func(item int32) {
			if i > 0 {
				out = append(out, ',')
			}
			out = w.afterID(out, item, string(jsontape.AppendIndex([]byte(at), i)))
			i++
		})
		return append(out, ']')
	default:
		w.add(fault.InvalidValue, at, `write "_after": ["id"]`, "_after must be a list of ids, but is %s", w.tape[n].Kind)
		return append(out, "[]"...)
	}
}

// afterID appends the id of a call to wait for.
func (w *stepWriter) afterID(out []byte, n int32, at string) []byte {
	if w.tape[n].Kind != jsontape.String {
		w.add(fault.InvalidValue, at, "write it in quotes", "must be the id of a call, but is %s", w.tape[n].Kind)
		return append(out, `""`...)
	}
	id := w.str(n)
	if r, end, _, ok := refAt(id, 0); ok && end == len(id) && r.of == ofState {
		if seen, ok := w.read(&view{call: w.in}, r.path); ok && len(seen.writers) > 0 {
			w.add(fault.InvalidValue, at, "write "+quoted(w.calls[seen.writers[0].call].id), "_after names calls, not paths of the state")
			return append(out, `""`...)
		}
	}
	if !w.knows(id) {
		hint := "ids are given by \"_id\"; without it, a call has the name of its tool, and then _2, _3, …"
		if better := idFrom(id); better != id && subjects.ValidStepID(better) && w.knows(better) {
			hint = "write " + quoted(better)
		}
		w.add(fault.UnknownRef, at, hint, "there is no call %q", clip(id))
	}
	return jsontape.AppendQuoted(out, id)
}
