package reference

import (
	"fmt"
	"strconv"
	"strings"
)

// nestedLoop is a loop as the reference has it: a tool, each call of which runs a plan again and again. The arguments of
// the call are what those of the iterations are made of, beside what an iteration knows.
type nestedLoop struct {
	each    string // the plan of an iteration
	until   string // that of the question whether the loop is over, whose one step is taken if it is; empty for none
	most    int
	collect bool
}

const codeRepeatExhausted = "repeat_exhausted"

// repeat calls a loop. It notes how its iterations ended, and what they were called with, as the steps of a plan within.
func (n *Nested) repeat(x nestedLoop, args []byte, token string, contracts map[string]Contract, all map[string]*Result) (Reply, error) {
	iterations := &Result{Steps: map[string]Step{}}
	all[token+"/"] = iterations
	last, list := []byte("null"), ""
	for i := range x.most {
		given := map[string][]byte{nestedInput: args, nestedLast: last, nestedIndex: []byte(strconv.Itoa(i))}
		res, err := n.run(x.each, given, fmt.Sprintf("%s/=%d/", token, i), contracts, all)
		if err != nil {
			return Reply{}, err
		}
		step := res.Steps[nestedEach]
		if iterations.Steps[fmt.Sprint("=", i)] = step; step.Status != succeeded {
			return Reply{Err: &Err{Code: step.Code, Message: "an iteration failed"}}, nil
		}
		last = res.Results[0].JSON
		list += "," + string(last)
		over, bad := x.over(last, i, contracts)
		switch {
		case bad != nil:
			return Reply{Err: bad}, nil
		case over && x.collect:
			return Reply{Body: []byte("[" + list[1:] + "]")}, nil
		case over:
			return Reply{Body: last}, nil
		}
	}
	return Reply{Err: &Err{Code: codeRepeatExhausted, Message: "it ran often enough"}}, nil
}

// over asks whether the loop is over with an iteration.
func (x nestedLoop) over(last []byte, index int, contracts map[string]Contract) (bool, *Err) {
	if x.until == "" {
		return index+1 == x.most, nil
	}
	res, err := Run([]byte(x.until), contracts, func(_, tool string, _ []byte, _ int) Reply {
		if tool == nestedLast {
			return Reply{Body: last}
		}
		return Reply{Body: []byte(strconv.Itoa(index))}
	})
	if err != nil {
		panic(err) // it was made here
	}
	step := res.Steps[nestedEach]
	if step.Status == failed {
		return false, &Err{Code: step.Code, Message: "it can't be told whether it is over"}
	}
	return step.Status == succeeded, nil
}

// asTurn writes what an iteration knows as the twin's plans have it.
var asTurn = strings.NewReplacer("$last", "$ref:"+nestedLast, "$index", "$ref:"+nestedIndex)

// knowing are the steps of the twin's plans that an iteration's arguments and its until refer to.
const knowing = `{"id":"` + nestedLast + `","tool":"` + nestedLast + `"},{"id":"` + nestedIndex + `","tool":"` + nestedIndex + `"}`

// loop writes a step as a loop. does is what an iteration does, in the fields of both forms: a tool, or a plan.
func (g *nest) loop(fields []string, arguments [2]string, does nestedForm) nestedForm {
	x := nestedLoop{most: 1 + g.Intn(3), collect: g.Intn(3) == 0}
	repeat := []string{fmt.Sprintf(`"max":%d`, x.most)}
	if g.Intn(3) > 0 {
		until := []string{"$index >= 1", "$last.v == 1", "($last.v != 1) and ($index > 0)", "$last", "$last > 1", "$last.w == $index"}[g.Intn(6)]
		repeat = append(repeat, `"until":"`+until+`"`)
		x.until = `{"concurrency":1000,"steps":[` + knowing + `,{"id":"` + nestedEach + `","value":1,"if":"` + asTurn.Replace(until) + `"}]}`
	}
	if x.collect {
		repeat = append(repeat, `"collect":true`)
	}
	if g.Intn(3) == 0 {
		repeat = append(repeat, `"every":"20ms"`)
	}
	var nested, flat, each []string
	for i, name := range []string{"v", "w"} {
		known := []string{"", "", `"$last"`, `"$last.v || 7"`, `"$index"`}[g.Intn(5)]
		if known == "" {
			nested, flat = append(nested, `"`+name+`":`+arguments[i]), append(flat, `"`+name+`":`+arguments[i])
			each = append(each, `"`+name+`":"$ref:`+nestedInput+`.`+name+`"`)
			continue
		}
		nested, flat = append(nested, `"`+name+`":`+known), append(flat, `"`+name+`":0`)
		each = append(each, `"`+name+`":`+asTurn.Replace(known))
	}
	x.each = `{"concurrency":1000,"output_steps":["` + nestedEach + `"],"steps":[{"id":"` + nestedInput + `","tool":"` + nestedInput + `"},` + knowing +
		`,{"id":"` + nestedEach + `","arguments":{` + strings.Join(each, ",") + `},` + does.flat + `}]}`
	g.largest++
	name := fmt.Sprintf("loop%d", g.largest)
	g.loops[name] = x
	both := inBothForms(strings.Join(fields, ","))
	args := inBothForms(strings.Join(nested, ","))
	return nestedForm{
		`{` + both.nested + `,"arguments":{` + args.nested + `},"repeat":{` + strings.Join(repeat, ",") + `},` + does.nested + `}`,
		`{` + both.flat + `,"arguments":{` + strings.Join(flat, ",") + `},"tool":"` + name + `"}`,
	}
}
