// Package group is groups of tools: what stands between what somebody wants ("web") and the tools that do it, and which
// permissions it takes to call them. It is pure: who reads and writes groups is package kv.
//
//	{"role": "web", "provider": "docker", "description": "Searches and reads pages.", "permissions": ["internet"],
//	 "tools": ["fetch"], "match": ["web_*"], "exclude": ["hint:destructive"], "priority": 10}
//
// A role has as many definitions as it has providers; the one with the highest priority counts of whose tools at least
// one is registered (Set.Resolve). Permissions are another matter: a tool needs those of all definitions that hold it,
// whichever counts for their role (Set.Permissions), so that no definition opens what another one closes.
package group

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/mcp/selector"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// Limits.
const (
	// MaxDefinition is the largest definition, in bytes.
	MaxDefinition = 64 << 10
	// MaxPermissions is the most permissions of a definition, or of a run.
	MaxPermissions = 64
	// DefaultProvider is that of a definition which names none.
	DefaultProvider = "default"

	maxNames = 1000 // of tools, and elements of match and exclude
)

// Definition is what one provider has for a role.
type Definition struct {
	// Role is what an agent asks for, Provider who has it: 1 to 64 of [A-Za-z0-9_-].
	Role     string `json:"role"`
	Provider string `json:"provider,omitempty"`
	// Description says what the tools are for.
	Description string `json:"description,omitempty"`
	// Permissions are what a run needs that calls one of the tools, where the run was submitted with permissions.
	Permissions []string `json:"permissions,omitempty"`
	// Tools are names, and Match elements of package mcp/selector ("web_*", "/expression/", "hint:readOnly") of which one
	// fits. A tool that fits an element of Exclude is left out. There are Tools or Match.
	Tools   []string `json:"tools,omitempty"`
	Match   []string `json:"match,omitempty"`
	Exclude []string `json:"exclude,omitempty"`
	// Priority is compared between the providers of a role: the highest counts, and of equal ones the first by name.
	Priority int `json:"priority,omitempty"`

	match, exclude selector.Selector
}

// Parse reads a definition. Errors have code invalid_value, and name all that is wrong, one a line with its place.
func Parse(raw []byte) (*Definition, error) {
	if len(raw) > MaxDefinition {
		return nil, fault.New(fault.InvalidValue, "the group has %d bytes, at most %d are allowed", len(raw), MaxDefinition)
	}
	d := &Definition{}
	read := json.NewDecoder(bytes.NewReader(raw))
	read.DisallowUnknownFields()
	if err := read.Decode(d); err != nil {
		return nil, fault.New(fault.InvalidValue, "the group can't be read: %v", err).
			WithHint(`write {"role": "web", "tools": ["search"]}; docs/groups.md has all fields`)
	}
	if read.More() {
		return nil, fault.New(fault.InvalidValue, "there is more than one group").WithHint("give each a file or an element of a list")
	}
	d.Provider = cmp.Or(d.Provider, DefaultProvider)
	if wrong := d.check(); len(wrong) > 0 {
		return nil, fault.New(fault.InvalidValue, "the group %q is not valid:\n%s", d.Role, strings.Join(wrong, "\n")).
			WithHint("docs/groups.md has all fields")
	}
	return d, nil
}

// check returns all that is wrong, and compiles which tools it holds.
func (d *Definition) check() (wrong []string) {
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	const names = "1 to 64 of A-Z a-z 0-9 _ -"
	for at, name := range map[string]string{"/role": d.Role, "/provider": d.Provider} {
		if !ValidName(name) {
			add("%s: %q is not %s", at, name, names)
		}
	}
	slices.Sort(wrong)
	if len(d.Permissions) > MaxPermissions {
		add("/permissions: there are %d, at most %d are allowed", len(d.Permissions), MaxPermissions)
	}
	for i, p := range d.Permissions {
		if !ValidPermission(p) {
			add("/permissions/%d: %q is not %s, or the word none", i, p, names)
		}
	}
	if len(d.Tools)+len(d.Match) == 0 {
		add(`/tools: the group holds none; name some, or write "match": ["web_*"]`)
	}
	if len(d.Tools)+len(d.Match)+len(d.Exclude) > maxNames {
		add("/tools: there are more than %d names and elements", maxNames)
	}
	for i, name := range d.Tools {
		if !subjects.ValidTool(name) {
			add("/tools/%d: %q is no tool name", i, name)
		}
	}
	for _, list := range []struct {
		at string
		of []string
		to *selector.Selector
	}{{"/match", d.Match, &d.match}, {"/exclude", d.Exclude, &d.exclude}} {
		for i, element := range list.of {
			_, err := selector.Parse(element)
			if err != nil || element == "" || strings.HasPrefix(element, "!") || strings.HasPrefix(element, "group:") {
				add("%s/%d: %q picks no tools; write a name, prefix*, /expression/ or hint:readOnly", list.at, i, element)
			}
		}
		if len(list.of) == 0 {
			continue
		}
		var err error
		if *list.to, err = selector.Parse(strings.Join(list.of, ",")); err != nil && len(wrong) == 0 {
			add("%s: %v", list.at, err)
		}
	}
	return wrong
}

// ValidName reports whether a role or a provider may have the name.
func ValidName(s string) bool { return subjects.ValidTenant(s) }

// ValidPermission reports whether a permission may have the name.
func ValidPermission(s string) bool { return ValidName(s) && s != None }

// None stands for no permissions at all where a list of them would be empty.
const None = "none"

// Key returns the key under which the definition is kept.
func (d *Definition) Key() string { return subjects.GroupKey(d.Role, d.Provider) }

// Holds reports whether a tool is one of the group's.
func (d *Definition) Holds(name string, hints *tool.Annotations) bool {
	t := selector.Tool{Name: name, Annotations: hints}
	if !slices.Contains(d.Tools, name) && (len(d.Match) == 0 || !d.match.Picks(t)) {
		return false
	}
	return len(d.Exclude) == 0 || !d.exclude.Picks(t)
}
