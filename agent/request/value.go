package request

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// Value is a value as a record has it: whole, or the beginning of one that lies in a blob. Of one in a blob the first
// bytes are needed, as many as a preview may have (Context.ResultBytes) or all, so that everybody renders the same.
type Value struct {
	// JSON is the value, or its first bytes; nil for no value.
	JSON []byte
	// Bytes is how many the value has; 0 where JSON is all of it.
	Bytes int64
	// Object is the name by which blackboard_get returns it; empty for a value that is not on the blackboard.
	Object string
}

// Whole returns a value that is all there.
func Whole(json []byte) Value { return Value{JSON: json} }

func (v Value) there() bool { return len(v.JSON) > 0 || v.Bytes > 0 }

func (v Value) size() int64 { return max(v.Bytes, int64(len(v.JSON))) }

// sound returns JSON as it stands; what is none becomes a string, so that what somebody wrote never breaks a request.
func sound(raw []byte) []byte {
	if json.Valid(raw) {
		return raw
	}
	return jsontape.AppendQuoted(nil, string(raw))
}

// render returns a value, or a preview of one that has more than most bytes; more says how to read on from a byte on.
func (v Value) render(most int, more func(from int) string) (raw []byte, whole bool) {
	if !v.there() {
		return []byte("null"), true
	}
	if v.size() <= int64(most) && int64(len(v.JSON)) == v.size() {
		return sound(v.JSON), true
	}
	return v.preview(most, more), false
}

// preview is a part of a value as blackboard_get returns parts: the text of some of its bytes, and where they stand.
func (v Value) preview(most int, more func(from int) string) []byte {
	to := min(max(most, 0), len(v.JSON))
	for i := to - 1; i >= 0 && i > to-utf8.UTFMax; i-- {
		if utf8.RuneStart(v.JSON[i]) { // the last character, which may go on behind the preview
			if !utf8.FullRune(v.JSON[i:to]) {
				to = i
			}
			break
		}
	}
	var o jsontape.ObjectWriter
	o.Text("text", strings.ToValidUTF8(string(v.JSON[:to]), "\ufffd"))
	o.Int("from", 0)
	o.Int("to", int64(to))
	o.Int("bytes", v.size())
	if more != nil {
		o.Text("more", more(to))
	}
	return o.JSON()
}

// least is the shortest preview; below it a size says as much.
const least = 64

// halves returns the first rendering that has at most some bytes, of those with previews of at most n bytes, then
// half of it, and so on to none; the last one where none is so small. A rendering that is nil has more.
func halves(n, most int, render func(n int) []byte) []byte {
	for {
		b := render(n)
		if b != nil && len(b) <= most || n == 0 {
			return b
		}
		if n /= 2; n < least {
			n = 0
		}
	}
}

// bounded renders an object of the request's tail: members of more than each bytes are previews, and so is all of it
// where nothing else makes it fit into most bytes.
func bounded(raw []byte, each, most int, more func(member string) func(int) string) []byte {
	if raw = sound(raw); len(raw) <= each {
		return raw
	}
	out := halves(each, most, func(n int) []byte {
		var o jsontape.ObjectWriter
		if !jsontape.Members(raw, func(key, value []byte) bool {
			name := jsontape.Unquoted(key)
			v, _ := Whole(value).render(n, more(name))
			o.Add(name, v)
			return true
		}) {
			v, _ := Whole(raw).render(n, nil)
			return v
		}
		return o.JSON()
	})
	if len(out) > most {
		return Whole(raw).preview(each, nil)
	}
	return out
}
