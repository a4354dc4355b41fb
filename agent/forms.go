package agent

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/dialect"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/plan"
)

// calls reads an answer of the state dialect. Its state is what the rounds before have left, its input the agent's.
func (r *reading) calls() {
	v := r.members["calls"]
	if v.kind() != jsontape.Array {
		r.wrong(v, "an array of calls", `write "calls": [{"_tool": "…"}]`)
		return
	}
	items := v.items()
	if len(items) == 0 {
		r.ended(EndNoSteps)
		return
	}
	r.output()
	calls := make([]json.RawMessage, len(items))
	for i, x := range items {
		calls[i] = r.callOf(x)
	}
	doc := r.document(arrayOf(calls))
	if r.parse(doc, plan.MaxSteps, func(path string) string { return path }); r.a.Plan != nil {
		r.a.writers = dialect.WritersOf(doc)
	}
}

// callOf takes one call, without "_again".
func (r *reading) callOf(v value) json.RawMessage {
	if v.kind() != jsontape.Object {
		return v.raw
	}
	names, members := v.members()
	r.asked(members["_tool"])
	again, is := members["_again"]
	if !is {
		return v.raw
	}
	id := readable(members["_id"].raw, members["_id"].kind() == jsontape.String)
	if id == "" {
		r.problem(fault.InvalidID, again.at, `add "_id"`, "a call that says \"_again\" has an id")
	}
	r.again(id, again)
	var o objectWriter
	for _, name := range names {
		if name != "_again" {
			o.add(name, members[name].raw)
		}
	}
	return o.json()
}

// commands reads an answer of commands: all of them run side by side, and what stands in their arguments is data.
func (r *reading) commands() {
	commands := commandsOf(r.members)
	if !goesOn(r.members, commands) {
		r.ended(EndResponse)
		return
	}
	ids := commandIDs(commands)
	steps := make([]json.RawMessage, len(commands))
	for i, c := range commands {
		r.asked(value{quoteJSON(c.Tool), c.at + "/tool_name"})
		args, err := plan.Escape(c.Arguments)
		if err != nil {
			args = c.Arguments // package plan says what is wrong
		}
		var o objectWriter
		o.add("id", quoteJSON(ids[i]))
		o.add("tool", quoteJSON(c.Tool))
		o.add("arguments", args)
		steps[i] = o.json()
	}
	r.a.Commands = commands
	var doc objectWriter
	doc.add("steps", arrayOf(steps))
	r.parse(doc.json(), len(steps), func(path string) string { return commandPlace(path, commands) })
}

// commandPlace returns the place in an answer of a place in the plan of its commands.
func commandPlace(path string, commands []Command) string {
	rest, in := strings.CutPrefix(path, "/steps/")
	number, behind, _ := strings.Cut(rest, "/")
	i, err := strconv.Atoi(number)
	if !in || err != nil || i >= len(commands) {
		return path
	}
	if behind == "" {
		return commands[i].at
	}
	return commands[i].at + renamed(renamed("/"+behind, "/tool", "/tool_name"), "/arguments", "/tool_kwargs")
}

// Runs returns which of the answer's own calls run before the planner is asked again, and which are left for it to say
// again. A call with a plan of its own is one; a value is none, and runs along with what it refers to.
func (a *Answer) Runs(advance Advance) (run, rest []int) {
	var own []int
	runs := make([]bool, len(a.Calls))
	for i, c := range a.Calls {
		if c.Within < 0 {
			own = append(own, i)
		}
	}
	one := false
	for _, i := range own {
		free := !a.isValue(i) && !a.waits(i)
		switch advance {
		case AdvanceWave:
			runs[i] = free
		case AdvanceCall:
			runs[i] = free && !one
			one = one || runs[i]
		default:
			runs[i] = true
		}
	}
	a.values(own, runs)
	for _, i := range own {
		if runs[i] {
			run = append(run, i)
		} else {
			rest = append(rest, i)
		}
	}
	return run, rest
}

// isValue reports whether a call is none: it has no entry, and no plan.
func (a *Answer) isValue(i int) bool {
	return a.Calls[i].Entry == "" && (i+1 == len(a.Calls) || a.Calls[i+1].Within != i)
}

// waits reports whether a call waits for another one, be it through values.
func (a *Answer) waits(i int) bool {
	for _, d := range a.Calls[i].After {
		if !a.isValue(d) || a.waits(d) {
			return true
		}
	}
	return false
}

// values lets values run whose calls run, and those that calls need which run.
func (a *Answer) values(own []int, runs []bool) {
	for more := true; more; {
		more = false
		for _, i := range own {
			if runs[i] || !a.isValue(i) {
				continue
			}
			all := true
			for _, d := range a.Calls[i].After {
				all = all && runs[d]
			}
			if all {
				runs[i], more = true, true
			}
		}
	}
}
