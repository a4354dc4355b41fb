package worker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// What is in this file is pure: how the arguments of calls become those of a batch, and how its answer becomes theirs.

// call is what one step brings to a batch.
type call struct {
	items []json.RawMessage
	array bool   // it brought an array, and gets an envelope; else it is one item, and gets what came of it
	rest  string // the members beside the array, sorted and compact: `,"a":1`; calls of one batch have the same
}

// split reads a step's arguments: those that have the batch's argument bring an array of items, all others are one item
// themselves. Errors have code invalid_arguments.
func split(args []byte, b tool.Batch) (call, *fault.Error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(args, &members); err != nil {
		return call{}, fault.New(fault.InvalidArguments, "the arguments can't be read: %v", err)
	}
	raw, array := members[b.Argument]
	if !array {
		return call{items: []json.RawMessage{args}}, nil
	}
	c := call{array: true}
	if err := json.Unmarshal(raw, &c.items); err != nil || c.items == nil {
		return call{}, fault.New(fault.InvalidArguments, "the argument %q must be an array of items", b.Argument)
	}
	if n := len(c.items); n > b.MaxItems {
		return call{}, fault.New(fault.InvalidArguments, "%q has %d items; the tool takes at most %d at a time", b.Argument,
			n, b.MaxItems).
			WithHint("spread them over several steps of at most %d items, or use for_each with one item a step", b.MaxItems)
	}
	delete(members, b.Argument)
	c.rest = rest(members)
	return c, nil
}

func rest(members map[string]json.RawMessage) string {
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(members)) {
		key, _ := marshal(name) // a string can't fail
		out.WriteByte(',')
		out.Write(key)
		out.WriteByte(':')
		_ = json.Compact(&out, members[name]) // it was decoded from JSON
	}
	return out.String()
}

// join makes the arguments of a batch of its calls.
func join(argument string, calls []call) []byte {
	key, _ := marshal(argument)
	size := len(key) + 8
	for _, c := range calls {
		size += len(c.rest)
		for _, item := range c.items {
			size += len(item) + 1
		}
	}
	out := make([]byte, 0, size)
	out = append(append(append(out, '{'), key...), ":["...)
	first := true
	for _, c := range calls {
		for _, item := range c.items {
			if !first {
				out = append(out, ',')
			}
			first = false
			out = append(out, item...)
		}
	}
	out = append(out, ']')
	if len(calls) > 0 {
		out = append(out, calls[0].rest...)
	}
	return append(out, '}')
}

// verdict is what came of one item, or of one call.
type verdict struct {
	body []byte
	err  *fault.Error // nil: body counts
}

// envelope is how a tool answers to a batch, and how a call that brought an array is answered.
type envelope struct {
	Results []itemAnswer `json:"results"`
}

type itemAnswer struct {
	Index  *int            `json:"index"`
	Status string          `json:"status"`
	Data   json.RawMessage `json:"data"`
	Error  json.RawMessage `json:"error"`
}

// expected says what an answer should look like.
const expected = `answer {"results":[{"index":0,"status":"ok","data":…},{"index":1,"status":"error","error":{"message":…}}],` +
	`"summary":{"ok":1,"error":1}}: one result for each item, in their order`

func wrongEnvelope(format string, args ...any) *fault.Error {
	return fault.New(fault.ToolTerminal, "the tool's answer to a batch can't be used: "+format, args...).
		WithHint("%s", expected)
}

// readEnvelope reads a tool's answer to n items. Errors have code tool_terminal.
func readEnvelope(body []byte, n int) ([]verdict, *fault.Error) {
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil || e.Results == nil {
		return nil, wrongEnvelope("it is no object with the array \"results\"")
	}
	if len(e.Results) != n {
		return nil, wrongEnvelope("it has %d results for %d items", len(e.Results), n)
	}
	all := make([]verdict, n)
	for i, r := range e.Results {
		switch {
		case r.Index == nil:
			return nil, wrongEnvelope("result number %d has no index", i)
		case *r.Index != i:
			return nil, wrongEnvelope("result number %d has the index %d", i, *r.Index)
		case r.Status == "ok":
			all[i].body = r.Data
		case r.Status == "error":
			all[i].err = wire.ParseError(r.Error, wire.Codes{Replan: true})
			if len(r.Error) == 0 || string(r.Error) == "null" {
				all[i].err = fault.New(fault.ToolFailed, "the item failed without saying why")
			}
		default:
			return nil, wrongEnvelope("result number %d has the status %q, which is neither ok nor error", i,
				text.Clip(r.Status, 40))
		}
	}
	return all, nil
}

// writeEnvelope writes what came of items.
func writeEnvelope(items []verdict) []byte {
	out := []byte(`{"results":[`)
	failed := 0
	for i, v := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(strconv.AppendInt(append(out, `{"index":`...), int64(i), 10), `,"status":"`...)
		if v.err != nil {
			failed++
			raw, err := json.Marshal(v.err)
			if err != nil { // its details are no JSON
				short := *v.err
				short.Details = nil
				raw, _ = json.Marshal(&short)
			}
			out = append(append(append(out, `error","error":`...), raw...), '}')
			continue
		}
		out = append(out, `ok","data":`...)
		if len(v.body) == 0 {
			out = append(out, "null"...)
		}
		out = append(append(out, v.body...), '}')
	}
	return fmt.Appendf(out, `],"summary":{"ok":%d,"error":%d}}`, len(items)-failed, failed)
}

// fan returns each call what came of its items. Under fail-fast one failed item fails all calls: its own with its
// error, the others with one that tells of it; sees reports whether a call may read what happened to another (of its
// tenant).
func fan(calls []call, items []verdict, how tool.Propagation, sees func(call, other int) bool) []verdict {
	out := make([]verdict, len(calls))
	culprit, at, failure := -1, 0, (*fault.Error)(nil)
	next := 0
	for i, c := range calls {
		own := items[next : next+len(c.items)]
		switch bad := slices.IndexFunc(own, func(v verdict) bool { return v.err != nil }); {
		case how == tool.FailFast && bad >= 0:
			out[i].err = own[bad].err
			if culprit < 0 {
				culprit, at, failure = i, next+bad, own[bad].err
			}
		case c.array:
			out[i].body = writeEnvelope(own)
		default:
			out[i] = own[0]
		}
		next += len(c.items)
	}
	if culprit < 0 {
		return out
	}
	for i := range out {
		if out[i].err == nil {
			out[i] = verdict{err: spread(failure, at, sees(i, culprit))}
		}
	}
	return out
}

// spread is what the failure of an item is to the other calls of its batch.
func spread(f *fault.Error, item int, told bool) *fault.Error {
	why := ""
	if told {
		why = ": " + f.Message
	}
	return &fault.Error{
		Code: fault.ToolFailed, Message: "item " + strconv.Itoa(item) + " of the batch failed" + why,
		Hint: "the tool's error_propagation is fail-fast: one failed item fails all of its batch", Retryable: f.Retryable,
		RetryAfter: f.RetryAfter,
	}
}
