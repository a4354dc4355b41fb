package model

import (
	"bytes"
	"encoding/json"
)

// native makes steps of the native calls of one answer, which have a name, arguments, and an id that the provider gave.
type native struct {
	tools map[string]Tool // by their names with the provider
	began map[string]Step // by their ids
	taken map[string]bool
}

func newNative(r *Request) *native {
	n := &native{tools: map[string]Tool{}, began: map[string]Step{}, taken: map[string]bool{}}
	for _, t := range r.Tools {
		n.tools[wireName(t.Name)] = t
	}
	var began []Step
	if json.Unmarshal(r.Began, &began) == nil {
		for _, s := range began {
			n.began[s.ID] = s
		}
	}
	return n
}

// step makes a step of a call. ok is false where its arguments are no object; repaired says that they became one.
func (n *native) step(w *written) (s Step, repaired, ok bool) {
	s.Tool = w.name
	t, known := n.tools[w.name]
	if known {
		s.Tool = t.Name
	}
	s.Arguments, repaired, ok = w.object()
	if ok && !t.has(again) {
		s.again()
	}
	s.ID = n.id(w.id, s)
	return s, repaired, ok
}

// id returns the id of a step. The model doesn't choose it, and many a provider counts anew in each answer: so a call that is none of
// those which had begun in an attempt before gets another id than these.
func (n *native) id(own string, s Step) string {
	id := stepID(own, s.Tool, n.taken)
	for {
		b, begun := n.began[id]
		if !begun || b.Tool == s.Tool && (equal(b.Arguments, s.Arguments) || preview(b.Arguments)) {
			return id
		}
		id = stepID(id, s.Tool, n.taken)
	}
}

// again is what a native call says among its arguments, since it has nothing beside them: that it is to be made once more.
const again = "_again"

// again takes that out of the arguments.
func (s *Step) again() {
	var members map[string]json.RawMessage
	if json.Unmarshal(s.Arguments, &members) != nil || string(members[again]) != "true" {
		return
	}
	s.Again = true
	s.Arguments = objectWithout(s.Arguments, again)
}

// has reports whether a tool takes an argument of that name itself.
func (t Tool) has(argument string) bool {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(t.InputSchema, &schema)
	_, there := schema.Properties[argument]
	return there
}

// called returns the calls of a round by their ids: as its answer was written, and as it is given back to the provider. A value stands
// for none.
func (r Round) called(given *State) map[string]Step {
	var steps []Step
	_ = json.Unmarshal(r.Plan, &steps) // of a long one there is a preview
	all := map[string]Step{}
	for _, s := range append(steps, given.calls()...) {
		if _, before := all[s.ID]; !before && s.Tool != "" {
			all[s.ID] = s
		}
	}
	return all
}

// equal reports whether two values are the same, however their members are ordered.
func equal(a, b json.RawMessage) bool {
	x, y := ordered(a), ordered(b)
	return x != nil && bytes.Equal(x, y)
}

func ordered(raw json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	return encode(v)
}

// preview reports whether arguments are the beginning of what they were: they were too long to be told.
func preview(arguments json.RawMessage) bool {
	var p struct {
		Text     *string `json:"text"`
		From, To *int64
		Bytes    *int64 `json:"bytes"`
	}
	return json.Unmarshal(arguments, &p) == nil && p.Text != nil && p.From != nil && p.To != nil && p.Bytes != nil
}
