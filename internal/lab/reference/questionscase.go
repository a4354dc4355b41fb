package reference

import (
	"slices"
	"strings"
)

// QuestionForms names what Generate can put into a plan and counts under Options.Questions, besides Forms.
func QuestionForms() []string {
	return []string{
		"ask", "ask of items", "approval", "approval with a text", "approval in time", "approval of all items", "plan approval",
		"contract always", "contract condition", "tool asks", "tool is rejected", "said reject", "said expire", "said value", "said arguments",
	}
}

// Say is what the people of a case answer.
func (c Case) Say(step, kind string) Answer {
	a, own := c.Sayings[step]
	id, _ := splitToken(step)
	if !own {
		a, own = c.Sayings[id]
	}
	if !own || !a.takes(kind) {
		return everybody(step, kind)
	}
	return a
}

// refusal is a rejection as its error tells of it.
var refusal = Answer{Decision: reject, Refusal: "Rejected by ann (unverified): no"}

// rule makes up which calls of a tool wait for an approval.
func (g *generator) rule() string {
	switch g.Intn(8) {
	case 0:
		g.c.Forms["contract always"]++
		return always
	case 1:
		g.c.Forms["contract condition"]++
		return pick(g.Rand, []string{"$args != null", "$args.no.such > 1", "$args > 1", "$args.x == null", `$args["id"] != 42`})
	}
	return ""
}

// asking makes a step one that asks a person, and returns the fields that say so; nil for one that stays what it is. as
// is what its items are called.
func (g *generator) asking(last *made, targets []made, as string) []string {
	if !g.questions || g.Intn(8) > 0 {
		return nil
	}
	last.tool = askTool
	text := `"Which one?"`
	switch {
	case as != "":
		g.c.Forms["ask of items"]++
		text = g.spell("Which of ${ref:" + as + "}?")
	case len(targets) > 0:
		text = g.spell(g.template(targets) + "?")
	}
	g.c.Forms["ask"]++
	fields := []string{`"tool":"ask"`, `"arguments":{"question":` + text + `}`}
	if last.timed = g.Intn(3) == 0; last.timed {
		fields = append(fields, `"timeout":"`+g.patience+`"`)
	}
	return fields
}

// approval writes that a person is asked before a step; nothing for one that is not asked for. as is what its items are
// called.
func (g *generator) approval(last *made, targets []made, as string) []string {
	if !g.questions || last.tool == "" || last.tool == askTool || g.Intn(4) > 0 {
		return nil
	}
	g.c.Forms["approval"]++
	last.guarded = true
	if g.Intn(3) == 0 {
		return []string{`"approval":true`}
	}
	var fields []string
	if as != "" && g.Intn(2) == 0 {
		g.c.Forms["approval of all items"]++
		last.together = true
		fields = append(fields, `"all":true`)
	}
	switch {
	case g.Intn(3) == 0:
	case last.together || len(targets) == 0 && as == "":
		fields = append(fields, `"ask":`+g.spell("May it begin?"))
	case as != "":
		fields = append(fields, `"ask":`+g.spell("May ${ref:"+as+"}?"))
	default:
		g.c.Forms["approval with a text"]++
		fields = append(fields, `"ask":`+g.spell(pick(g.Rand, []string{g.template(targets), "$ref:" + g.ref(targets), g.alternatives(targets)})))
	}
	switch last.timed = g.Intn(3) == 0; {
	case last.timed:
		g.c.Forms["approval in time"]++
		fields = append(fields, `"timeout":"`+g.patience+`"`, `"on_timeout":`+pick(g.Rand, []string{`"approve"`, `"reject"`, "null"}))
	case g.Intn(3) == 0:
		fields = append(fields, `"timeout":null`)
	}
	return []string{`"approval":` + g.object(fields)}
}

// planApproval writes that a person is asked before a plan, and what is said.
func (g *generator) planApproval(o Options) []string {
	if !g.questions || g.Intn(8) > 0 {
		return nil
	}
	g.c.Forms["plan approval"]++
	if g.Intn(8) == 0 && !o.NoFailures {
		g.c.Sayings[thePlan] = refusal
	}
	return []string{`"approval":` + pick(g.Rand, []string{"true", `{"ask":"May it begin?"}`, `{"timeout":"` + g.patience + `","on_timeout":"approve"}`})}
}

// sayings makes up what people say who are asked about the step made last, once it is known what its tool does.
func (g *generator) sayings(o Options) {
	last := &g.steps[len(g.steps)-1]
	if !g.questions || last.tool == "" {
		return
	}
	if last.tool != askTool && !last.guarded && g.c.Contracts[last.tool].Approval == "" {
		if s := g.c.Scripts[last.id]; s.Asks > 0 && g.c.Contracts[last.tool].Asks && !last.each && !o.NoFailures && g.Intn(4) == 0 {
			g.c.Forms["tool is rejected"]++
			g.c.Sayings[last.id] = refusal
		}
		return
	}
	if !last.each || last.together {
		if a, says := g.saying(last, o, !last.together); says {
			g.c.Sayings[last.id] = a
		}
		return
	}
	if last.tool == askTool {
		g.c.Sayings[last.id] = g.value(last)
	}
	for k := range 4 { // only one item may fail, so that the order in which they are asked for does not matter
		if a, says := g.saying(last, o, true); says && (a.Decision == "" || a.Decision == approve) {
			g.c.Sayings[token(last.id, k)] = a
		}
	}
	fails := slices.ContainsFunc([]int{0, 1, 2, 3}, func(k int) bool { return len(g.c.Scripts[token(last.id, k)].Failures) > 0 })
	if !fails && !o.NoFailures && g.Intn(3) == 0 {
		g.c.Forms["said reject"]++
		g.c.Sayings[token(last.id, g.Intn(4))] = refusal
	}
}

// saying is what a person says of one call, or nothing but yes.
func (g *generator) saying(last *made, o Options, alone bool) (a Answer, says bool) {
	n := g.Intn(10)
	switch {
	case n == 0 && !o.NoFailures:
		g.c.Forms["said reject"]++
		return refusal, true
	case n < 3 && last.timed && !o.NoFailures && !last.each:
		g.c.Forms["said expire"]++
		return Answer{Decision: expire}, true
	case last.tool == askTool || n == 3 && alone:
		return g.value(last), true
	case n == 4 && alone:
		g.c.Forms["said arguments"]++
		return Answer{Decision: approve, Arguments: []byte(`{"edited":[1,"x"],"x":` + g.json(1) + "}")}, true
	}
	return a, false
}

// value is a person's own result of a step.
func (g *generator) value(last *made) Answer {
	g.c.Forms["said value"]++
	raw := []byte(strings.TrimSpace(g.json(2)))
	if v, err := read(raw); err == nil && last.tool == askTool {
		last.result = v
	}
	return Answer{Value: raw}
}
