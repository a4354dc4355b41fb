package group

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Call is a call that a plan has, to be held against what its run may.
type Call struct {
	// Tool is the name of what is called, Planner that of its planner where it is an agent.
	Tool, Planner string
	// Reaches is all that the call can come to, the tool itself among it.
	Reaches []Live
	// Written reports whether a tool that is reached stands in the plan itself; nil for none but Tool.
	Written func(name string) bool
}

// Refusal is why a run may not make a call, and what to do about that. Unseen is whether what is called is in none of the groups that the
// run is bound to: the run is told its name only where its plan has it.
type Refusal struct {
	Why, Hint string
	Unseen    bool
}

// mostRefused is how many tools, groups or permissions a refusal names of each kind.
const mostRefused = 3

// Refuse returns why a run may not make a call; nil where it may. A run that is bound to groups is told no name of a tool that
// is in none of these, unless its plan has it: it is told what such a tool is to the agent, and how many there are.
func (p *Permits) Refuse(c Call) *Refusal {
	var outside, takes []string
	unnamed, taking, unseen := 0, 0, false
	for _, x := range c.ordered() {
		lacks := p.Lacks(x.Name, x.Hints)
		named := true
		if at := slices.Index(lacks, NoGroup); at >= 0 {
			lacks, unseen = slices.Delete(lacks, at, at+1), unseen || x.Name == c.Tool
			name := c.called(x.Name, "its planner")
			if named = name != ""; named {
				outside = append(outside, name)
			} else {
				unnamed++
			}
			named = named && x.Name != c.Planner
		}
		if named && len(lacks) > 0 {
			taking++
			takes = append(takes, c.subject(x.Name)+" takes the "+permissions(lacks))
		}
	}
	if len(outside)+unnamed+taking == 0 {
		return nil
	}
	var why []string
	if len(outside)+unnamed > 0 {
		why = append(why, p.outside(outside, unnamed))
	}
	if why = append(why, takes[:min(taking, mostRefused)]...); taking > mostRefused {
		why = append(why, fmt.Sprintf("%d more that it can reach take permissions", taking-mostRefused))
	}
	return &Refusal{Why: strings.Join(why, "; "), Hint: p.hint(c, len(outside)+unnamed > 0, taking > 0), Unseen: unseen}
}

// ordered returns what is reached: the tool itself, its planner, and all others by their names.
func (c Call) ordered() []Live {
	place := func(name string) int {
		switch name {
		case c.Tool:
			return 0
		case c.Planner:
			return 1
		}
		return 2
	}
	return slices.SortedFunc(slices.Values(c.Reaches), func(a, b Live) int {
		return cmp.Or(place(a.Name)-place(b.Name), cmp.Compare(a.Name, b.Name))
	})
}

// called is what a tool is called that the run may not see; empty for one that has no name then.
func (c Call) called(name, planner string) string {
	switch {
	case name == c.Tool:
		return "it"
	case c.Written != nil && c.Written(name):
		return strconv.Quote(name)
	case name == c.Planner:
		return planner
	}
	return ""
}

// subject is what a tool is called that the run may see.
func (c Call) subject(name string) string {
	switch name {
	case c.Tool:
		return "it"
	case c.Planner:
		return "its planner " + strconv.Quote(name)
	}
	return strconv.Quote(name) + ", which it can reach,"
}

// outside says which tools are in none of the groups that the run is bound to, and how many more that it is told no name of.
func (p *Permits) outside(tools []string, unnamed int) string {
	if more := len(tools) - mostRefused; more > 0 {
		tools, unnamed = tools[:mostRefused], unnamed+more
	}
	is := "is"
	if len(tools)+unnamed > 1 {
		is = "are"
	}
	switch {
	case unnamed == 1:
		tools = append(tools, "a tool that it can reach")
	case unnamed > 1:
		tools = append(tools, fmt.Sprintf("%d tools that it can reach", unnamed))
	}
	where := " not in the group that the run is bound to, "
	if len(p.roles) > 1 {
		where = " in none of the groups that the run is bound to, "
	}
	return and(tools) + " " + is + where + quoted(p.roles)
}

// hint says what to do: about groups, about permissions, or about both.
func (p *Permits) hint(c Call, groups, permissions bool) string {
	if !groups {
		return "submit the plan with what it needs (permissions), or leave the step out"
	}
	do := "have what is missing added to one of these groups, submit the plan with one more that holds it (permissions)"
	if permissions {
		do = "submit the plan with all that it needs (permissions, groups among them)"
	}
	show := "NAME"
	if len(p.roles) == 1 {
		show = p.roles[0]
	}
	look := `"stepjet groups show ` + show + `" says what a group holds`
	if c.Planner != "" && c.Written == nil {
		look += `, "stepjet agents show ` + c.Tool + `" what the agent names`
	}
	return do + ", or leave the step out: " + look
}

func permissions(names []string) string {
	if len(names) == 1 {
		return "permission " + quoted(names)
	}
	return "permissions " + quoted(names)
}

// quoted lists names in quotes, the first of many.
func quoted(names []string) string {
	var all []string
	for _, n := range names[:min(len(names), mostRefused)] {
		all = append(all, strconv.Quote(n))
	}
	if more := len(names) - mostRefused; more > 0 {
		all = append(all, fmt.Sprint(more, " more"))
	}
	return and(all)
}

func and(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " and " + all[len(all)-1]
}
