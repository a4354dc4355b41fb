package model

import (
	"bytes"
	"encoding/json"
)

// anObject is wanted of arguments.
func anObject(v json.RawMessage) bool { return isObject(v) }

// dialectKeys tell an object that is an answer from one that is told about.
var dialectKeys = []string{
	"steps", "output", "calls", "next_action", "execution_commands", "tool_commands", "tool_command", "use_tool",
}

// ofDialect reports whether an object is an answer in one of the dialects.
func ofDialect(v json.RawMessage) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(v, &members) != nil {
		return false
	}
	for _, k := range dialectKeys {
		if _, there := members[k]; there {
			return true
		}
	}
	return false
}

// reserved are the members of an answer that a model's object can't set.
var reserved = []string{"usage", "problems", "provider_state", "truncated", "repaired"}

// object returns an object without the members that an answer has itself.
func object(v json.RawMessage) json.RawMessage { return objectWithout(v, reserved...) }

// objectWithout returns an object without some members. The order of the others stays.
func objectWithout(v json.RawMessage, names ...string) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(v))
	if _, err := d.Token(); err != nil {
		return nil
	}
	var out body
	seen := map[string]bool{}
	for _, k := range names {
		seen[k] = true
	}
	for d.More() {
		key, err := d.Token()
		name, _ := key.(string)
		var member json.RawMessage
		if err != nil || d.Decode(&member) != nil {
			return nil
		}
		if !seen[name] { // of a member that is there twice the first counts: no reader may see another
			seen[name] = true
			out.add(name, member)
		}
	}
	if out.b.Len() == 0 {
		return json.RawMessage("{}")
	}
	return out.json()
}
