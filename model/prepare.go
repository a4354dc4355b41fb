package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
)

// Prepared is a request in the form of a provider.
type Prepared struct {
	// Body is what is posted.
	Body []byte
	// Structured says that the body asks for an answer by a schema; a provider that can't do that answers 400, and is
	// asked again without.
	Structured bool
	// Reserved is what the request may take, in tokens, as far as that can be told before: a token for each four bytes
	// of the body, and the longest answer.
	Reserved int64

	request *Request
	model   Model
}

// Prepare puts a request into the form of a model's provider. plain asks for an answer by words alone where the mode
// would ask for it by a schema.
func Prepare(r *Request, m Model, plain bool) *Prepared {
	if r.MaxOutputTokens > 0 {
		m.MaxOutputTokens = r.MaxOutputTokens
	}
	t := converse(r, m)
	if plain && t.schema != nil {
		if t.strict { // of the modes' own schemas the system prompt tells already
			t.system = join(t.system, "Answer with JSON of this schema and nothing else:\n"+string(t.schema))
		}
		t.schema = nil
	}
	p := &Prepared{Structured: t.schema != nil, request: r, model: m}
	if m.Provider == Anthropic {
		p.Body = anthropicBody(t, m)
	} else {
		p.Body = openAIBody(t, m)
	}
	p.Reserved = int64(len(p.Body)/4 + m.MaxOutputTokens)
	return p
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n\n" + b
}

// extras writes the members of a provider's request that the configuration sets.
func (o *body) extras(m Model) {
	for _, k := range slices.Sorted(maps.Keys(m.Extra)) {
		o.add(k, compact(m.Extra[k]))
	}
}

// cacheKey is the same for all requests of a conversation: it is made of what they begin with.
func (t transcript) cacheKey() string {
	first := ""
	if len(t.turns) > 0 {
		first = t.turns[0].text
	}
	sum := sha256.Sum256(encode([]any{t.system, t.tools, first}))
	return "stepjet-" + hex.EncodeToString(sum[:12])
}

// anySchema is the schema of arguments where a tool names none.
var anySchema = json.RawMessage(`{"type":"object","properties":{}}`)

// inputSchema returns a tool's schema as providers take it: an object with properties.
func (t Tool) inputSchema() json.RawMessage {
	if isNull(t.InputSchema) {
		return anySchema
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(t.InputSchema, &members)
	if string(members["type"]) == `"object"` && members["properties"] != nil {
		return compact(t.InputSchema)
	}
	members["type"] = json.RawMessage(`"object"`)
	if members["properties"] == nil {
		members["properties"] = json.RawMessage("{}")
	}
	return encode(members)
}

// missing is what a provider is told of a call that has not run: it takes no conversation in which a call has no
// result.
const missing = `{"status":"not_run"}`

// answers pairs the results of a turn with the calls that a provider's state has, in their order; ids that nothing came
// of are missing. Without a state they stay as they are.
func answers(results []result, wanted []Step) []result {
	if wanted == nil {
		return results
	}
	byID, taken := map[string]result{}, map[string]bool{}
	for _, r := range results {
		byID[r.id] = r
	}
	all := make([]result, 0, len(wanted))
	for _, call := range wanted {
		r, there := byID[stepID(call.ID, call.Tool, taken)]
		if !there {
			r = result{text: missing, failed: true}
		}
		r.id = call.ID // the provider's own, which may be none of a step
		all = append(all, r)
	}
	return all
}
