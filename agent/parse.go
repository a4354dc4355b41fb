package agent

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// The fields of an agent, and those of its parts.
var (
	agentFields = []string{
		"planner", "instructions", "extra_requirement", "tools", "max_rounds", "advance", "stream_plan", "concurrency", "budget", "states", "state",
		"approval", "respond", "context", "capture_nested", "guards",
	}
	plannerFields  = []string{"tool", "model", "mode", "max_output_tokens"}
	budgetFields   = []string{"steps", "tokens", "cost_usd", "time"}
	statesFields   = []string{"initial", "final"}
	stateFields    = []string{"initial", "schema"}
	respondFields  = []string{"extra_instruction"}
	approvalFields = []string{"ask", "timeout", "on_timeout"}
	contextFields  = []string{"result_bytes", "total_bytes", "summary"}
	guardFields    = []string{"on", "when", "tool", "else"}
)

// Parse reads the definition of an agent: a tool definition with "agent". The definition is nil if and only if the report
// has problems; it has all of them at once, each with its place as a JSON pointer, and a hint. A nil catalog skips what
// only the tools and groups can tell: then entries have no descriptions and schemas, and groups no tools.
func Parse(body []byte, c Catalog) (*Definition, plan.Report) {
	p := &parser{def: &Definition{universe: universe{c}}, absent: map[string]bool{}}
	d, err := tool.ParseDefinition(body)
	if err != nil {
		p.Problems = append(p.Problems, tool.FlawsOf(err)...)
		if len(p.Problems) == 0 {
			p.problem(fault.As(err).Code, "", fault.As(err).Hint, "%s", fault.As(err).Message)
		}
	} else {
		p.def.Name, p.def.Description = d.Name, d.Description
		p.def.Input, p.def.Output = declared(d.InputSchema), declared(d.OutputSchema)
		if p.def.Output != nil {
			p.def.outputSchema = d.OutputSchema
		}
		if d.Plan != nil {
			p.problem(fault.InvalidTool, "/plan", "leave one of them out", "a tool is a plan or an agent, not both")
		}
	}
	var outer struct {
		Agent json.RawMessage `json:"agent"`
	}
	if json.Unmarshal(body, &outer) == nil {
		p.agent(value{outer.Agent, "/agent"})
	}
	r := p.closed()
	if len(r.Problems) > 0 {
		return nil, r
	}
	return p.def, r
}

// declared compiles a schema of a definition; nil for none, and for an output schema that is of no use.
func declared(raw json.RawMessage) *tool.Schema {
	if len(raw) == 0 {
		return nil
	}
	s, err := tool.CompileSchema(raw)
	if err != nil {
		return nil
	}
	return s
}

// agent reads what stands under "agent".
func (p *parser) agent(v value) {
	if !v.there() {
		p.problem(fault.InvalidValue, v.at, `add "agent": {"planner": {"tool": "model"}, "tools": ["search"]}`, "the definition has no agent")
		return
	}
	m := p.object(v, "an agent", agentFields...)
	if m == nil {
		return
	}
	p.planner(v, m["planner"])
	p.def.Instructions = p.template(m["instructions"])
	p.def.ExtraRequirement = p.template(m["extra_requirement"])
	p.def.MaxRounds = int(p.whole(m["max_rounds"], 1, MostRounds, DefaultRounds))
	p.def.Advance = Advance(p.oneOf(m["advance"], string(AdvanceAll), string(AdvanceWave), string(AdvanceCall)))
	if !m["advance"].there() && p.def.Planner.Mode == ModeCalls {
		p.def.Advance = AdvanceCall // follow the plan, adapt at each step
	}
	p.def.Concurrency = int(p.whole(m["concurrency"], 1, MostConcurrency, DefaultConcurrency))
	p.budget(m["budget"])
	p.states(m["states"])
	p.state(m["state"])
	p.approval(m["approval"])
	p.respond(m["respond"])
	p.context(m["context"])
	p.def.CaptureNested = p.flag(m["capture_nested"])
	p.guards(m["guards"])
	p.streams(m["stream_plan"])
	(&entryReader{p}).entryList(m["tools"], place{})
	(&checker{p}).check(v)
}

// streams reads whether steps may begin while the planner writes, and refuses what leaves none that could.
func (p *parser) streams(v value) {
	if p.def.StreamPlan = p.flag(v); !p.def.StreamPlan {
		return
	}
	refuse := func(hint, why string) {
		p.problem(fault.InvalidValue, v.at, hint, "no step can begin while the planner writes: %s", why)
	}
	switch {
	case p.def.Planner.Mode == ModeCalls:
		refuse(`write "mode": "plan", or leave "stream_plan" out`, `in mode "calls" what a call waits for is known only once all calls are written`)
	case p.def.Planner.Mode == ModeCommands:
		refuse(`write "mode": "tools" or "plan", or leave "stream_plan" out`, `in mode "commands" a call has no id before all of them are there`)
	case p.def.Advance != AdvanceAll:
		refuse(`write "advance": "all", or leave "stream_plan" out`, fmt.Sprintf("\"advance\": %q runs a part of the answer, and which is known only once all of it is there", p.def.Advance))
	}
	if p.def.Approval != nil {
		refuse(`leave "approval" or "stream_plan" out`, "a person approves of the whole answer first")
	}
	for i, g := range p.def.Guards {
		if g.On == plan.OnCall || g.On == plan.OnResult {
			refuse(`leave "stream_plan" out, or guard what goes into the agent and out of it`, fmt.Sprintf("the guard %d looks at each %s", i, g.On))
			break
		}
	}
}

func (p *parser) planner(agent, v value) {
	if !v.there() {
		p.problem(fault.InvalidValue, agent.at, `add "planner": {"tool": "model"}`, "the agent has no planner")
		return
	}
	m := p.object(v, "a planner", plannerFields...)
	if m == nil {
		return
	}
	mode := p.oneOf(m["mode"], string(ModeTools), string(ModePlan), string(ModeCalls), string(ModeCommands))
	p.def.Planner = Planner{Tool: p.name(m["tool"], "write the name of a tool"), Model: p.text(m["model"]), Mode: Mode(mode),
		MaxOutputTokens: int(p.whole(m["max_output_tokens"], 1, 1_000_000, 0))}
	if !m["tool"].there() {
		p.problem(fault.InvalidValue, v.at, `add "tool": "model"`, "the planner has no tool")
	}
	p.wantTool(p.def.Planner.Tool, m["tool"].at)
}

// approval reads how a person is asked about each round: "plan", or more about the question.
func (p *parser) approval(v value) {
	if !v.there() {
		return
	}
	a := &Approval{}
	p.def.Approval = a
	if v.kind() != jsontape.Object {
		if v.kind() != jsontape.String || jsontape.Unquoted(v.raw) != "plan" {
			p.problem(fault.InvalidValue, v.at, `write "plan", or {"ask": "May this run?", "timeout": "24h", "on_timeout": "reject"}`,
				"must be \"plan\" or an object, but is %s", clip(string(v.raw)))
		}
		return
	}
	m := p.object(v, "an approval", approvalFields...)
	a.Ask = p.text(m["ask"])
	if err := tool.TooLargeToAsk(len(a.Ask)); err != nil {
		p.problem(fault.TooLarge, m["ask"].at, "say in short what the person is to look at: the plan is shown beside the text", "%s", err.Message)
	}
	a.Timeout = p.duration(m["timeout"])
	a.ApproveOnTimeout = p.oneOf(m["on_timeout"], "reject", "approve") == "approve"
}

func (p *parser) budget(v value) {
	if !v.there() {
		return
	}
	m := p.object(v, "a budget", budgetFields...)
	const most = 1 << 50
	p.def.Budget = Budget{Steps: p.whole(m["steps"], 1, most, 0), Tokens: p.whole(m["tokens"], 1, most, 0), Time: p.duration(m["time"])}
	if c := m["cost_usd"]; c.there() {
		f, err := strconv.ParseFloat(string(c.raw), 64)
		if err != nil || !(f > 0) || f > 1e9 {
			p.problem(fault.InvalidValue, c.at, "write 2 or 0.5", "must be a number above 0, but is %s", clip(string(c.raw)))
			return
		}
		p.def.Budget.CostUSD = f
	}
}

// states reads the state machine.
func (p *parser) states(v value) {
	if !v.there() {
		return
	}
	m := p.object(v, "states", statesFields...)
	if m == nil {
		return
	}
	p.def.States = &States{Final: p.texts(m["final"], "states")}
	initial := p.name(m["initial"], `write a state, or "$input.state"`)
	switch {
	case !m["initial"].there():
		p.problem(fault.InvalidValue, v.at, `add "initial": a state, or "$input.state"`, "nobody knows in which state it begins")
	case len(initial) > 0 && initial[0] == '$':
		r, end, why := readReference(initial, 1, textWords)
		if why == "" && end != len(initial) {
			why = "behind it stands " + clip(initial[end:])
		}
		if why != "" {
			p.problem(fault.InvalidRef, m["initial"].at, `write "$input.state"`, "%q: %s", clip(initial), why)
			return
		}
		p.def.States.from = &r
	case initial != "" && !validName(initial):
		p.problem(fault.InvalidValue, m["initial"].at, "a state is 1 to 128 of A-Z a-z 0-9 _ . : / -", "%q is no state", clip(initial))
	default:
		p.def.States.Initial = initial
	}
}

// state reads what calls write to and read from.
func (p *parser) state(v value) {
	if !v.there() {
		return
	}
	m := p.object(v, "a state", stateFields...)
	s := &State{Schema: p.schema(m["schema"])}
	if s.Schema != nil {
		s.schema = m["schema"].raw
	}
	if i := m["initial"]; i.there() {
		switch {
		case i.kind() != jsontape.Object:
			p.wrong(i, "an object", "")
		case len(i.raw) > MostState:
			p.problem(fault.TooLarge, i.at, "keep what is large where a tool finds it", "the state has %d bytes, at most %d are allowed", len(i.raw), MostState)
		default:
			s.Initial = i.raw
			for _, bad := range s.Schema.Check(i.raw, nil) {
				if bad.Missing == "" { // what is not there yet is no mistake
					p.problem(fault.StateMismatch, i.at+bad.Pointer, bad.Hint, "against the schema of the state: %s", bad.Message)
				}
			}
		}
	}
	p.def.State = s
}

func (p *parser) respond(v value) {
	if !v.there() || v.kind() == jsontape.False {
		return
	}
	p.def.Respond = &Respond{DefaultExtraInstruction}
	if v.kind() == jsontape.True {
		return
	}
	if v.kind() != jsontape.Object {
		p.wrong(v, "true or an object", `write "respond": true, or {"extra_instruction": "…"}`)
		return
	}
	m := p.object(v, "respond", respondFields...)
	if s := p.text(m["extra_instruction"]); s != "" {
		p.def.Respond.ExtraInstruction = s
	}
}

func (p *parser) context(v value) {
	var m map[string]value
	if v.there() {
		m = p.object(v, "a context", contextFields...)
	}
	p.def.Context = Context{
		ResultBytes: int(p.whole(m["result_bytes"], 256, 1<<20, DefaultResultBytes)),
		TotalBytes:  int(p.whole(m["total_bytes"], 4_096, 16<<20, DefaultTotalBytes)),
		Summary:     p.name(m["summary"], "write the name of a tool"),
	}
	p.wantTool(p.def.Context.Summary, m["summary"].at)
	if p.def.Context.ResultBytes > p.def.Context.TotalBytes {
		p.problem(fault.InvalidValue, m["result_bytes"].at, "make it smaller than total_bytes", "one result may be larger than a request")
	}
}

func (p *parser) guards(v value) {
	if !v.there() {
		return
	}
	if v.kind() != jsontape.Array {
		p.wrong(v, "an array of guards", "")
		return
	}
	for _, x := range v.items() {
		m := p.object(x, "a guard", guardFields...)
		if m == nil {
			continue
		}
		g := Guard{On: p.oneOf(m["on"], plan.OnInput, plan.OnCall, plan.OnResult, plan.OnOutput), Else: p.oneOf(m["else"], elseReject, elseAsk, elseFail),
			Tool: p.name(m["tool"], "write the name of a tool")}
		words := onGuard(g.On)
		if !m["on"].there() {
			words = onGuard("")
		}
		if g.when = p.condition(m["when"], words); g.when != nil {
			g.When = p.text(m["when"])
		}
		if !m["on"].there() {
			p.problem(fault.InvalidValue, x.at, `add "on": "input", "call", "result" or "output"`, "nobody knows what the guard looks at")
		}
		if m["tool"].there() == m["when"].there() {
			p.problem(fault.InvalidValue, x.at, `write "when": a condition, or "tool": the name of a tool`, "a guard has a condition or a tool, one of them")
		}
		p.wantTool(g.Tool, m["tool"].at)
		p.def.Guards = append(p.def.Guards, g)
	}
}
