package agent

import (
	"encoding/json"
	"strings"

	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// Entry is a tool as a planner is shown it: what it is called, when it may be called, and what its success brings about.
// Whatever it was written as, it is one condition over facts and the facts that it sets.
type Entry struct {
	// Name is what the planner calls it by.
	Name string
	Kind Kind
	// Tool is the tool that a call of it calls, and the name that facts have it by: its own for all that is built in.
	Tool string
	// Description is what the planner is told of it.
	Description string
	// InputSchema is that of its arguments, without those that are bound; nil accepts any object.
	InputSchema json.RawMessage
	// OutputSchema is that of its results; nil for one that is not declared.
	OutputSchema json.RawMessage
	// Destructive is the tool's own hint.
	Destructive bool
	// Direct says that its success ends the loop, with its result as the output.
	Direct bool
	// Once is the advice to whoever calls it again, where HasOnce.
	Once    string
	HasOnce bool
	// To is the state that its success leads to; empty for none.
	To string
	// At is its place in the definition.
	At string

	clauses  []clause
	binds    []bind
	artifact *artifactRule
	facade   *facade // of a facade
	within   *Entry  // the facade that it belongs to; nil for none
	chain    *chain  // whose object it acts upon; nil for none
	search   *searchRule
	states   []string // in which it is there; nil: in all

	input, output func() *tool.Schema // compiled when they are needed first; nil for none
}

// Kind is what a call of an entry comes to.
type Kind string

// The kinds.
const (
	KindTool    Kind = "tool"    // a call of its tool
	KindFacade  Kind = "facade"  // opens its tools
	KindContext Kind = "context" // tells what the tools of a facade have in common
	KindPlan    Kind = "plan"    // runs its arguments as a plan
	KindSearch  Kind = "search"  // finds tools, which are entries from then on
	KindBuiltIn Kind = "builtin" // answers from what is known of the agent's run
	KindTell    Kind = "tell"    // tells the user something
	KindAsk     Kind = "ask"     // asks the user something
)

// clause is one part of an entry's condition: all of them have to hold.
type clause struct {
	kind  clauseKind
	names []string // what it asks for
	text  string   // as an expression over facts
	cond  *condition
}

// clauseKind is what a clause asks for.
type clauseKind uint8

const (
	clauseOpened    clauseKind = iota // a facade was opened; names: it, then the categories
	clauseExclusive                   // a facade of others was not
	clauseState                       // the state machine is in one of some states
	clauseAll                         // all of some tools
	clauseAny                         // one of some tools
	clauseArtifact                    // an artifact of a type
	clauseShared                      // something stands at a path of the state
	clauseWhen                        // a condition of the author's
	clauseBound                       // a chain has its object
)

// hides reports whether a planner is not shown an entry of which this does not hold.
func (c *clause) hides() bool { return c.kind <= clauseState }

// Condition is the condition under which the entry may be called, as an expression over facts; "true" for one that
// always may be.
func (e *Entry) Condition() string {
	if len(e.clauses) == 0 {
		return "true"
	}
	texts := make([]string, len(e.clauses))
	for i, c := range e.clauses {
		texts[i] = c.text
		if len(e.clauses) > 1 && (c.kind == clauseWhen || c.kind == clauseAny) {
			texts[i] = "(" + c.text + ")"
		}
	}
	return strings.Join(texts, " and ")
}

// Sets are the facts that a success of the entry sets, each as a reference and its value.
func (e *Entry) Sets() []string {
	sets := []string{behind(ofCalled, e.Tool) + " = true", behind(ofSucceeded, e.Tool) + " = true"}
	if e.To != "" {
		sets = append(sets, "$state = "+string(quoteJSON(e.To)))
	}
	if e.Kind == KindFacade {
		sets = append(sets, behind(ofOpened, e.Name)+" = $args")
	}
	if a := e.artifact; a != nil {
		sets = append(sets, behind(ofArtifact, a.typ)+" = "+reference{ofResult, a.path}.String())
	}
	return sets
}

// add appends a clause that this package wrote.
func (e *Entry) add(kind clauseKind, text string, names ...string) {
	e.clauses = append(e.clauses, clause{kind, names, text, made(text)})
}

// inFacade reports whether the entry is a facade, or belongs to it, at any depth.
func (e *Entry) inFacade(f *Entry) bool {
	for ; e != nil; e = e.within {
		if e == f {
			return true
		}
	}
	return false
}

// Selects is the tool that returns the entries of a facade; empty for one that has them, and for what is no facade.
func (e *Entry) Selects() string {
	if e.Kind != KindFacade {
		return ""
	}
	return e.facade.selects
}

// Searches reports whether the entry is a search for tools, and of which group; an empty role is all of them.
func (e *Entry) Searches() (role string, is bool) {
	if e.Kind != KindSearch {
		return "", false
	}
	return e.search.group, true
}

// artifactRule says what of a result goes to the blackboard.
type artifactRule struct {
	typ   string
	path  []element
	when  *condition
	sinks []Sink
}

// Sink is where an artifact goes beside the blackboard.
type Sink struct {
	Subject string
	Bucket  string
}

// Sinks are where artifacts of the entry go beside the blackboard.
func (e *Entry) Sinks() []Sink {
	if e.artifact == nil {
		return nil
	}
	return e.artifact.sinks
}

// bind is an argument that the planner does not see.
type bind struct {
	name string
	raw  json.RawMessage // of a constant
	ref  *reference
}

// facade is what an entry opens.
type facade struct {
	notes      string
	exclusive  bool
	parameter  string   // that names the category; empty for a facade without
	categories []string // sorted; with "all" where there are tools without a category
	takesArgs  bool     // it may be opened again, with other arguments
	selects    string   // the tool that returns its entries; empty for a facade that has them
}

// searchRule bounds what a search finds.
type searchRule struct {
	group string
	limit int
}

// chain is the tools of an object that some tool returns.
type chain struct {
	typ  string // "*" for any
	when *condition
	at   string
	has  bool // it has tools
}

// anyType is the type of a chain that any object is bound to.
const anyType = "*"

// fits reports whether an artifact of a type is one of another: by its full name, or by what stands behind the last dot.
func fits(full, wanted string) bool {
	return full == wanted || simpleName(full) == wanted
}

// validName reports whether a state, a category or a type is 1 to 128 of A-Z a-z 0-9 _ . : / -.
func validName(s string) bool { return subjects.ValidTool(s) }

// takes reports whether a chain acts upon an object, of which and of whose facts look is.
func (c *chain) takes(look sight) bool { return c.when.meets(look) }
