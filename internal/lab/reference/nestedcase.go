package reference

import (
	"fmt"
	"math/rand"
	"strings"
)

// nest makes random plans with plans within them, in both forms.
type nest struct {
	*rand.Rand
	*Nested
	stop    bool // some plans stop with the first failure
	largest int  // composites so far
}

// nestedForm is a text in both forms.
type nestedForm struct{ nested, flat string }

// asInput writes references to the input as they stand in a plan within another.
var asInput = strings.NewReplacer("${ref:"+nestedInput+".", "${input.", "$ref:"+nestedInput, "$input")

func inBothForms(text string) nestedForm { return nestedForm{asInput.Replace(text), text} }

// partOf is a part of what a step returns; those named e… return a list.
func partOf(id, key string) string {
	if id[0] == 'e' {
		return id + "[0].data." + key
	}
	return id + "." + key
}

// value writes a value that refers to some of the steps before it.
func (g *nest) value(before []string) string {
	if len(before) == 0 {
		return fmt.Sprint(g.Intn(3))
	}
	id := func() string { return before[g.Intn(len(before))] }
	part := func(key string) string { return partOf(id(), key) }
	switch g.Intn(10) {
	case 0, 1, 2:
		return `"$ref:` + id() + `"`
	case 3, 4, 5:
		return `"$ref:` + part("v") + `"`
	case 6:
		return `"it is ${ref:` + part("v") + `}"`
	case 7:
		return `"$ref:` + part("w") + ` || $ref:` + part("v") + ` || 7"`
	case 8:
		if x := id(); x != nestedInput {
			return `"$status:` + x + `"`
		}
		return `null`
	}
	return fmt.Sprint(g.Intn(3))
}

// worth writes what a step is worth that calls nothing.
func (g *nest) worth(before []string) string {
	w := g.value(before)
	if len(before) > 0 && g.Intn(2) == 0 {
		w = `{"$calc":"$ref:` + partOf(before[g.Intn(len(before))], "v") + ` == 1"}`
	}
	return `{"v":` + g.value(before) + `,"w":` + w + `}`
}

// condition writes one for the steps before it.
func (g *nest) condition(before []string) string {
	id := before[g.Intn(len(before))]
	if g.Intn(3) == 0 && id != nestedInput {
		return `"$status:` + id + ` == 'succeeded'"`
	}
	return `"$ref:` + []string{partOf(id, "v") + ` != 1"`, partOf(id, "v") + ` != null"`, id + ` != 2"`, partOf(id, "w") + `"`}[g.Intn(4)]
}

// step writes one step.
func (g *nest) step(id string, depth int, before []string) nestedForm {
	fields, arguments := []string{`"id":"` + id + `"`}, [2]string{g.value(before), g.value(before)}
	if id[0] == 'e' {
		arguments[0] = `"$ref:item"`
		fields = append(fields, `"for_each":{"in":[`+[]string{"", "1", `1,{"v":2}`, "3," + g.value(before)}[g.Intn(4)]+`]}`)
	}
	if len(before) > 0 && g.Intn(4) == 0 {
		fields = append(fields, `"if":`+g.condition(before))
	}
	if g.Intn(6) == 0 {
		fields = append(fields, `"optional":true`)
	}
	if id[0] == 's' && g.Intn(5) == 0 {
		return inBothForms(`{` + strings.Join(append(fields, `"value":`+g.worth(before)), ",") + `}`)
	}
	does := g.does(depth)
	if g.Intn(4) == 0 {
		return g.loop(fields, arguments, does)
	}
	both := inBothForms(strings.Join(append(fields, `"arguments":{"v":`+arguments[0]+`,"w":`+arguments[1]+`}`), ","))
	return nestedForm{`{` + both.nested + `,` + does.nested + `}`, `{` + both.flat + `,` + does.flat + `}`}
}

// does writes what a step does: it calls a tool, or has a plan of its own.
func (g *nest) does(depth int) nestedForm {
	if depth == 3 || g.Intn(3) > 0 {
		x := g.tools
		name := []string{x.Echo, x.Echo, x.Echo, x.Flaky, x.Broken, x.Text}[g.Intn(6)]
		return inBothForms(`"tool":"` + name + `"`)
	}
	inner := g.plan(depth + 1)
	g.largest++
	name := fmt.Sprintf("composite%d", g.largest)
	x := nestedTwin{plan: inner.flat, partial: g.Intn(3) == 0}
	g.twins[name] = x
	own := `"plan":` + inner.nested
	if x.partial {
		own += `,"partial":true`
	}
	return nestedForm{own, `"tool":"` + name + `"`}
}

// plan writes a plan; depth 0 is that of the run.
func (g *nest) plan(depth int) nestedForm {
	var before []string
	var nested, flat []string
	if depth > 0 {
		before = append(before, nestedInput)
		flat = append(flat, `{"id":"`+nestedInput+`","tool":"`+nestedInput+`","optional":true}`)
	}
	for i := range 1 + g.Intn(4) {
		id := fmt.Sprint([]string{"s", "s", "s", "e"}[g.Intn(4)], i)
		s := g.step(id, depth, before)
		nested, flat = append(nested, s.nested), append(flat, s.flat)
		before = append(before, id)
	}
	steps := before[min(depth, 1):]
	var fields []string
	switch g.Intn(3) {
	case 0:
		fields = append(fields, `"output":{"a":`+g.value(steps)+`,"b":[`+g.value(steps)+`]}`)
	case 1:
		fields = append(fields, `"output_steps":["`+before[len(before)-1]+`"]`)
	default:
		var ids []string
		for _, id := range before {
			if id != nestedInput {
				ids = append(ids, `"`+id+`"`)
			}
		}
		fields = append(fields, `"output_steps":[`+strings.Join(ids, ",")+`]`)
	}
	if g.Intn(5) == 0 {
		fields = append(fields, `"on_missing":"error"`)
	}
	if g.Intn(4) == 0 {
		fields = append(fields, `"schedule":"waves"`)
	}
	if g.stop && g.Intn(2) == 0 {
		fields = append(fields, `"on_failure":"stop"`)
	}
	if g.Intn(3) == 0 {
		fields = append(fields, fmt.Sprintf(`"concurrency":%d`, 1+g.Intn(2)))
	}
	options := inBothForms(strings.Join(fields, ","))
	all := strings.Join(nested, ",")
	if (depth > 0 || strings.Contains(all, `"plan":`) || strings.Contains(all, `"repeat":`)) && !strings.Contains(options.flat, `"concurrency"`) {
		options.flat += `,"concurrency":1000` // so that the twin is in the same language
	}
	return nestedForm{`{` + options.nested + `,"steps":[` + all + `]}`, `{` + options.flat + `,"steps":[` + strings.Join(flat, ",") + `]}`}
}
