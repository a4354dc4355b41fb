package orchestrator

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// In some worlds the plans of steps are templates: the step calls a tool that is that plan. What becomes of a run is what
// becomes of it with the plans in their places, which is what the reference runs. Owners that come later read the
// definitions by the digests that the run froze.

// simTemplates are the templates of a world.
type simTemplates struct {
	none  bool // are made from now on
	names []string
	kept  map[string]*tool.Definition // all that ever were, by digest
	plans map[string]*plan.Template   // as the plans of the world were made with them
}

// withTemplates makes templates of some of the plans within a plan, the innermost first, so that some call each other.
func (w *world) withTemplates(body []byte) []byte {
	const field = `"plan":`
	if w.templates.none || w.seed%2 == 0 {
		return body
	}
	for end := len(body); end > 0; {
		at := bytes.LastIndex(body[:end], []byte(field))
		if at < 0 {
			break
		}
		if end = at; w.chance(2) {
			continue
		}
		from := at + len(field)
		to := jsontape.SkipValue(body, from)
		name := w.template(body[from:to])
		with := fmt.Appendf(bytes.Clone(body[:at]), `"tool":%q%s`, name, body[to:])
		if p, _ := plan.ParseLimited(with, nil, plan.Limits{Templates: w.templates.plans}); p != nil { // else it is "partial", say
			body = with
			w.stats["a plan of a step is a template"]++
		}
	}
	return body
}

// template registers a plan under a name of its own.
func (w *world) template(text []byte) string {
	t := &w.templates
	name := fmt.Sprintf("template.%d", len(t.names))
	t.names = append(t.names, name)
	if t.plans == nil {
		t.plans, t.kept = map[string]*plan.Template{}, map[string]*tool.Definition{}
	}
	x := w.applied(name, text)
	t.plans[name] = &plan.Template{Name: name, Plan: x.Plan}
	return name
}

// applied puts a plan into the registry under a name.
func (w *world) applied(name string, text []byte) *tool.Definition {
	raw, _ := json.Marshal(struct {
		Name string          `json:"name"`
		Plan json.RawMessage `json:"plan"`
	}{name, text})
	d, err := tool.ParseDefinition(raw)
	if err != nil {
		panic(err)
	}
	contract, err := d.Contract()
	if err != nil {
		panic(err)
	}
	w.templates.kept[d.Digest()] = d
	w.knobs.tools[name] = tool.Registered{Name: name, Definition: d, Contract: contract, Digest: d.Digest(), Revision: 1}
	return d
}
