package agent

import (
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

// parser is one reading of one definition.
type parser struct {
	report
	def       *Definition
	wants     []want
	stateUses []stateUse
	absent    map[string]bool // optional tools that were left out
	dynamic   bool            // entries may come that nobody knows yet
	alone     bool            // conditions about objects see those alone, as in runs of before
	full      bool
}

// want is a name in a condition that has to be one of something.
type want struct{ word, name, at string }

// stateUse is a place where a state is named.
type stateUse struct {
	state, at string
	to        bool
}

// place is where an entry stands beside others.
type place struct {
	facade     *Entry
	categories []string // of that facade in which it is there; nil: in all
	chain      *chain
	chainBinds []bind
	depth      int
}

// condition reads an author's condition; nil where there is none.
func (p *parser) condition(v value, words []string) *condition {
	s := p.text(v)
	if s == "" {
		return nil
	}
	c, err := compile(s, words)
	if err != nil {
		hint := err.Hint
		if strings.Contains(hint, "$ref:") { // there are no steps here
			hint = "refer to " + "$" + strings.Join(words, ", $") + `: $input.total, $input["the key"]`
		}
		p.problem(err.Code, v.at, hint, "%s", err.Message)
		return nil
	}
	p.mentions(c, v.at)
	return c
}

// aboutObject reads the condition under which an object is taken: it sees the object, and the facts as of the record that
// it came by.
func (p *parser) aboutObject(v value) *condition {
	if p.alone {
		return p.condition(v, objectAlone)
	}
	return p.condition(v, objectWords)
}

// mentions notes what the condition of an author names.
func (p *parser) mentions(c *condition, at string) {
	for _, r := range c.refs {
		switch {
		case r.word == ofBoard: // any worker may say that what it returns is of a type
		case slices.Contains(named, r.word):
			p.wants = append(p.wants, want{r.word, r.path[0].key, at})
		case r.word == ofState && len(r.path) == 0:
			p.wants = append(p.wants, want{ofState, "", at})
		}
	}
}

// wantTool notes that a tool has to be there that is no entry.
func (p *parser) wantTool(name, at string) {
	if name == "" || p.def.universe.catalog == nil {
		return
	}
	if _, ok := p.def.universe.lookup(name); !ok {
		p.problem(fault.UnknownTool, at, thereAre(name, p.def.universe.names()), "there is no tool %q", clip(name))
	}
}

// schema compiles a schema; nil where there is none.
func (p *parser) schema(v value) *tool.Schema {
	if !v.there() {
		return nil
	}
	s, err := tool.CompileSchema(v.raw)
	for _, f := range tool.FlawsOf(err) {
		p.problem(fault.InvalidValue, v.at+f.Path, f.Hint, "%s", f.Message)
	}
	if err != nil && len(tool.FlawsOf(err)) == 0 {
		p.problem(fault.InvalidValue, v.at, fault.As(err).Hint, "%s", fault.As(err).Message)
	}
	return s
}

// template reads a text of a definition.
func (p *parser) template(v value) Text {
	s := p.text(v)
	if s != "" {
		_, why := fill(s, textWords, nil)
		p.broken(why, v.at)
	}
	return Text{s}
}

// checkText reports what is wrong with a description.
func (p *parser) checkText(s, at string, in place) {
	if in.facade != nil && in.facade.facade.takesArgs {
		_, why := fill(s, argsWords, nil)
		p.broken(why, at)
	}
}

func (p *parser) broken(why, at string) {
	if why != "" {
		p.problem(fault.InvalidRef, at, "write ${input.topic}; where the text is meant, double the dollar: $${", "%s", why)
	}
}

// stateNames returns the states in the order in which the definition names them first.
func (p *parser) stateNames() (all []string) {
	if s := p.def.States; s != nil && s.Initial != "" {
		all = append(all, s.Initial)
	}
	for _, u := range p.stateUses {
		if !slices.Contains(all, u.state) {
			all = append(all, u.state)
		}
	}
	return all
}
