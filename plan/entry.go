package plan

import (
	"fmt"
	"strconv"

	"github.com/stepjet/stepjet/fault"
)

// entry refuses a reference to a for_each step whose path can't lead anywhere: what it yields is an array of entries.
func (w *walker) entry(r ref, below string) {
	if w.seek != 0 || len(r.path) == 0 {
		return
	}
	first := &r.path[0]
	if first.index != noIndex && (len(r.path) == 1 || isEntryField(&r.path[1])) {
		return
	}
	if w.p.col.wants(fault.InvalidRef) {
		w.p.col.add(fault.InvalidRef, w.pointer()+below,
			fmt.Sprintf("%s%s can never be there: step %q has a for_each and yields an array of entries", refPrefix, clip(r.text), r.id), entryHint(r))
	}
}

// isEntryField reports whether an element of a path is one of an entry's fields.
func isEntryField(e *elem) bool {
	return e.isKey && (e.key == "index" || e.key == "status" || e.key == "data" || e.key == "error")
}

// entryHint says how a reference to a for_each step is written.
func entryHint(r ref) string {
	all := refPrefix + r.id
	if r.path[0].index != noIndex { // an entry, and then something that it hasn't got
		return fmt.Sprintf("what the tool returned is under data: write %s%s.data%s", all, pathText(r.path[:1]), pathText(r.path[1:]))
	}
	rest := r.path[1:]
	switch r.path[0].key {
	case "results":
		if len(rest) == 0 {
			return fmt.Sprintf("%s is that array itself", all)
		}
		if rest[0].index != noIndex {
			return fmt.Sprintf("%s is that array itself: write %s%s", all, all, pathText(rest))
		}
	case "summary":
		return fmt.Sprintf("references see the entries alone; each has a status: %s[0].status", all)
	case "data", "error", "status", "index":
		return fmt.Sprintf("each entry has its own: write %s[0]%s", all, pathText(r.path))
	default:
		rest = r.path
	}
	return fmt.Sprintf("a for_each step yields an array: write %s[0].data%s", all, pathText(rest))
}

// pathText writes a path as it stands in a reference.
func pathText(path []elem) string {
	var b []byte
	for i := range path {
		switch e := &path[i]; {
		case e.isKey && bareKey(e.key):
			b = append(append(b, '.'), e.key...)
		case e.isKey:
			b = append(append(b, `["`...), appendEscaped(nil, e.key)...)
			b = append(b, `"]`...)
		case e.index == hugeIndex:
			b = append(b, "[…]"...)
		case e.isEvery():
			b = append(b, "[*]"...)
		default:
			b = append(strconv.AppendInt(append(b, '['), int64(e.index), 10), ']')
		}
	}
	return clip(string(b))
}

// bareKey reports whether a key needs no quotes in a path.
func bareKey(key string) bool {
	for i := 0; i < len(key); i++ {
		if !isIDByte(key[i]) {
			return false
		}
	}
	return key != ""
}
