package agentcheck

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/tool/group"
)

// Reaching returns the call of an agent, to be held against what a run may: it comes to all that the agent can reach. name is what its run
// calls it, definition returns what is reached. An agent that a plan defines itself is no tool and in no group, and what it names
// stands in the plan.
func Reaching(name string, d *tool.Definition, reached []string, definition func(string) *tool.Definition) group.Call {
	var of struct{ Planner struct{ Tool string } }
	_ = json.Unmarshal(d.Agent, &of) // what can't be read has no planner
	call := group.Call{Tool: name, Planner: of.Planner.Tool}
	if plan.IsInline(name) {
		own := !strings.Contains(name, ":") // else a template has it, which is not the plan's own
		call.Written = func(name string) bool { return own && bytes.Contains(d.Agent, []byte(strconv.Quote(name))) }
	}
	for _, x := range reached {
		if !plan.IsInline(x) {
			call.Reaches = append(call.Reaches, group.Live{Name: x, Hints: definition(x).Annotations})
		}
	}
	return call
}
