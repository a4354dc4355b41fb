// Package unfold takes plans apart, so that tests can hand them to a run in parts, by amendments, and see that it comes
// to what it comes to as a whole.
package unfold

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"

	"github.com/stepjet/stepjet/plan"
)

// Gate is the id of a step that is there from the beginning, and is discarded with the last part. What waits for it can
// be discarded and written again at any time until then.
const Gate = "GATE"

// Tools are what the steps call that are no part of the plan.
type Tools struct {
	Echo, Broken string
	Gate         json.RawMessage // a step of the id Gate, which does not end by itself
}

// Part is one amendment of the plan.
type Part struct {
	Add         []json.RawMessage
	Discard     []string
	Output      json.RawMessage `json:",omitempty"`
	OutputSteps []string
	Close       bool
}

// Unfolded is a plan in parts.
type Unfolded struct {
	// Base is what is submitted: an open plan with some of the steps.
	Base []byte
	// Parts add the others, some after something else stood under their id, beside steps that are discarded again. The
	// last closes the plan: what runs then is what was taken apart, whose results are returned.
	Parts []Part
	// Whole has all steps that there ever are under their own ids, whatever order they came in.
	Whole []byte
}

// Plan takes a plan apart, whose text is body. It reports false for one that can't be: of language 1, scheduled by waves,
// stopped by a failure, or approved as a whole.
func Plan(rng *rand.Rand, body []byte, p *plan.Plan, tools Tools) (*Unfolded, bool) {
	u := &unfolding{Rand: rng, tools: tools, whole: p, there: map[int]bool{}, decoys: map[int]bool{}}
	var doc map[string]json.RawMessage
	if json.Unmarshal(body, &doc) != nil || json.Unmarshal(doc["steps"], &u.steps) != nil {
		return nil, false
	}
	if p.Language == 1 || p.Schedule == plan.Waves || p.OnFailure == plan.Stop || p.Approval != nil {
		return nil, false
	}
	last := Part{Close: true, Output: doc["output"]}
	if last.Output == nil {
		for _, o := range p.Outputs {
			last.OutputSteps = append(last.OutputSteps, p.Steps[o].ID)
		}
	}
	delete(doc, "output")
	delete(doc, "output_steps")
	doc["open"] = json.RawMessage("true")
	base := append([]json.RawMessage{tools.Gate}, u.some()...)
	for len(u.there) < len(u.steps) {
		u.part()
	}
	last.Discard = append(slices.Clip(u.junk), Gate)
	return &Unfolded{Base: with(doc, base), Parts: append(u.parts, last), Whole: with(doc, slices.Concat(base[:1], u.steps, u.extra))}, true
}

// with is a plan with other steps.
func with(doc map[string]json.RawMessage, steps []json.RawMessage) []byte {
	doc["steps"], _ = json.Marshal(steps) // they were read from JSON, as the rest
	body, _ := json.Marshal(doc)
	return body
}

// unfolding is a plan that is taken apart.
type unfolding struct {
	*rand.Rand
	tools  Tools
	whole  *plan.Plan
	steps  []json.RawMessage
	there  map[int]bool
	decoys map[int]bool // something else stands under the id of these
	parts  []Part
	extra  []json.RawMessage // steps that are no part of the plan, and
	junk   []string          // their ids
}

// some returns steps that refer to none but those that are there, and they are.
func (u *unfolding) some() (list []json.RawMessage) {
	for i := range u.whole.Steps {
		ready := !slices.ContainsFunc(u.whole.Steps[i].Deps, func(d int) bool { return !u.there[d] })
		if !u.there[i] && ready && u.Intn(2) == 0 {
			u.there[i] = true
			list = append(list, u.steps[i])
		}
	}
	return list
}

// part is one amendment. It may be empty, and then is none.
func (u *unfolding) part() {
	a := Part{Add: u.some()}
	for i := range u.whole.Steps {
		id := u.whole.Steps[i].ID
		switch {
		case u.there[i] && u.decoys[i]:
			a.Discard = append(a.Discard, id)
			delete(u.decoys, i)
		case !u.there[i] && !u.decoys[i] && u.Intn(3) == 0:
			u.decoys[i] = true
			a.Add = append(a.Add, fmt.Appendf(nil, `{"id":%q,"tool":%q,"arguments":{"x":"$ref:%s"}}`, id, u.tools.Broken, Gate))
		}
	}
	switch u.Intn(4) {
	case 0:
		u.throwIn(&a, `{"id":%q,"tool":%q}`, u.tools.Broken)
	case 1:
		u.throwIn(&a, `{"id":%q,"tool":%q,"depends_on":["`+Gate+`"]}`, u.tools.Echo)
	case 2:
		if len(u.junk) > 0 {
			a.Discard = append(a.Discard, u.junk[u.Intn(len(u.junk))])
		}
	}
	if len(a.Add)+len(a.Discard) > 0 {
		u.parts = append(u.parts, a)
	}
}

// throwIn adds a step that is no part of the plan.
func (u *unfolding) throwIn(a *Part, form, tool string) {
	id := fmt.Sprintf("JUNK%d", len(u.parts))
	step := fmt.Appendf(nil, form, id, tool)
	u.junk, u.extra, a.Add = append(u.junk, id), append(u.extra, step), append(a.Add, step)
}

// Renamed returns the same plan with another name of a tool.
func (u *Unfolded) Renamed(from, to string) *Unfolded {
	all, _ := json.Marshal(u) // of JSON and texts
	renamed := &Unfolded{
		Base: bytes.ReplaceAll(u.Base, []byte(from), []byte(to)), Whole: bytes.ReplaceAll(u.Whole, []byte(from), []byte(to)),
	}
	var parts Unfolded
	_ = json.Unmarshal(bytes.ReplaceAll(all, []byte(from), []byte(to)), &parts)
	renamed.Parts = parts.Parts
	return renamed
}
