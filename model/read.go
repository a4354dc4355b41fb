package model

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/kaptinlin/jsonrepair"
)

// Bounds of what is repaired. The repair goes down into each bracket, and looks at what it has written so far: it is
// for slips of a model, not for documents.
const (
	maxRepair = 128 << 10
	maxDepth  = 100
)

// value reads JSON that a model wrote: as it stands, within a fence or other text, or repaired once. ok is false where
// there is none.
func value(text string, wanted func(json.RawMessage) bool) (v json.RawMessage, repaired, ok bool) {
	whole := strings.TrimSpace(unfenced(text))
	if v = json.RawMessage(whole); json.Valid(v) && wanted(v) {
		return compact(v), false, true
	}
	if v, ok = within(text, wanted); ok {
		return v, false, true
	}
	if v, ok = repair(whole); ok && wanted(v) {
		return v, true, true
	}
	return nil, false, false
}

// unfenced takes the fence of Markdown off a text that is nothing else.
func unfenced(text string) string {
	t := strings.TrimSpace(text)
	rest, fenced := strings.CutPrefix(t, "```")
	if !fenced {
		return t
	}
	if first, after, ok := strings.Cut(rest, "\n"); ok && !strings.ContainsAny(first, "{[\"") {
		rest = after
	}
	return strings.TrimSuffix(strings.TrimSpace(rest), "```")
}

// within returns the first object in a text that is wanted. Each opening brace is tried, as far as there are few.
func within(text string, wanted func(json.RawMessage) bool) (json.RawMessage, bool) {
	const tries = 16
	for at, n := 0, 0; n < tries; n++ {
		next := strings.IndexByte(text[at:], '{')
		if next < 0 {
			break
		}
		at += next
		var v json.RawMessage
		if json.NewDecoder(strings.NewReader(text[at:])).Decode(&v) == nil {
			if wanted(v) {
				return compact(v), true
			}
			at += len(v)
			continue
		}
		at++
	}
	return nil, false
}

// repair mends what looks as if it were to be JSON, once and mechanically: quotes, commas, comments, brackets.
func repair(text string) (json.RawMessage, bool) {
	if len(text) > maxRepair || !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") || depth(text) > maxDepth {
		return nil, false
	}
	mended, err := jsonrepair.Repair(text)
	if err != nil || !json.Valid([]byte(mended)) {
		return nil, false
	}
	return compact([]byte(mended)), true
}

// depth bounds how deep a text may be nested, by its opening brackets, wherever they stand.
func depth(text string) (most int) {
	open := 0
	for i := range len(text) {
		switch text[i] {
		case '{', '[':
			open++
			most = max(most, open)
		case '}', ']':
			open = max(open-1, 0)
		}
	}
	return most
}

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

// object returns an object without the members that an answer has itself. The order of the others stays.
func object(v json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(v))
	if _, err := d.Token(); err != nil {
		return nil
	}
	var out body
	seen := map[string]bool{}
	for _, k := range reserved {
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
