package hosted

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stepjet/stepjet/internal/builtin"
	"github.com/stepjet/stepjet/internal/jsonfile"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/tool"
)

// Limits of what exec and http tools may be given.
const (
	defaultOutput = 1 << 20
	maxOutput     = 64 << 20
	maxTimeout    = 168 * time.Hour
)

// definitionFields are those of a tool's definition.
var definitionFields = []string{"name", "title", "description", "inputSchema", "outputSchema", "annotations",
	"x-orchestration", "tenants"}

// reader makes a File of its content and notes all problems on the way.
type reader struct {
	dir      string
	getenv   func(string) (string, bool)
	file     *File
	names    map[string]string // place of each tool by its name
	uses     []string          // keys of the run's context that the tool being read asks for
	problems Problems
}

func (r *reader) read(raw []byte) {
	if !r.problems.WellFormed(raw) {
		return
	}
	top, ok := r.problems.Object("", raw, "tools")
	if !ok {
		return
	}
	var list []json.RawMessage
	if !top.Read("tools", &list, "an array") {
		if !top.Has("tools") {
			r.problems.Wrong("", `write {"tools": [{"builtin": "all"}]}`, "the field \"tools\" is missing")
		}
		return
	}
	if len(list) == 0 {
		r.problems.Wrong("/tools", `write {"builtin": "all"} for the built-in tools`, "there are no tools")
	}
	for i, one := range list {
		r.entry("/tools/"+strconv.Itoa(i), one)
	}
}

// entry reads one element of tools.
func (r *reader) entry(path string, raw json.RawMessage) {
	f, ok := r.problems.Object(path, raw, append([]string{"builtin", "exec", "http"}, definitionFields...)...)
	if !ok {
		return
	}
	var kinds []string
	for _, k := range []string{"builtin", "exec", "http"} {
		if f.Has(k) {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) != 1 {
		r.problems.Wrong(path, "", "a tool has one of builtin, exec and http, and this one has %d of them", len(kinds))
		return
	}
	if kinds[0] == "builtin" {
		r.builtin(f)
		return
	}
	def := r.definition(f)
	if def == nil {
		def = &tool.Definition{} // so that the rest is checked too
	}
	var call caller
	r.uses = nil
	if kinds[0] == "exec" {
		call = r.exec(f, def)
	} else {
		call = r.http(f, def)
	}
	r.add(path, hosted{def, call, r.uses})
}

// add takes a tool in, unless its name is taken.
func (r *reader) add(path string, h hosted) {
	if h.def.Name == "" {
		return
	}
	if first, taken := r.names[h.def.Name]; taken {
		r.problems.Wrong(path, "", "the tool %q is there already, at %s", h.def.Name, first)
		return
	}
	r.names[h.def.Name] = path
	r.file.tools = append(r.file.tools, h)
}

// definition reads the fields of a definition; nil where they are no valid one, which is noted.
func (r *reader) definition(f jsonfile.Fields) *tool.Definition {
	values := map[string]json.RawMessage{}
	for _, name := range definitionFields {
		if f.Has(name) {
			values[name] = f.Values[name]
		}
	}
	raw, err := json.Marshal(values)
	if err != nil { // they were parts of valid JSON
		r.problems.Wrong(f.Path, "", "%v", err)
		return nil
	}
	def, err := tool.ParseDefinition(raw)
	if err != nil {
		for _, flaw := range tool.FlawsOf(err) {
			r.problems.Add(flaw.Code, f.Path+flaw.Path, flaw.Hint, "%s", flaw.Message)
		}
		return nil
	}
	for _, w := range def.Warnings() {
		text, ofOutput := "", strings.HasPrefix(w.Path, "/outputSchema")
		if w.Path = f.Path + w.Path; ofOutput {
			text = "; results of the tool " + strconv.Quote(def.Name) + " are not checked"
		}
		r.file.warnings = append(r.file.warnings, Problems{w}.Error()+text)
	}
	return def
}

// builtin reads {"builtin": "group or tool"}, with changes to the definition where it is one tool.
func (r *reader) builtin(f jsonfile.Fields) {
	name, ok := f.Text("builtin")
	if !ok {
		return
	}
	if one, ok := builtin.Lookup(name); ok {
		if def := r.changed(f, one); def != nil {
			r.add(f.Path, builtinTool(one, *def))
		}
		return
	}
	group := builtin.Group(name)
	if name == "all" {
		group = builtin.All()
	}
	if group == nil {
		words := append([]string{"all"}, builtin.Groups()...)
		hint := jsonfile.Suggest(name, words)
		for _, t := range builtin.All() {
			if near := text.NearMiss(name, t.Definition.Name); near != "" {
				hint = jsonfile.Suggest(name, []string{near})
			}
		}
		r.problems.Wrong(f.At("builtin"), hint, "there are no built-in tools %q", name)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(f.Values)) {
		if key != "builtin" && slices.Contains(definitionFields, key) {
			r.problems.Wrong(f.At(key), "name one tool to change it", "a group of built-in tools takes no %s", key)
		}
	}
	for _, t := range group {
		r.add(f.Path, builtinTool(t, *t.Definition))
	}
}

// changed returns a built-in tool's definition with what the entry says otherwise.
func (r *reader) changed(f jsonfile.Fields, t builtin.Tool) *tool.Definition {
	base, err := json.Marshal(t.Definition)
	var merged map[string]json.RawMessage
	if err = errors.Join(err, json.Unmarshal(base, &merged)); err != nil {
		r.problems.Wrong(f.Path, "", "%v", err)
		return nil
	}
	for _, key := range []string{"inputSchema", "outputSchema", "annotations"} {
		if f.Has(key) {
			r.problems.Wrong(f.At(key), "", "a built-in tool keeps its own %s", key)
		}
	}
	for _, key := range []string{"name", "title", "description", "x-orchestration", "tenants"} {
		if f.Has(key) {
			merged[key] = f.Values[key]
		}
	}
	return r.definition(f.With(merged))
}

// limits reads what exec and http have in common. A timeout beyond the contract's own could never pass.
func (r *reader) limits(f jsonfile.Fields, def *tool.Definition) (timeout time.Duration, output int64) {
	timeout = time.Duration(f.Number("timeout_ms", 0, maxTimeout.Milliseconds())) * time.Millisecond
	output = f.Number("output_limit_bytes", defaultOutput, maxOutput)
	contract, err := def.Contract()
	if err == nil && def.Name != "" && contract.Timeout > 0 && timeout > contract.Timeout {
		r.problems.Wrong(f.At("timeout_ms"), "raise timeout_ms of x-orchestration, or lower this one",
			"%s is longer than the %s that the tool's contract gives one execution", timeout, contract.Timeout)
	}
	return timeout, output
}

// placeholders checks that each argument which a template needs is declared as a scalar that is always there: required,
// or with a default. optional ones may be absent.
func (r *reader) placeholders(path string, names []string, def *tool.Definition, optional bool) {
	if def.Name == "" {
		return // its schema is not known
	}
	p := propertiesOf(def.InputSchema)
	declared := slices.Sorted(maps.Keys(p.declared))
	for _, name := range names {
		one, ok := p.declared[name]
		switch {
		case !ok && len(declared) == 0:
			r.problems.Wrong(path, `add it: "inputSchema": {"type": "object", "properties": {…}, "required": […]}`,
				"the input schema has no property %q", name)
		case !ok:
			r.problems.Wrong(path, jsonfile.Suggest(name, declared), "the input schema has no property %q", name)
		case !one.scalar():
			r.problems.Wrong(path, "", "the argument %q is no string, number or boolean", name)
		case !optional && !p.required[name] && len(one.Default) == 0:
			r.problems.Wrong(path, "add it to \"required\", or give it a \"default\"", "the argument %q may be absent", name)
		}
	}
}

// defaults returns those of the input schema, for placeholders.
func defaults(def *tool.Definition) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, p := range propertiesOf(def.InputSchema).declared {
		if len(p.Default) > 0 {
			out[name] = p.Default
		}
	}
	return out
}
