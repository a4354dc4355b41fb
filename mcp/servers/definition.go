package servers

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/mcp/selector"
	"github.com/stepjet/stepjet/tool"
)

// Remote is a tool as its server lists it, in the server's own bytes: go-sdk's form drops what it doesn't know.
type Remote struct {
	Name string
	Raw  json.RawMessage
}

// Listed takes the pages of tools/list apart.
func Listed(page json.RawMessage) ([]Remote, error) {
	var in struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(page, &in); err != nil {
		return nil, fmt.Errorf("reading tools/list: %w", err)
	}
	all := make([]Remote, 0, len(in.Tools))
	for _, raw := range in.Tools {
		var one struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(raw, &one); err != nil {
			return nil, fmt.Errorf("reading a tool of tools/list: %w", err)
		}
		all = append(all, Remote{one.Name, raw})
	}
	return all, nil
}

// pinnedFields are what of a tool a model or Stepjet goes by, and so what must not change unseen.
var pinnedFields = []string{"name", "title", "description", "inputSchema", "outputSchema", "annotations"}

// Pinned returns these fields in one form, whatever their order and white space were: keys sorted, numbers as written.
func (t Remote) Pinned() (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(t.Raw))
	dec.UseNumber()
	var all map[string]any
	if err := dec.Decode(&all); err != nil {
		return nil, err
	}
	some := map[string]any{}
	for _, name := range pinnedFields {
		if v, there := all[name]; there && v != nil {
			some[name] = v
		}
	}
	return jsontape.Marshal(some)
}

// Digest returns the SHA-256, in hex, of what pinned returns.
func Digest(pinned json.RawMessage) string {
	sum := sha256.Sum256(pinned)
	return hex.EncodeToString(sum[:])
}

// picked reports whether the file wants the tool.
func (e *Entry) picked(t Remote) bool {
	var in struct {
		Annotations *tool.Annotations `json:"annotations"`
	}
	_ = json.Unmarshal(t.Raw, &in) // of annotations that can't be read none is meant
	of := selector.Tool{Name: t.Name, Annotations: in.Annotations}
	return e.include.Picks(of) && (e.exclude == nil || !e.exclude.Picks(of))
}

// taskOnly reports whether the tool can't be called plainly: 2025-11-25 lets a tool ask for a task, which that version
// alone has.
func (t Remote) taskOnly() bool {
	var in struct {
		Execution struct {
			TaskSupport string `json:"taskSupport"`
		} `json:"execution"`
	}
	_ = json.Unmarshal(t.Raw, &in) // what can't be read asks for nothing
	return in.Execution.TaskSupport == "required"
}

// Name returns the name under which a tool of a server is registered.
func Name(server, tool string) string { return server + "_" + tool }

// Define makes a tool of Stepjet of what a server lists (its pinned fields), with cleaned texts and what the file says
// of it. Annotations set the contract where the file doesn't. Errors are those of tool.ParseDefinition.
func (e *Entry) Define(name string, pinned json.RawMessage) (*tool.Definition, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(cleaned(pinned), &members); err != nil {
		return nil, fault.Wrap(fault.InvalidTool, err, "reading the definition")
	}
	s := e.tools[name]
	set := func(field string, v any) {
		raw, err := jsontape.Marshal(v)
		if err == nil { // strings and lists of them
			members[field] = raw
		}
	}
	set("name", Name(e.Name, name))
	if s.title != "" {
		set("title", s.title)
	}
	if s.description != "" {
		set("description", s.description)
	}
	if len(s.tenants) > 0 {
		set("tenants", s.tenants)
	}
	contract := map[string]json.RawMessage{}
	if s.orchestration != nil {
		if err := json.Unmarshal(s.orchestration, &contract); err != nil {
			return nil, fault.Wrap(fault.InvalidTool, err, "reading x-orchestration")
		}
	}
	if _, said := contract["asks"]; !said { // a server may ask at any time, and says so nowhere
		contract["asks"] = json.RawMessage("true")
	}
	set("x-orchestration", contract)
	raw, err := jsontape.Marshal(members)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidTool, err, "reading the definition")
	}
	return tool.ParseDefinition(raw)
}

// Meeting returns the names that tools of two servers would share, each as "name (server and server)".
func Meeting(all map[string][]string) (clashes []string) {
	for name, servers := range all {
		if len(servers) > 1 {
			slices.Sort(servers)
			clashes = append(clashes, fmt.Sprintf("%s (of %s and %s)", name, servers[0], servers[1]))
		}
	}
	slices.Sort(clashes)
	return clashes
}
