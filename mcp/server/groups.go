package server

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/tool/group"
)

// role is a group of tools that a caller names.
type role struct {
	name string
	all  *group.Set
}

// holds returns the names of the tools that stand for a role, of those there are. Errors: InvalidArguments where nobody
// has defined it.
func (r *role) holds(tools []*tool.Definition) (map[string]bool, error) {
	d, names := r.all.Resolve(r.name, live(tools))
	if d == nil {
		err := fault.New(fault.InvalidArguments, "there is no group %q", text.Clip(r.name, 64))
		if roles := r.all.Roles(); len(roles) > 0 {
			return nil, err.WithHint("there are: %s", text.Clip(strings.Join(roles, ", "), 1<<10))
		}
		return nil, err.WithHint("there is none yet; leave it out, or make one with stepjet groups apply")
	}
	held := make(map[string]bool, len(names))
	for _, name := range names {
		held[name] = true
	}
	return held, nil
}

func live(tools []*tool.Definition) (all []group.Live) {
	for _, d := range tools {
		all = append(all, group.Live{Name: d.Name, Hints: d.Annotations})
	}
	return all
}

// groups are the groups of tools as they were read last, for what is listed. They belong to the goroutine that offers
// tools.
type groups struct {
	all  *group.Set
	seen string // what was there, as JSON
}

// groupsEvery is how often groups are read where what is listed depends on them. Nobody tells of their changes.
const groupsEvery = 5 * time.Second

// read reads the groups and reports whether they have changed. What can't be read stays as it was.
func (g *groups) read(ctx context.Context, c *client.Client) (changed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	all, err := client.GroupsOf(c).All(ctx)
	if err != nil {
		return false, err
	}
	raw, err := json.Marshal(all.All())
	if err != nil || string(raw) == g.seen {
		return false, err
	}
	g.all, g.seen = all, string(raw)
	return true, nil
}

// lacks returns which of some groups nobody has defined.
func (g *groups) lacks(names []string) (strange []string) {
	there := g.all.Roles()
	for _, name := range names {
		if !slices.Contains(there, name) {
			strange = append(strange, name)
		}
	}
	return strange
}

// of returns the groups of each tool.
func (g *groups) of(tools []*tool.Definition) map[string][]string {
	if g.all == nil {
		return nil
	}
	roles, there := map[string][]string{}, live(tools)
	for _, name := range g.all.Roles() {
		_, held := g.all.Resolve(name, there)
		for _, t := range held {
			roles[t] = append(roles[t], name)
		}
	}
	return roles
}

// The bounds of what is told of groups.
const (
	mostRoles = 50
	mostOfOne = 120 // bytes of a description
)

// told is what the guide of plans says of groups, where it does not list all tools.
func (g *groups) told(tools []*tool.Definition) string {
	if g.all == nil {
		return ""
	}
	there := live(tools)
	var lines []string
	for _, name := range g.all.Roles() {
		d, held := g.all.Resolve(name, there)
		if len(held) == 0 {
			continue
		}
		line := fmt.Sprintf("- %s (%s)", name, text.Count(len(held), "tool"))
		if d.Description != "" {
			line += ": " + text.Clip(d.Description, mostOfOne)
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return ""
	}
	if len(lines) > mostRoles {
		lines = append(slices.Clip(lines[:mostRoles]), "- …")
	}
	return "\n\nGROUPS of tools, for the argument group of search_tools:\n" + strings.Join(lines, "\n")
}
