package plan

import (
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/dialect"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/tool"
)

// Compiled returns the plan with steps that a document is read as: what a plan of the state dialect is compiled to, else
// the document itself. It is nil for a document in which nothing can be compiled.
func Compiled(body []byte) []byte {
	var p parser
	if !p.scan(body) || !inCalls(&p, body) {
		return body
	}
	return dialect.Compile(body, p.tape, compiler).Plan
}

// inCalls reports whether a plan is of the state dialect.
func inCalls(p *parser, body []byte) bool {
	steps := p.fieldOf(0, "steps")
	return (steps == 0 || p.tape[steps].Kind == jsontape.Null) && dialect.Is(body, p.tape)
}

// compiler is what the dialect's compiler has to know of this package.
var compiler = dialect.Language{Escape: Escape, EscapeText: escapeText}

// knowing is the compiler's language with what the tools of a catalog return.
func knowing(c Catalog) dialect.Language {
	l := compiler
	if c != nil {
		l.Output = func(name string) *tool.Schema {
			t, _ := c.Lookup(name)
			return t.Output
		}
	}
	return l
}

// inDialect reads a plan of the state dialect: as the plan that it is compiled to. Problems are told in the places and
// the words of what was submitted.
func inDialect(p *parser, body []byte, c Catalog, l Limits) (*Plan, Report) {
	d := dialect.Compile(body, p.tape, knowing(c))
	flawed := p.col.failed()
	for _, x := range d.Problems {
		p.col.addf(x.Code, x.Path, x.Hint, "%s", x.Message)
	}
	own := p.col.report()
	for i := range own.Problems {
		own.Problems[i].Step = d.ID(own.Problems[i].Path)
	}
	if d.Plan == nil || flawed {
		return nil, own
	}
	l.MaxBytes = len(d.Plan)
	q, compiled := parse(d.Plan, c, l, true)
	if q != nil && !l.Unheld {
		holdResults(q, d)
	}
	all := slices.Clone(compiled.Problems)
	compiled.Problems = slices.DeleteFunc(compiled.Problems, func(x fault.Problem) bool { // a guard asks what an argument reads
		step, in := strings.CutSuffix(x.Path, "/if")
		return in && slices.ContainsFunc(all, func(y fault.Problem) bool {
			return y.Message == x.Message && strings.HasPrefix(y.Path, step+"/arguments")
		})
	})
	if len(own.Problems) > 0 { // what follows from them is no problem of its own
		q = nil
		compiled.Problems = slices.DeleteFunc(compiled.Problems, func(x fault.Problem) bool {
			return x.Code == fault.Cycle || d.Faulty(x.Path)
		})
	}
	return q, Report{
		Problems: append(own.Problems, submitted(d, compiled.Problems)...),
		Warnings: append(own.Warnings, submitted(d, compiled.Warnings)...),
	}
}

// submitted returns what was told of a compiled plan in the places and the words of what was submitted.
func submitted(d *dialect.Compiled, told []fault.Problem) []fault.Problem {
	for i := range told {
		x := &told[i]
		x.Path, x.Message, x.Hint = d.Place(x.Path), d.Words(x.Message), d.Words(x.Hint)
		for k := range x.Paths {
			x.Paths[k] = d.Place(x.Paths[k])
		}
		x.Step = d.ID(x.Path)
	}
	return told
}

// holdResults lets results be held against the schema of the state, where there is one.
func holdResults(p *Plan, d *dialect.Compiled) {
	for i := range p.Steps {
		if places := d.Held(i); places != nil {
			p.Steps[i].Held, p.holds = &Held{places}, true
		}
	}
}

// misfit is the error of a call that wrote what the schema of the state does not allow.
func misfit(at dialect.Held, bad []tool.Violation) *fault.Error {
	message, hint := tool.Misfit(bad, at.Shown)
	err := fault.New(fault.StateInvalid, "what was returned does not fit the schema of the state: %s", message)
	err.Retryable = false
	if hint != "" {
		hint += "; "
	}
	return err.WithHint("%s", hint+"mend the tool, or let the schema of the state allow what it returns")
}

// StateSchema is the need of a plan whose state has a schema: what its calls return is held against it while it runs.
const StateSchema = "state-schema"

// Held is what the schema of a state says of the result of a step. It is immutable.
type Held struct {
	places []dialect.Held
}

// FullCheck is more than the steps that any check of a result takes.
const FullCheck = 1 << 30

// Check holds a result against it; nil where it fits. It takes the steps that it uses from those that are left. Where
// nothing is left the answer says nothing: there were not enough. What it comes to depends on plan and value alone.
func (h *Held) Check(value []byte, left *int) *fault.Error {
	for _, at := range h.places {
		bad := tool.CheckPart(at.Schema, at.Path, value, at.Part, left)
		if *left <= 0 {
			return nil
		}
		if len(bad) > 0 {
			return misfit(at, bad)
		}
	}
	return nil
}

// Unreadable is what a call fails with whose result can't be read to be held against the schema.
func (h *Held) Unreadable(why string) *fault.Error {
	return fault.New(fault.StateInvalid, "the result can't be held against the schema of the state: %s", why)
}

// String names the places, for tests and whoever looks at a plan.
func (h *Held) String() string {
	var all []string
	for _, at := range h.places {
		place := at.Shown("")
		if at.Part {
			place += " in part"
		}
		all = append(all, place)
	}
	return strings.Join(all, " and ")
}
