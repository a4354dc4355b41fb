package plan

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

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
