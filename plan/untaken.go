package plan

import (
	"fmt"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// nothingTaken reports a step that takes nothing from a tool that its own depends on.
func (p *parser) nothingTaken(d *dependent, dep tool.Dependency) {
	if !p.col.wants(fault.MissingDependency) {
		return
	}
	field := ""
	if len(dep.RequiredFields) > 0 {
		field = dep.RequiredFields[0]
	}
	var ids []string
	example := ""
	for i := range p.plan.Steps {
		if s := &p.plan.Steps[i]; i != d.step && s.Tool == dep.Tool && subjects.ValidStepID(s.ID) && len(ids) <= maxListed {
			ids = append(ids, s.ID)
			if example == "" {
				example = p.example(i, dep.Tool, field)
			}
		}
	}
	hint := fmt.Sprintf("%q is called by: %s. Refer to the output, as in %q; depends_on alone hands nothing over", dep.Tool, listSome(ids), example)
	if len(ids) == 0 {
		hint = fmt.Sprintf("there is no tool %q; without it, %q can't be called", dep.Tool, p.plan.Steps[d.step].Tool)
		if _, registered := p.lookup(dep.Tool); registered {
			hint = fmt.Sprintf("add a step that calls %q, and refer to its output, as in %q", dep.Tool, refPrefix+"<id>"+p.exampleTail(dep.Tool, field))
		}
	}
	p.col.add(fault.MissingDependency, p.toolAt(d.step),
		fmt.Sprintf("%q needs output of %q, and no reference takes any, straight or through other steps", p.plan.Steps[d.step].Tool, dep.Tool), hint)
}

// fieldNotTaken reports a step that takes something from a tool, but not what its own needs.
func (p *parser) fieldNotTaken(d *dependent, dep tool.Dependency, field string, direct []use) {
	if !p.col.wants(fault.MissingDependency) {
		return
	}
	var taken []string
	for _, u := range direct {
		taken = append(taken, refPrefix+clip(u.text))
	}
	p.col.add(fault.MissingDependency, p.toolAt(d.step),
		fmt.Sprintf("%q needs %q of what %q returns; taken is only %s", p.plan.Steps[d.step].Tool, clip(field), dep.Tool, listSome(taken)),
		fmt.Sprintf("refer to it, as in %q", p.example(direct[0].step, dep.Tool, field)))
}

// example writes a reference that takes a field from a step; an empty field stands for all of its output.
func (p *parser) example(step int, name, field string) string {
	s := &p.plan.Steps[step]
	if s.ForEach != nil {
		return refPrefix + s.ID + "[0].data" + p.exampleTail(name, field)
	}
	return refPrefix + s.ID + p.exampleTail(name, field)
}

// exampleTail writes a path to a field of a tool's output, by its schema if that says where the field is.
func (p *parser) exampleTail(name, field string) string {
	if field == "" {
		return ""
	}
	if path, ok := p.declaredAt(name, field); ok {
		return pathText(path)
	}
	return pathText([]elem{{key: field, index: noIndex, isKey: true}})
}

// searchWork is what a search in a schema counts among the work of suggestions: it may have thousands of properties.
const searchWork = 2_000

// declaredAt returns the path to a field in a tool's output, where its schema says one.
func (p *parser) declaredAt(name, field string) ([]elem, bool) {
	output := p.tools[name].Output
	if output == nil {
		return nil, false
	}
	if p.near.left -= searchWork; p.near.left < 0 {
		return nil, false
	}
	path, ok := output.PathTo(field)
	all := make([]elem, len(path))
	for i, e := range path {
		all[i] = elem{key: e.Key, index: e.Index, isKey: e.IsKey}
	}
	return all, ok
}

// toolAt returns the place of a step's tool.
func (p *parser) toolAt(step int) string { return p.below(p.stepAt(step), p.node(step).tool).String() }
