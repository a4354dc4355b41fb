package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// What a planner is told of an entry that can't be called now, written for a model to act on. Each begins with what can't
// be done and goes on with what to do first. They are promises: testdata has each of them.
const (
	lockedAll      = "'%s' can't be called yet: it needs %s first. Call %s, and then '%s' again."
	lockedAny      = "'%s' can't be called yet: it needs one of %s first. Call one of them, and then '%s' again."
	lockedState    = "'%s' can't be called in the state '%s', but in %s.%s"
	lockedOpened   = "'%s' can't be called yet: call '%s' first, which opens it, and then '%s' again."
	lockedNested   = "'%s' can't be called yet: call '%s' first, and go on with what that opens."
	lockedCategory = "'%s' can't be called yet: call '%s' with %s '%s' first, which opens it, and then '%s' again."
	lockedClosed   = "'%s' can't be called any more: '%s' was opened, and from then on only its tools can be called: %s."
	lockedArtifact = "'%s' can't be called yet: it needs an object of the type '%s', and none was taken of what tools have returned so far.%s"
	lockedShared   = "'%s' can't be called yet: nothing stands at '%s' of the state. Call a tool that writes it first."
	lockedWhen     = "'%s' can't be called now: its condition is not true: %s. Go on with other tools."
	lockedFailed   = "'%s' can't be called now: its condition can't be decided: %s. Go on with other tools."

	// notAvailableYet is for the tools of an object that is not there yet.
	notAvailableYet = "'%s' is not available yet: it acts upon one '%s', and no tool has returned a single one so far.%s"
	anyObject       = "object"

	// notTaken is for those of an object that is there, and that they are not for.
	notTaken = "'%s' is not available: it acts upon one '%s', and the one that a tool has returned does not meet its condition. Go on with other tools."

	leads     = " Call %s first, which leads to %s."
	returnsIt = " Call %s first."

	// alreadyLoaded is for the second call of an entry that is called once.
	alreadyLoaded = "ALREADY LOADED. The body of '%s' was returned earlier in this turn — read it from your conversation history " +
		"above. Do not call this tool again. %s"
)

// wording words why something is locked.
type wording struct{ *Facts }

// why words a clause that does not hold.
func (w wording) why(e *Entry, c *clause, err *fault.Error) string {
	switch c.kind {
	case clauseAll:
		missing := slices.DeleteFunc(slices.Clone(c.names), func(t string) bool { return w.has(c, t) })
		return fmt.Sprintf(lockedAll, e.Name, w.named(missing, " and "), w.named(missing, " and "), e.Name)
	case clauseAny:
		return fmt.Sprintf(lockedAny, e.Name, w.named(c.names, " or "), e.Name)
	case clauseState:
		return fmt.Sprintf(lockedState, e.Name, w.state, list(c.names, " or "), w.leadsTo(c.names))
	case clauseOpened:
		if e.within == nil || e.within.Name != c.names[0] {
			return fmt.Sprintf(lockedNested, e.Name, c.names[0])
		}
		if len(c.names) == 1 {
			return fmt.Sprintf(lockedOpened, e.Name, c.names[0], e.Name)
		}
		return fmt.Sprintf(lockedCategory, e.Name, c.names[0], e.within.facade.parameter, c.names[1], e.Name)
	case clauseExclusive:
		return fmt.Sprintf(lockedClosed, e.Name, c.names[0], list(w.toolsOf(c.names[0]), ", "))
	case clauseArtifact:
		return fmt.Sprintf(lockedArtifact, e.Name, c.names[0], w.returners(c.names[0]))
	case clauseShared:
		return fmt.Sprintf(lockedShared, e.Name, c.names[0])
	case clauseBound:
		what := c.names[0]
		if what == anyType {
			what = anyObject
		}
		if w.board.untaken.has(c.names[0]) {
			return fmt.Sprintf(notTaken, e.Name, what)
		}
		return fmt.Sprintf(notAvailableYet, e.Name, what, w.returners(c.names[0]))
	case clauseWhen:
	}
	if err != nil {
		return fmt.Sprintf(lockedFailed, e.Name, err.Message)
	}
	return fmt.Sprintf(lockedWhen, e.Name, c.text)
}

// has reports whether a tool that is needed was called, or has succeeded, as the clause asks.
func (w wording) has(c *clause, tool string) bool {
	if strings.Contains(c.text, behind(ofCalled, tool)) {
		return w.called.has(tool)
	}
	return w.succeeded.has(tool)
}

// named lists tools by the names that a planner knows.
func (w wording) named(tools []string, last string) string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t
		for e := range w.entries {
			if e.Tool == t {
				names[i] = e.Name
				break
			}
		}
	}
	return list(names, last)
}

// list writes names in quotes, with a word before the last.
func list(names []string, last string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = "'" + n + "'"
	}
	if n := len(quoted); n > 1 {
		return strings.Join(quoted[:n-1], ", ") + last + quoted[n-1]
	}
	return strings.Join(quoted, "")
}

// leadsTo says what leads to one of some states from where the machine is.
func (w wording) leadsTo(states []string) string {
	var names []string
	to := ""
	for e := range w.entries {
		if slices.Contains(states, e.To) && (to == "" || e.To == to) && (e.states == nil || slices.Contains(e.states, w.state)) {
			names, to = append(names, e.Name), e.To
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(leads, list(names, " or "), "'"+to+"'")
}

// returners says which tools return objects of a type, as far as the definition says so.
func (w wording) returners(typ string) string {
	var names []string
	for e := range w.entries {
		if e.artifact != nil && (typ == anyType || fits(e.artifact.typ, typ)) {
			names = append(names, e.Name)
		}
	}
	if len(names) == 0 {
		return fmt.Sprintf(returnsIt, "a tool that returns one")
	}
	return fmt.Sprintf(returnsIt, list(names, " or "))
}
