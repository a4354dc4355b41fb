package request

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// toolset are tools as a planner is told of them, by name.
type toolset map[string]string

// shown returns what a planner is shown now. Of two of one name the first counts, as it does for calls.
func shown(all []agent.Shown) toolset {
	t := toolset{}
	for _, s := range all {
		if _, there := t[s.Name]; !there {
			t[s.Name] = string(toolJSON(s))
		}
	}
	return t
}

func toolJSON(s agent.Shown) []byte {
	var o jsontape.ObjectWriter
	o.Text("name", s.Name)
	o.Text("description", s.Description)
	schema := func(name string, raw json.RawMessage) {
		if len(raw) > 0 {
			o.Add(name, sound(raw))
		}
	}
	schema("inputSchema", s.InputSchema)
	schema("outputSchema", s.OutputSchema)
	return o.JSON()
}

// list returns the tools as an array, by name.
func (t toolset) list() json.RawMessage {
	var all [][]byte
	for _, name := range slices.Sorted(maps.Keys(t)) {
		all = append(all, []byte(t[name]))
	}
	return jsontape.AppendArray(nil, all)
}

// told is what a planner knows of its tools: by name a digest, since their texts are long and loops many.
type told map[string][sha256.Size]byte

func (t toolset) told() told {
	all := told{}
	for name, text := range t {
		all[name] = sha256.Sum256([]byte(text))
	}
	return all
}

// changes says what has changed since a planner was told: the tools that are there now or are another, and the names of
// those that are there no more; nil for nothing.
func (t toolset) changes(since told) json.RawMessage {
	added := toolset{}
	for name, text := range t {
		if d, there := since[name]; !there || d != sha256.Sum256([]byte(text)) {
			added[name] = text
		}
	}
	var gone [][]byte
	for _, name := range slices.Sorted(maps.Keys(since)) {
		if _, there := t[name]; !there {
			gone = append(gone, jsontape.AppendQuoted(nil, name))
		}
	}
	if len(added) == 0 && len(gone) == 0 {
		return nil
	}
	var o jsontape.ObjectWriter
	o.Add("added", added.list())
	o.Add("gone", jsontape.AppendArray(nil, gone))
	return o.JSON()
}

// toldBy reads the tools of a list.
func toldBy(list json.RawMessage) told {
	t := toolset{}
	for _, raw := range items(list) {
		t[jsontape.Unquoted(member(raw, "name"))] = string(raw)
	}
	return t.told()
}

// after returns what a planner knows after a change.
func (t told) after(changes json.RawMessage) told {
	t = maps.Clone(t)
	maps.Copy(t, toldBy(member(changes, "added")))
	for _, name := range items(member(changes, "gone")) {
		delete(t, jsontape.Unquoted(name))
	}
	return t
}

// locked says of the tools that can't be called yet why not; nil for none.
func locked(all []agent.Shown) []byte {
	var o jsontape.ObjectWriter
	some := false
	for _, s := range all {
		if s.Locked != "" {
			some = true
			o.Text(s.Name, s.Locked)
		}
	}
	if !some {
		return nil
	}
	return o.JSON()
}
