package machine

import (
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// usedTools are the tools that a run has used by now, by name.
type usedTools struct {
	contracts map[string]*tool.Contract
	templates map[string]*plan.Template
}

// used returns the tools that a run has used by now.
func (as *amendments) used(t *tree) *usedTools {
	if as.tools == nil {
		as.tools = &usedTools{map[string]*tool.Contract{}, map[string]*plan.Template{}}
		as.tools.gather(t.root.base(), t.contracts)
	}
	return as.tools
}

func (u *usedTools) gather(p *plan.Plan, all []*tool.Contract) {
	if p.Guards != nil {
		u.gather(p.Guards, all)
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Tool != "" && !s.Ask {
			u.contracts[s.Tool] = all[p.Offset+i]
		}
		if s.Template != nil && s.Agent() == nil {
			u.templates[s.Tool] = s.Template
		}
		if s.Plan != nil {
			u.gather(s.Plan, all)
		}
	}
}

// with adds the tools of an amendment. Those that the run has already go before them.
func (u *usedTools) with(a *Amendment) *usedTools {
	for name, c := range a.Contracts {
		if u.contracts[name] == nil {
			u.contracts[name] = c
			if t := a.Templates[name]; t != nil {
				u.templates[name] = t
			}
		}
	}
	return u
}

// Template returns a tool of the run that is a plan, as the run froze it; nil for any other.
func Template(r *Run, name string) *plan.Template { return r.used(&r.tree).templates[name] }

// Templates returns those of the run's tools that are plans, by name. They must not be changed.
func Templates(r *Run) map[string]*plan.Template { return r.used(&r.tree).templates }
