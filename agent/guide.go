package agent

import (
	"fmt"
	"slices"
	"strings"
)

// What a planner is told of facades.
const (
	guideDescription   = "'%s' is open. Its tools: %s."
	guideAgain         = " Call it again with other arguments to open it for those."
	guideText          = "'%s' is open. These tools can be called now:\n%s\nCall them directly."
	guideEmpty         = "'%s' is open, but none of its tools can be called now."
	contextDescription = "%s Tools: %s."
	contextText        = "%s\n\nTools:\n%s"
	contextNotes       = "\n\nNotes: %s"
)

// guide words what a planner is told of entries.
type guide struct{ *Facts }

// description returns what a planner is told of an entry.
func (g guide) description(e *Entry) string {
	o, open := g.opened.get(e.Name)
	switch {
	case e.Kind == KindFacade && open && len(g.toolsOf(e.Name)) > 0:
		d := fmt.Sprintf(guideDescription, e.Name, strings.Join(g.toolsOf(e.Name), ", "))
		if e.facade.takesArgs {
			d += guideAgain
		}
		return d
	case e.Kind == KindContext:
		tools := g.siblings(e.within, e)
		if len(tools) == 0 {
			return e.within.Description
		}
		return fmt.Sprintf(contextDescription, e.within.Description, strings.Join(tools, ", "))
	case e.within != nil && e.within.facade.takesArgs:
		o = g.openingOf(e.within.Name)
		filled, _ := fill(e.Description, argsWords, func(r reference) ([]byte, bool) { return within(o.args, r.path) })
		return filled
	}
	return e.Description
}

// siblings returns the tools of a facade without the one that tells of them.
func (g guide) siblings(facade, context *Entry) []string {
	return slices.DeleteFunc(g.toolsOf(facade.Name), func(name string) bool { return name == context.Name })
}

// text is what a facade returns when it is called: a list of what is there now.
func (g guide) text(e *Entry) string {
	lines := g.lines(e, false)
	if lines == "" {
		return fmt.Sprintf(guideEmpty, e.Name)
	}
	return fmt.Sprintf(guideText, e.Name, lines)
}

// context is what the tools of a facade have in common.
func (g guide) context(e *Entry) string {
	facade := e.within
	text := fmt.Sprintf(contextText, facade.Description, g.lines(facade, true))
	if facade.facade.notes != "" {
		text += fmt.Sprintf(contextNotes, facade.facade.notes)
	}
	return text
}

// lines describes the tools of an open facade, a line each; whole with what they take.
func (g guide) lines(facade *Entry, whole bool) string {
	var lines []string
	for e := range g.entries {
		if e.within != facade || !g.shown(e) || whole && e.Kind == KindContext {
			continue
		}
		line := "- " + e.Name
		if d := g.description(e); d != "" {
			line += ": " + d
		}
		if whole && len(e.InputSchema) > 0 {
			line += " Takes " + string(e.InputSchema)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
