package mutation

// ofInquiries are the bugs of tools that ask people in the middle of a call.
var ofInquiries = []mutant{
	{
		"asks-counted", "attempts that ask count against max_attempts",
		"machine/inquiry.go", "{ return res.Attempt - len(r.inquiries[res.Call]) }", "{ return res.Attempt }", "./machine", "Scenarios/inquiries",
	},
	{
		"asks-unbounded", "a tool may ask as often as it likes",
		"machine/inquiry.go", "	case MayAsk(r, res.Call) == 0:", "	case false:", "./machine", "AToolAsksAtMost",
	},
	{
		"asks-undeclared", "a tool may ask that does not say so",
		"machine/inquiry.go", "	case !c.Asks:\n", "	case !c.Asks && c.Limit < 0:\n", "./machine", "Scenarios/inquiries",
	},
	{
		"asks-keeps-room", "a call that asks keeps its room from others",
		"machine/inquiry.go", "	r.scopeOf(i).bounded().take(-1)\n", "", "./machine", "Scenarios/inquiries",
	},
	{
		"asks-same-number", "a tool's question has the number of the approval before it",
		"machine/inquiry.go", "	if before := r.asked[c]; before != nil {", "	if before := r.asked[c]; false {", "./machine", "Scenarios/inquiries",
	},
	{
		"asks-any-digest", "an answer to the first question of a tool is one to the second",
		"machine/inquiry.go", "strconv.Itoa(res.Attempt), string(res.Asks.Body)}", "strconv.Itoa(0), \"\"}", "./machine", "TestADigestIsOfOneInquiry",
	},
	{
		"asks-time-stands", "the time of a step whose tool asked is not waited for again",
		"machine/inquiry.go", "r.calls[of].deadline != 0 {", "false {", "./machine", "Scenarios/inquiries",
	},
	{
		"asks-when-stopped", "somebody is asked by a tool of a run that was stopped",
		"machine/apply.go", "	case res.Asks != nil && r.halting(i): // nobody", "	case false: // nobody", "./machine", "Scenarios/inquiries",
	},
	{
		"asks-untold", "the attempt after an answer is not told it",
		"orchestrator/dispatcher.go", "		s.step.Reply = replyTo(r, d)\n", "", "./orchestrator", "ToolAsks",
	},
	{
		"asks-without-need", "a run whose tools ask needs nothing",
		"orchestrator/judge.go", "	if asks {\n", "	if false {\n", "./orchestrator", "ToolAsks",
	},
	{
		"asks-dead-letter", "a person who rejects what a tool asks leaves a dead letter",
		"orchestrator/run.go", " || r.machine.Refused(c) {", " {", "./orchestrator", "WhatComesOfATool",
	},
	{
		"asks-old-worker", "a worker of before would take a step with an answer",
		"wire/step.go", "		h.Header[subjects.HeaderVersion] = []string{subjects.AnsweredVersion}\n", "", "./wire", "WhatAWorkerAsks",
	},
	{
		"asks-secret", "a secret stands in what a tool asks",
		"worker/ask.go", "x.redactor().Text(asks.Question)", "asks.Question", "./worker", "AHandlerAsks",
	},
	{
		"asks-answered-unknown", "once a run is over, what its tool was answered is not found by who answers again",
		"client/questions.go", "		if q.Digest == x.Digest || q.Digest", "		if q.Digest", "./orchestrator", "AToolAsksInTheMiddle",
	},
	{
		"bridge-asks-declares", "forms are declared in calls of steps that may not ask",
		"mcp/bridge/inquiry.go", "	if !l.Modern || worker.MayAsk(ctx) == 0 {\n		return", "	if !l.Modern {\n		return", "./mcp/bridge", "MayNotAsk",
	},
	{
		"bridge-asks-forgets", "a server is called without the state that it asked with",
		"mcp/bridge/inquiry.go", "		q.Request = a.State\n", "", "./mcp/bridge", "AServerAsks",
	},
	{
		"bridge-asks-lost-state", "a server that has forgotten what it asked fails the step",
		"mcp/bridge/call.go", "		case told != nil && !t.once && forgotten(err):\n", "		case false:\n", "./mcp/bridge", "AServerAsks",
	},
	{
		"bridge-again-forgets", "a server that wants to be called again is called without its state",
		"mcp/bridge/call.go", "			told = &inquiry{Request: head.Again}\n", "			told = nil\n", "./mcp/bridge", "CalledAgain",
	},
	{
		"bridge-asks-cancels-task", "a task that asks is cancelled",
		"mcp/bridge/tasks.go", "		if fault.CodeOf(err) == fault.ToolTerminal { // nobody", "		if true { // nobody", "./mcp/bridge", "ATaskAsks",
	},
}
