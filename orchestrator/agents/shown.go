package agents

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/wire"
)

// mostBound is how many bytes of a bound argument a person is shown; of a longer one it is its size and digest.
const mostBound = 4_096

// boundTo stands for a bound argument whose value is not there yet, or is too long.
type boundTo struct {
	To     json.RawMessage `json:"bound_to,omitempty"`
	Bytes  int             `json:"bytes,omitempty"`
	SHA256 string          `json:"sha256,omitempty"`
}

// boundOf returns what the calls of an answer are made with that its planner does not see, by their paths, as far as that is known
// before any of them is made: a person approves of it.
func boundOf(l *Loop, round int, x *reading) map[string]map[string]json.RawMessage {
	f, err := l.begin(round)
	if err != nil {
		return nil
	}
	all := map[string]map[string]json.RawMessage{}
	for i, c := range x.answer.Calls {
		waits := len(x.admits.Behind(i)) > 0
		for _, b := range f.Bound(c.Entry) {
			v := b.Value
			switch {
			case waits && b.Moves, b.Value == nil && l.Bound:
				v, _ = jsontape.Marshal(boundTo{To: b.Reference}) // of texts
			case b.Value == nil:
				v = json.RawMessage("null")
			case len(b.Value) > mostBound:
				sum := sha256.Sum256(b.Value)
				v, _ = jsontape.Marshal(boundTo{To: b.Reference, Bytes: len(b.Value), SHA256: hex.EncodeToString(sum[:])}) // likewise
			}
			if all[x.paths[i]] == nil {
				all[x.paths[i]] = map[string]json.RawMessage{}
			}
			all[x.paths[i]][b.Name] = v
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// Shown returns what a person is shown of a round, as JSON: what of the fragment runs, by the tools that run it and with all of
// their arguments.
func Shown(d *wire.Round) json.RawMessage {
	return shownPlan(d.Fragment, d, "")
}

func shownPlan(raw json.RawMessage, d *wire.Round, above string) json.RawMessage {
	return rewritten(raw, func(name string, v json.RawMessage) json.RawMessage {
		var steps []json.RawMessage
		if name != "steps" || json.Unmarshal(v, &steps) != nil {
			return v
		}
		out := []json.RawMessage{}
		for _, step := range steps {
			var s struct{ ID string }
			_ = json.Unmarshal(step, &s) // nobody of ours wrote what has none
			if above != "" || ran(s.ID, d) {
				out = append(out, shownStep(step, d, above+s.ID))
			}
		}
		all, _ := jsontape.Marshal(out) // it was read from JSON
		return all
	})
}

// shownStep is one step. Arguments that are no object before it runs have those that are bound beside them.
func shownStep(raw json.RawMessage, d *wire.Round, path string) json.RawMessage {
	bound, merged := d.Bound[path], false
	raw = rewritten(raw, func(name string, v json.RawMessage) json.RawMessage {
		switch name {
		case "tool":
			var as string
			if json.Unmarshal(v, &as) == nil && d.Tools[as] != "" {
				v, _ = jsontape.Marshal(d.Tools[as]) // a text
			}
		case "plan":
			return shownPlan(v, d, path+"/")
		case "arguments":
			if all, is := withBound(v, bound); is {
				merged = true
				return all
			}
		}
		return v
	})
	if merged || len(bound) == 0 {
		return raw
	}
	name := "arguments"
	if hasMember(raw, name) {
		name = "bound"
	}
	more, _ := jsontape.Marshal(bound) // it was read from JSON
	return append(append(append(raw[:len(raw)-1:len(raw)-1], `,"`+name+`":`...), more...), '}')
}

// withBound adds bound arguments to those that were written; is is false where these are no object.
func withBound(raw json.RawMessage, bound map[string]json.RawMessage) (all json.RawMessage, is bool) {
	if len(bound) == 0 {
		return raw, true
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if raw = json.RawMessage(text); text == "" {
			raw = json.RawMessage("{}")
		}
	}
	var written map[string]json.RawMessage
	if json.Unmarshal(raw, &written) != nil {
		return nil, false
	}
	if written == nil {
		written = map[string]json.RawMessage{}
	}
	maps.Copy(written, bound)
	all, _ = jsontape.Marshal(written) // it was read from JSON
	return all, true
}

func hasMember(raw json.RawMessage, name string) (has bool) {
	jsontape.Members(raw, func(key, _ []byte) bool {
		has = jsontape.Unquoted(key) == name
		return !has
	})
	return has
}

// rewritten returns an object with the values of its members made anew, in their order; what is none stays.
func rewritten(raw json.RawMessage, member func(name string, v json.RawMessage) json.RawMessage) json.RawMessage {
	if len(raw) == 0 || raw[0] != '{' || !json.Valid(raw) {
		return raw
	}
	out := []byte{'{'}
	jsontape.Members(raw, func(key, v []byte) bool {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, key...), ':'), member(jsontape.Unquoted(key), slices.Clone(v))...)
		return true
	})
	return append(out, '}')
}
