package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
)

// entry refuses a reference to a for_each step whose path can't lead anywhere: what it yields is an array of entries.
// It reports whether it did.
func (w *walker) entry(r ref, step int, at site, below string) (refused bool) {
	if w.seek != 0 || leadsIntoEntries(r.path) {
		return false
	}
	if w.p.col.wants(fault.InvalidRef) {
		w.p.col.add(fault.InvalidRef, w.pointer()+below,
			fmt.Sprintf("%s%s can never be there: step %q has a for_each and yields an array of entries", refPrefix, clip(r.text), r.id),
			w.entryHint(r, step, &at))
	}
	return true
}

// leadsIntoEntries reports whether a path may lead to something in an array of entries.
func leadsIntoEntries(path []elem) bool {
	return len(path) == 0 || path[0].index != noIndex && (len(path) == 1 || isEntryField(&path[1]))
}

// isEntryField reports whether an element of a path is one of an entry's fields.
func isEntryField(e *elem) bool {
	return e.isKey && (e.key == "index" || e.key == "status" || e.key == "data" || e.key == "error")
}

// entryHint says how a reference to a for_each step is written.
func (w *walker) entryHint(r ref, step int, at *site) string {
	why := "a for_each step yields an array"
	switch first := &r.path[0]; {
	case first.index != noIndex: // an entry, and then something that it hasn't got
		why = "what the tool returned is under data"
	case first.key == "results" && (len(r.path) == 1 || r.path[1].index != noIndex):
		why = fmt.Sprintf("%s%s is that array itself", refPrefix, r.id)
	case first.key == "summary":
		why = "references see the entries alone, and each has a status"
	case isEntryField(first):
		why = "each entry has its own"
	}
	if write := w.mendHint(target{step: step, path: r.path}, at); write != "" {
		return why + ": " + write
	}
	return why
}

// pathText writes a path for a message, where it may be cut short.
func pathText(path []elem) string { return clip(pathInFull(path)) }

// pathInFull writes a path as it stands in a reference.
func pathInFull(path []elem) string { return pathWith(path, bareKey) }

// pathWith writes a path as it stands in a reference, with the keys in quotes that are not bare.
func pathWith(path []elem, bare func(key string) bool) string {
	var b []byte
	for i := range path {
		switch e := &path[i]; {
		case e.isKey && bare(e.key):
			b = append(append(b, '.'), e.key...)
		case e.isKey:
			b = append(append(b, `["`...), jsontape.AppendEscaped(nil, e.key)...)
			b = append(b, `"]`...)
		case e.index == hugeIndex:
			b = append(b, "[…]"...)
		case e.isEvery():
			b = append(b, "[*]"...)
		default:
			b = append(strconv.AppendInt(append(b, '['), int64(e.index), 10), ']')
		}
	}
	return string(b)
}

// bareKey reports whether a key needs no quotes in a path.
func bareKey(key string) bool {
	for i := 0; i < len(key); i++ {
		if !subjects.IsPlain(key[i]) {
			return false
		}
	}
	return key != ""
}

// bareInExpression reports whether a key needs no quotes in a condition, where "-" subtracts.
func bareInExpression(key string) bool { return bareKey(key) && strings.IndexByte(key, '-') < 0 }

// Item is what one item of a for_each step came to.
type Item struct {
	// Data is the JSON that the tool returned; empty counts as null. It is not read where Error is set.
	Data []byte
	// Error is nil for a success.
	Error *fault.Error
}

// What surrounds the data of an entry.
const (
	entryIndex = `{"index":`
	entryData  = `,"status":"ok","data":`
	entryError = `,"status":"error","error":`
)

// Entries builds what references to a for_each step see: an array with an entry for each item, in their order, as in
// [{"index":0,"status":"ok","data":…},{"index":1,"status":"error","error":{"code":…,"message":…}}]. The error is
// too_large for more than MaxOutput bytes, found before anything is built.
func Entries(items []Item) ([]byte, *fault.Error) {
	var failed map[int][]byte
	size := int64(len("[]") + max(0, len(items)-1)) // with the commas
	for i := range items {
		size += int64(len(entryIndex) + len(strconv.Itoa(i)) + len("}"))
		if items[i].Error == nil {
			size += int64(len(entryData) + len(items[i].data()))
			continue
		}
		if failed == nil {
			failed = map[int][]byte{}
		}
		failed[i] = errorText(items[i].Error)
		size += int64(len(entryError) + len(failed[i]))
	}
	if size > MaxOutput {
		return nil, fault.New(fault.TooLarge, "the results of all items would have %d bytes together, at most %d are allowed", size, MaxOutput).
			WithHint("let the tool return less for each item, or hand large data on by a name or an address")
	}
	b := append(make([]byte, 0, size), '[')
	for i := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, entryIndex...), int64(i), 10)
		if items[i].Error == nil {
			b = append(append(b, entryData...), items[i].data()...)
		} else {
			b = append(append(b, entryError...), failed[i]...)
		}
		b = append(b, '}')
	}
	return append(b, ']'), nil
}

func (t *Item) data() []byte {
	if len(t.Data) == 0 {
		return null
	}
	return t.Data
}

// errorText writes an error's envelope; without its details where they are no JSON.
func errorText(e *fault.Error) []byte {
	b, err := json.Marshal(e)
	if err != nil {
		plain := *e
		plain.Details = nil
		b, _ = json.Marshal(&plain) // of strings and numbers only
	}
	return b
}

// Envelope builds what a run's outcome shows of a for_each step: {"results":[…],"summary":{"ok":n,"error":m}}. entries
// are those that Entries built.
func Envelope(entries []byte) []byte {
	ok, failed := 0, 0
	for i := jsontape.Item(entries, 0, 0); i >= 0; i = jsontape.NextItem(entries, i) {
		if at := jsontape.Member(entries, i, "status"); at >= 0 && bytes.HasPrefix(entries[at:], []byte(`"ok"`)) {
			ok++
		} else {
			failed++
		}
	}
	b := make([]byte, 0, len(entries)+64)
	b = append(append(b, `{"results":`...), entries...)
	b = strconv.AppendInt(append(b, `,"summary":{"ok":`...), int64(ok), 10)
	b = strconv.AppendInt(append(b, `,"error":`...), int64(failed), 10)
	return append(b, "}}"...)
}
