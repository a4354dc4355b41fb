package model

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// maxToolName is the longest name that OpenAI and Anthropic take.
const maxToolName = 64

// wireName returns the name that a tool has with a provider, as package catalog has it: a name that isn't 1 to 64 of
// [A-Za-z0-9_-] has its other characters replaced by "_" and ends in eight hex digits of its SHA-256.
func wireName(name string) string {
	if validName(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	b := []byte(name)
	for i, c := range b {
		if !validName(string(rune(c))) {
			b[i] = '_'
		}
	}
	return string(b[:min(len(b), maxToolName-9)]) + "_" + hex.EncodeToString(sum[:4])
}

// stepID returns an id for a call that is none's yet: its own where it is a step's id, else one made of the tool's name.
func stepID(id, tool string, taken map[string]bool) string {
	if !validName(id) {
		id = wireName(tool)
	}
	for n, base := 2, id; taken[id]; n++ {
		suffix := "_" + strconv.Itoa(n)
		id = base[:min(len(base), maxToolName-len(suffix))] + suffix
	}
	taken[id] = true
	return id
}

func sortedTools(tools []Tool) []Tool {
	tools = slices.Clone(tools)
	slices.SortFunc(tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	return tools
}

// toolLines writes tools by name, a line each.
func toolLines(tools []Tool) string {
	var b strings.Builder
	for _, t := range sortedTools(tools) {
		t.InputSchema, t.OutputSchema = compactOrNil(t.InputSchema), compactOrNil(t.OutputSchema)
		b.WriteString("\n")
		b.Write(encode(t))
	}
	return b.String()
}
