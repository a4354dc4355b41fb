package mutation

// ofAgents are the bugs of the loops of agents.
var ofAgents = []mutant{
	{
		"part-past-early", "rounds are past for an owner once a request is sent that has their last part in it, stored or not",
		"orchestrator/agents/carry.go", "a.Parts, a.Past = a.Parts[:n-1:n-1], nil", "a.Parts = a.Parts[:n-1:n-1]", "./orchestrator/agents ./orchestrator", "CarriesASmallPart|SimulatedAgents",
	},
	{
		"part-content-believed", "what a request has for its last part is taken for that, whatever its digest",
		"agent/parts/carry.go", "		content = r.Part.Content\n", "		content, r.Part.SHA256 = r.Part.Content, Digest(r.Part.Content)\n", "./agent/parts", "ForeignContent",
	},
	{
		"part-content-read-back", "a part that a request has in it is looked for by its name",
		"agent/parts/carry.go", "case name == l.Name:", "case name == l.Name && others == nil:", "./agent/parts", "HasItsLastPart",
	},
	{
		"part-content-unasked", "planners are sent parts in their requests whose contracts say nothing of that",
		"orchestrator/agentry.go", "		if carries {\n", "		if carries || true {\n", "./orchestrator", "CarryASmallPart|SimulatedAgents",
	},
	{
		"part-content-late", "another attempt of a planner is sent before the part is stored that it has in it",
		"orchestrator/agents/carry.go", "n == 0 || attempt > 1", "n == 0", "./orchestrator/agents", "ARequestCarriesASmallPart",
	},
	{
		"part-content-large", "a large part is written once more, for a request that has it in it",
		"orchestrator/agents/carry.go", "min(a.last.records*carriedForEach, carriedMost)", "carriedMost", "./orchestrator/agents", "CarriesASmallPart",
	},
	{
		"part-content-forgotten", "who sends a request again has its last part in it no more once that is stored",
		"orchestrator/agents/past.go", "		return l.Past.last\n", "		return nil\n", "./orchestrator/agents", "CarriesASmallPart",
	},
	{
		"part-never-beside", "the part that a request has in it is stored by who makes the next one alone",
		"orchestrator/agentry.go", "				if then(); beside != nil {", "				if then(); false {", "./orchestrator", "CarryASmallPart",
	},
	{
		"left-alone-ends", "who watches a run is told that it failed once an older orchestrator leaves it alone",
		"client/watch.go", "		case errors.Is(err, errLeftAlone):\n", "		case false:\n", "./client", "LeftAlone",
	},
	{
		"left-alone-for-ever", "who watches a run that is left alone waits for ever",
		"client/watch.go", "	if now.Sub(w.alone) >= MostAlone {", "	if false {", "./client", "WaitedForAWhile",
	},
	{
		"begun-counts-twice", "what began while a planner wrote counts as a call of its own beside that of the answer",
		"internal/agents/rounds.go", `if id := strings.TrimPrefix(s.Steps[k].ID, s.ID+"/"); called(`, `if id := s.Steps[k].ID; called(`, "./internal/agents", "CountsOnce",
	},
	{
		"unasked-is-a-round", "a round that the agent ended before its planner was asked counts as one",
		"internal/agents/rounds.go", "		if !r.Unasked {\n", "		if r.Number >= 0 {\n", "./internal/agents", "NeverAskedIsNone",
	},
	{
		"told-below-nothing", "nothing is told of agents in lists",
		"internal/agents/told.go", "[][]outcome.Step{of.Steps, of.Items}", "[][]outcome.Step{of.Steps}", "./internal/agents", "Others",
	},
	{
		"refusal-names-all", "a run that is bound to groups is told the names of tools that it may not see",
		"tool/group/refusal.go", "c.Written != nil && c.Written(name)", "c.Written == nil || c.Written(name)", "./tool/group", "WhichToolsAndWhatToDo",
	},
	{
		"template-names-unseen", "a run that is bound to groups is told which tool of a template it may not see",
		"plan/step.go", `no.Unseen && p.template != ""`, "no.Unseen && p.template == name", "./orchestrator", "TestARunIsBoundToGroups",
	},
	{
		"inline-in-no-group", "an agent that a plan defines itself is held against the groups of the run, as a tool",
		"internal/agentcheck/reach.go", "		if !plan.IsInline(x) {\n", "		if x != \"\" {\n", "./orchestrator", "TestARunIsBoundToGroups",
	},
	{
		"tool-logs-recent", "an agent's account has the calls of its last rounds alone",
		"orchestrator/agentlook.go", "ag.look(r, c, rounds, true)", "ag.look(r, c, rounds, false)", "./orchestrator", "ToolLogs",
	},
	{
		"tool-logs-unbounded", "the calls in agents' accounts make the document of a run as large as they like",
		"orchestrator/agentlook.go", "before > 0 && len(each[before-1]) <= *room; before--", "before > 0; before--", "./orchestrator", "LogsThereIsNoRoomFor",
	},
	{
		"bound-never-same", "a call to which arguments are bound is made however often its planner repeats it",
		"orchestrator/agents/ready.go", "c.apart = bound != nil && !l.Bound", "c.apart = bound != nil", "./orchestrator", "ACallWithBound",
	},
	{
		"bound-as-written", "calls are the same that the planner wrote the same, whatever is bound to them",
		"orchestrator/agents/came.go", "	if !compared {", "	if compared {", "./orchestrator", "ACallWithBound",
	},
	{
		"bound-of-the-beginning", "what was bound to a call is taken for what was there when its round began",
		"orchestrator/agents/came.go", "	if moves {", "	if moves && false {", "./orchestrator", "ACallWithBound",
	},
	{
		"bound-to-null", "a call is made with null for what is bound to it and not there",
		"agent/shown.go", "			err = unbound(e, &b)\n", "			err = nil\n", "./agent", "RandomBounds|Scenarios",
	},
	{
		"bound-need", "a run with bound arguments may be gone on with by who compares such calls with no other",
		"wire/needs.go", "	if binds(members[\"tools\"]) {", "	if false {", "./orchestrator", "ACallWithBound",
	},
	{
		"bound-in-runs-of-before", "a run of before goes on by another rule of bound arguments than it began by",
		"orchestrator/agentlook.go", "x.loop.Bound = slices.Contains(r.start.Needs, wire.BoundArguments)", "x.loop.Bound = true", "./orchestrator", "WhatIsBoundToNothing",
	},
	{
		"context-of-a-composite", "what is given for a step with an agent, nobody in it is handed",
		"wire/contextheader.go", "	step, _, _ := strings.Cut(path, \"/\")\n", "	step := strings.TrimSpace(path)\n", "./wire", "Context",
	},
	{
		"agent-full-goes-on", "an agent goes on in a run that has no room for its rounds",
		"machine/agent.go", "	if int(r.steps)+steps <= plan.MaxSteps {\n", "	if true {\n", "./machine", "ARunHasRoom",
	},
	{
		"agent-full-of-nothing", "an agent with an output fails where the run has no room for its last answer",
		"machine/agent.go", "	case !r.start.AgentEnds:\n", "	case true:\n", "./machine", "ARunHasRoom",
	},
	{
		"agent-ends-untold", "the error of an agent that has used up its budget says nothing of its rounds",
		"machine/agent.go", "	if exceeded(each) && r.start.AgentEnds {", "	if false {", "./machine", "ErrorsOfAgents",
	},
	{
		"agent-timeout-untold", "the error of an agent that took too long says nothing of its rounds",
		"machine/deadlines.go", "a := agentAt(&r.tree, s.Call); a != nil {", "a := agentAt(&r.tree, s.Call); a != nil && false {", "./machine", "ErrorsOfAgents",
	},
	{
		"agent-ends-need", "the errors of agents say what came of their rounds in no run",
		"orchestrator/lifecycle.go", "AgentEnds: slices.Contains(r.start.Needs, wire.AgentEnds)", "AgentEnds: false", "./orchestrator", "AgentsEnd",
	},
	{
		"round-large-need", "an orchestrator that knows of no rounds in blobs goes on with a run that has one",
		"orchestrator/agentry.go", "err := ag.store.RecordNeeds(ctx, wire.LargeRoundNeeds()); err != nil", "err := error(nil); err != nil", "./orchestrator", "SimulatedWorlds",
	},
	{
		"round-large-overtaken", "records behind a round that lies in a blob are taken before it",
		"orchestrator/driver.go", "append([]entry{e}, r.parked...)", "append(r.parked, e)", "./orchestrator", "SimulatedWorlds",
	},
	{
		"round-large-anybodys", "a round may lie in any blob of the run, and of any other",
		"wire/round.go", "!is || digest != blob.SHA256 || blob", "!is && digest == \"\" || blob", "./wire", "ARoundInABlob",
	},
	{
		"round-large-by-name", "who makes the blob of a round again has what somebody says of its name",
		"kv/archive_blobs.go", "_, err := s.Blob(ctx, first); err == nil {", "true {", "./kv", "ABlobOfItsBytes",
	},
	{
		"round-large-shown", "who is asked about a round that is too large for an entry is shown nothing of it",
		"client/questions.go", "	if q.Round != nil {\n		large", "	if false {\n		large", "./orchestrator", "ALargeRoundIsApproved",
	},
	{
		"answer-cut-off-whole", "an answer that was cut off is made whole, and what it calls is called",
		"internal/jsonmend/jsonmend.go", "	s := shapeOf(t)\n	switch {\n", "	if mended, err := jsonrepair.Repair(t); err == nil {\n		return judged(compact([]byte(mended)), true, wanted)\n	}\n	s := shapeOf(t)\n	switch {\n", "./internal/jsonmend", "Flaws|CutOffAnywhere",
	},
	{
		"answer-bracket-made-up", "a bracket that a planner left out stands where the repair puts it",
		"internal/jsonmend/jsonmend.go", "shapeOf(mended).brackets != s.brackets {", "false {", "./internal/jsonmend", "Flaws",
	},
	{
		"agent-round-shown-bound", "who approves of a round is not shown the arguments that its planner does not see",
		"orchestrator/agents/decide.go", "	if l.Definition.Approval != nil {", "	if false {", "./orchestrator", "WhoApprovesSees",
	},
	{
		"agent-round-shown-as", "who approves of a round is shown the tool by the planner's name",
		"orchestrator/agents/shown.go", " && d.Tools[as] != \"\" {", " && false {", "./orchestrator", "WhoApprovesSees",
	},
	{
		"agent-direct-unfit", "an agent succeeds with a direct tool's result that its output schema does not allow",
		"machine/agent.go", "err := returnsDirectly(r, i, sc.plan.Steps[n].ID, res); err != nil {", "err := returnsDirectly(r, i, sc.plan.Steps[n].ID, res); false && err != nil {", "./machine", "Scenarios/agents",
	},
	{
		"agent-unfit-untold", "a planner is not told why its output does not fit the output schema",
		"machine/agent.go", "	a.refused = append(a.refused, why)\n", "", "./machine", "Scenarios/agents",
	},
	{
		"agent-unfit-for-ever", "an output alone that does not fit, however often, is no answer of no use",
		"machine/agent.go", "refused{len(a.records) - 1, err, !callsOf(sc, d, func(int) bool { return true })}", "refused{len(a.records) - 1, err, false && d == nil}", "./machine", "Scenarios/agents",
	},
	{
		"agent-budget-repeat", "the iterations that an answer asks for count as one call",
		"agent/fragment.go", "			c.Times = s.Repeat.Max\n", "", "./orchestrator", "TheBudgetCountsWhat",
	},
	{
		"agent-budget-within", "a call in a loop's plan counts once, however often the loop runs",
		"orchestrator/agents/reading.go", "call >= 0; call = x.answer.Calls[call].Within {", "call >= 0; call = -1 {", "./orchestrator", "TheBudgetCountsWhat",
	},
	{
		"agent-again-number", "a refund is made again where its amount is written otherwise",
		"agent/answer.go", "marshal(equalNumbers(v))", "marshal(v)", "./agent", "Scenarios",
	},
	{
		"agent-cut-happened", "a planner is told that what a worker was at has not happened",
		"machine/cut.go", "	case s.state.out(), s.state == cancelled && s.result != nil:", "	case s.state.out():", "./machine", "Scenarios/agents",
	},
	{
		"answer-amid-words", "a plan that a planner speaks about is run",
		"internal/jsonmend/jsonmend.go", "	case found == 1 && out.Flaw != None:", "	case false:", "./internal/jsonmend", "Flaws",
	},
	{
		"answer-several", "of several answers in one text one is run",
		"internal/jsonmend/jsonmend.go", "	case found > 1:", "	case false:", "./internal/jsonmend", "Flaws",
	},
	{
		"answer-half-text", "JSON that was cut off is what an agent succeeds with",
		"internal/jsonmend/jsonmend.go", "	if quoted(t) {", "	if false {", "./internal/jsonmend", "Flaws",
	},
	{
		"amend-discards-last", "a plan ends when an amendment discards its last step, before what it adds is there",
		"machine/amending.go", "	now.changing = true\n	sc.reached.taking = true // nobody is taken before all that is added is there\n", "", "./machine", "Scenarios/amendments",
	},
	{
		"approve-other-steps", "who approves of an amendment approves of others that add other steps",
		"machine/waiting.go", "		digestText(h, string(step))\n", "		_ = step\n", "./machine", "WhatIsApprovedOf",
	},
	{
		"approve-other-discards", "who approves of an amendment approves of others that discard other steps",
		"machine/waiting.go", "			digestText(h, id)\n", "			_ = id\n", "./machine", "WhatIsApprovedOf",
	},
	{
		"approve-other-round", "who approves of a round approves of whatever else is decided of it",
		"machine/approvedround.go", "r.start.Key, d.Scope, d.Digest} {", "r.start.Key, d.Scope} {", "./machine", "WhatIsApprovedOf",
	},
	{
		"approve-edited-other", "an amendment approves of a plan whose question it does not name",
		"machine/waiting.go", " && q.open && q.Digest == x.a.Approves\n", " && q.open\n", "./machine", "Scenarios/editedapproval",
	},
	{
		"approve-edited-anybody", "an amendment approves of a plan though who asked for it may not",
		"orchestrator/api_amend.go", "	if a.asks.Approves != \"\" && !a.approved {", "	if false {", "./orchestrator", "APlanIsApprovedWithEdits",
	},
	{
		"amend-rewritten-early", "a step that is written again begins when what it had waited for is discarded",
		"machine/taking.go", "r.calls[i].state == waiting && r.calls[i].missing == 0 &&", "r.calls[i].state == waiting &&", "./machine", "Scenarios/amendments",
	},
	{
		"agent-round-unasked", "a round runs of which nobody has approved",
		"machine/agent.go", "	case d.Plan != nil && d.Approval != nil:", "	case d.Plan != nil && false:", "./machine", "Scenarios/approvedrounds",
	},
	{
		"agent-round-refused-invalid", "a round that a person refused counts as an answer of no use",
		"machine/approvedround.go", "return &Round{Scope: d.Scope, Refused: why,", "return &Round{Scope: d.Scope, Refused: why, Invalid: true,", "./machine", "Scenarios/approvedrounds",
	},
	{
		"agent-round-still-asked", "a person is asked about a round that somebody has interrupted",
		"machine/cut.go", "		a.drop(r)\n", "", "./machine", "Scenarios/approvedrounds",
	},
	{
		"agent-round-number", "two rounds are asked about under one number",
		"machine/approvedround.go", "	r.spend(r.nameOf(q.Call), q.Number) // the next is asked under another\n", "", "./machine", "Scenarios/approvedrounds",
	},
	{
		"agent-round-refused-told", "what a refused round would have done counts as done, and its planner isn't told",
		"orchestrator/agentlook.go", "	case v.Record.Refused != nil: // nothing of it counts\n", "	case false:\n", "./orchestrator", "APersonApprovesOfRounds",
	},
	{
		"agent-round-need", "an orchestrator that knows of no approvals goes on with an agent that another one calls",
		"orchestrator/judge.go", "catalog.needsOfAgents(start.Tools), ", "", "./orchestrator", "RoundsThatNobodyAnswers",
	},
	{
		"agent-asks-locked", "a question in a round is asked though its entry is locked when its turn comes",
		"orchestrator/agentry.go", "			_, _, err := l.Ready(w.round, w.path, w.since, nil)\n			return err\n", "			return nil\n", "./orchestrator", "AgentAsks",
	},
	{
		"agent-asks-since", "the gate of a question is asked as of the beginning of the run",
		"machine/asking.go", "		s.since = r.seq\n", "", "./orchestrator", "AgentAsks",
	},
	{
		"agent-inline-need", "an orchestrator that knows of no agents in plans goes on with a run that has one",
		"plan/inlineagent.go", "return s.Agent() != nil && IsInline(s.Template.Name) }", "return false }", "./orchestrator", "ARunWithAnAgentOfAPlan",
	},
	{
		"agent-inline-place", "what is wrong with an agent of a plan is told where it would stand in the registry",
		"internal/agentcheck/inline.go", "list[i].Path = inlinePlace(list[i].Path)", "list[i].Path += \"\"", "./internal/agentcheck", "Inline",
	},
	{
		"agent-inline-permitted", "an agent of a plan may reach what the run has no permission for",
		"plan/inlineagent.go", "if no := t.Refused; no != nil {", "if no := t.Refused; no != nil && t.Agent == nil {", "./orchestrator", "AgentsOfPlansMayCall",
	},
	{
		"agent-inline-answered", "a planner may define agents in its answer",
		"agent/fragment.go", "	return plan.Tool{}, plan.Report{Problems: []fault.Problem{{\n		Code: fault.InvalidValue, Message: \"an answer defines", "	return plan.Tool{}, plan.Report{Warnings: []fault.Problem{{\n		Code: fault.InvalidValue, Message: \"an answer defines", "./orchestrator", "AnAnswerDefinesNoAgent",
	},
	{
		"agent-is-no-scope", "an agent is amended as if it were a plan, and nothing of that is admitted",
		"machine/consider.go", "x.sc.round > 0 && x.sc.token != a.Scope {", "false {", "./orchestrator", "WhatARoundIsNotAmendedWith",
	},
	{
		"word-drops-nothing", "a planner that is asked again because something was said is not told what its loop would have come to",
		"orchestrator/agents/ask.go", "	case !l.Ends && r.Record.Fragment == nil && r.Refused == nil,", "	case r.Record.Fragment == nil && r.Refused == nil,", "./orchestrator", "AWordDrops",
	},
	{
		"agent-amend-times", "what a loop or a list makes that is added to a round costs one step of the budget",
		"orchestrator/agents/reading.go", "y.extra += y.times(from + i)", "y.extra += y.times(from+i) * 0 + 1", "./orchestrator", "WhatARoundIsNotAmendedWith",
	},
	{
		"again-stale", "a retry takes over a planner's answer to another round before it",
		"orchestrator/again/again.go", "if round > 0 && !u.round(of, round-1) {", "if false {", "./orchestrator", "ARetryTakesOverWhatFollowedAlone",
	},
	{
		"again-of-another", "a retry takes over the call of another answer, since it has the same name",
		"orchestrator/again/again.go", "case !u.Taken(machine.Rounds(u.Machine, of, round)[0].Planner) || !u.above(c, of):", "case false:", "./orchestrator", "ARetryTakesOverWhatFollowedAlone",
	},
	{
		"again-costs", "what a retry takes over is paid for out of the budget again",
		"orchestrator/agents/spending.go", "l.Rounds[round].Again || l.Guarded && !l.Rounds[round].Begun {", "l.Guarded && !l.Rounds[round].Begun {", "./orchestrator", "ARetryGoesOnWithAnAgent",
	},
	{
		"agent-round-unbounded", "a round has as many bytes as its answer makes of it",
		"orchestrator/agentry.go", "err != nil || len(body) > wire.MaxRound {", "err != nil {", "./orchestrator", "ARoundThatIsTooLarge",
	},
	{
		"agent-round-hint", "a planner whose answer makes too large a round is not told what to do",
		"orchestrator/agentry.go", `Hint: "answer with less at a time,`, `Hint: "wait a while,`, "./orchestrator", "ARoundThatIsTooLarge",
	},
	{
		"agent-words-unbounded", "an agent may be said more words than it hears",
		"machine/say.go", "len(a.said) < MaxSaid && ", "len(a.said) <= MaxSaid && ", "./orchestrator", "HearsAThousandWords",
	},
	{
		"agent-words-over", "who says one word too many is told that the agent is over",
		"orchestrator/api_answer.go", "if len(machine.AllSaid(x.r.machine, x.of)) >= machine.MaxSaid {", "if len(machine.AllSaid(x.r.machine, x.of)) > machine.MaxSaid {", "./orchestrator", "HearsAThousandWords",
	},
	{
		"again-summary-costs", "a summary that a retry takes over is paid for out of the budget again",
		"orchestrator/agents/spending.go", " || l.Rounds[round].SummaryAgain {", " {", "./orchestrator", "WhatARetryTakesOverOfSummaries",
	},
	{
		"again-summary-model", "the account of a retry tells of models that answered the run before",
		"orchestrator/agents/spending.go", "	if l.Rounds[round].Again || ", "	if l.Rounds[round].Again {\n		s.Settle(agent.Reservation{}, agent.Tokens{Model: l.Definition.Planner.Tool})\n		return s\n	}\n	if ", "./orchestrator", "WhatARetryTakesOverOfSummaries",
	},
	{
		"again-summary-lost", "a summary that a retry takes over counts as one that was not due",
		"machine/apply.go", `res.ByOwner && res.Handle == nil && string(res.Value) == "null" && summary(r, s.Call):`, "res.ByOwner && summary(r, s.Call):", "./machine", "Scenarios/agents$",
	},
	{
		"again-summary-failed", "a summary that failed has a retry ask all planners behind it again",
		"orchestrator/reuse_within.go", "		if _, err = x.made(ctx, past.summary); err != nil {", "		if all, bad := x.made(ctx, past.summary); bad != nil || !all {", "./orchestrator", "WhatARetryTakesOverOfSummaries",
	},
	{
		"again-summary-counted", "planners behind a summary that was taken over are asked again",
		"orchestrator/again/again.go", `subjects.OwnCall(token, "summary")) != nil {`, `subjects.OwnCall(token, "summary")) == nil {`, "./orchestrator", "WhatARetryTakesOverOfSummaries",
	},
	{
		"again-summary-alone", "a summary is made again where the planner behind it did not answer",
		"orchestrator/reuse_within.go", "	if past.summary != nil {", "	if past.summary != nil && !stale {", "./orchestrator", "WhatARetryTakesOverOfSummaries",
	},
	{
		"again-changed", "a retry takes over the rounds of an agent that is another by now",
		"orchestrator/reuse_within.go", "if agents.Digest(d) != digest || guarded {", "if digest == \"\" || guarded {", "./orchestrator", "ARetryAsksAnAgentAnew",
	},
	{
		"again-told", "a retry takes over what a planner answered to what was said to the other run",
		"orchestrator/reuse_within.go", "stale := told(st, n) || len", "stale := len", "./orchestrator", "ARetryAsksAnAgentAnew",
	},
	{
		"again-exhausted", "a retry of an agent that had used up its rounds comes to the same end at once",
		"orchestrator/reuse_within.go", "len(rounds) >= most {", "most < 0 {", "./orchestrator", "ARetryAsksAnAgentAnew",
	},
	{
		"agent-amend-facts", "what is added to a round is locked or not as when the round began",
		"agent/gatekeeper.go", "		g.f = g.now\n", "		g.f = g.begun\n", "./agent", "RandomAmendments",
	},
	{
		"agent-amend-after", "what is added to a round does not wait for what moves its state",
		"machine/amending.go", "		p.After = append(p.After, how.After[idOf(p.Add[i])])\n", "		p.After = append(p.After, nil)\n", "./machine", "Scenarios/amendedrounds",
	},
	{
		"agent-amend-elsewhere", "a record says of a plan that is no round what was decided of the steps it adds, and its owners fall",
		"machine/amending.go", "	if x.sc.round == 0 && !isBegun(x.sc) {\n		return nil\n	}\n	return x.a.Admitted", "	return x.a.Admitted", "./machine", "Scenarios/amendments",
	},
	{
		"agent-amend-settled", "what is locked when it is added to a round runs",
		"machine/amending.go", "	of := &Round{Settled: how.Settled, Earlier", "	of := &Round{Earlier", "./machine", "Scenarios/amendedrounds",
	},
	{
		"agent-amend-returns", "a round that was amended comes to an output that its planner never put forward",
		"plan/amend.go", "	if !x.amendment.Round && p.Output == nil && x.above > 0 ||", "	if p.Output == nil && x.above > 0 ||", "./machine", "Scenarios/amendedrounds",
	},
	{
		"agent-amend-approved", "who may not approve adds to a round that a person has approved of",
		"machine/waiting.go", "x.sc.round > 0 && !x.a.Approved &&", "x.sc.round > 0 && false && !x.a.Approved &&", "./orchestrator", "AnApprovedRoundIsAmended",
	},
	{
		"agent-amend-told", "a planner is not told that somebody has added a call",
		"orchestrator/agents/ask.go", "x.added[c.ID].note()", "\"\"", "./orchestrator", "ARoundIsAmended",
	},
	{
		"agent-amend-budget", "what is added to a round costs no steps of the budget",
		"orchestrator/agents/spending.go", "	n = x.extra\n", "", "./orchestrator", "WhatARoundIsNotAmendedWith",
	},
	{
		"agent-amend-need", "an orchestrator that knows of no amended rounds goes on with a run that has one",
		"orchestrator/api_amend.go", "		rec.Needs = append(rec.Needs, wire.AmendedRounds)\n", "", "./orchestrator", "ARoundIsAmended",
	},
	{
		"agent-amend-named", "what is added to a round is called by the planner's name for it",
		"machine/amending.go", "			how.Name(&added.Plan.Steps[added.Added[i]])\n", "", "./machine", "Scenarios/amendedrounds",
	},
	{
		"agent-amend-plan", "a plan within a step of a round is amended, and nothing of that is admitted",
		"machine/consider.go", "	if in := x.inRound(); in != \"\" {", "	if in := x.inRound(); in != \"\" && false {", "./orchestrator", "WhatARoundIsNotAmendedWith",
	},
	{
		"agent-roles-of-now", "a run does not keep what groups and searches of its agents had when it began",
		"orchestrator/judge.go", "	start.Groups, start.Search = roles.Roles, roles.Search\n", "	start.Groups = roles.Search\n", "./orchestrator", "AgentFinds|ToolsOfGroups",
	},
	{
		"agent-finds-all", "a search finds what the run may not call",
		"orchestrator/catalog.go", "!k.Agent() && (c.permits == nil || len(", "!k.Agent() && (true || len(", "./orchestrator", "ASearch",
	},
	{
		"agent-finds-agents", "a search finds templates that call agents",
		"orchestrator/catalog.go", "		return !c.find(name).Template() ||\n", "		return true ||\n", "./orchestrator", "AgentFinds",
	},
	{
		"agent-responds-always", "a last answer is asked for though nothing was executed",
		"machine/agent.go", "a.executed(r):\n		a.respond(r, i, &ending{res, nil}", "(a.executed(r) || true):\n		a.respond(r, i, &ending{res, nil}", "./machine", "Scenarios/agents",
	},
	{
		"agent-response-lost", "a last answer that can't be used takes the loop's output with it",
		"machine/agent.go", "	case string(e.result.Value) != \"null\":", "	case e.result == nil:", "./machine", "Scenarios/agents",
	},
	{
		"agent-final-forgets", "a last answer is asked for without the calls of rounds that are past",
		"orchestrator/agentry.go", "|| machine.Responds(r.machine, of))\n", "|| false)\n", "./orchestrator", "TestAnAgentResponds",
	},
	{
		"agent-word-lost", "what a planner tells the user to stay is not in the account",
		"agent/answer.go", "	case e.Name == Communicate:", "	case false:", "./agent", "Scenarios",
	},
	{
		"agent-word-untold", "nobody who watches hears what a planner says",
		"orchestrator/agentry.go", "ag.announcer.says(r, d, says)", "_ = says", "./orchestrator", "AgentTells",
	},
	{
		"agent-selects-any", "a facade has tools selected that no search finds",
		"agent/definition.go", "slices.BinarySearch(c.Names(), name); !is {", "slices.BinarySearch(c.Names(), name); false && !is {", "./orchestrator", "TestAFacadeWhose",
	},
	{
		"agent-word-lost-at-end", "a loop ends though something was said that no round has taken",
		"machine/agent.go", "	if !a.unheard() || r.halting(i)", "	if true || r.halting(i)", "./machine", "Scenarios/agents",
	},
	{
		"agent-word-costs", "a word takes the output with it where the budget has no room for another round",
		"machine/agent.go", "	case a.offered != nil && exceeded(each):", "	case false && exceeded(each):", "./machine", "Scenarios/agents",
	},
	{
		"agent-word-told-late", "a word is told in the round that it came in, or in none",
		"machine/say.go", "		a.said[k].Round = len(a.records)\n", "		a.said[k].Round = len(a.records) - 1\n", "./machine", "Scenarios/agents",
	},
	{
		"agent-word-unanswered", "who says something is answered before the record was read",
		"orchestrator/api_answer.go", "	case send != nil:\n		send(true)\n", "	case send == nil && machine.Hears(r.machine, x.of):\n		x.record()\n		s.reply(m, wire.SayReply{ID: asks.ID}.Body())\n	case send != nil:\n		send(true)\n", "./orchestrator", "TestWhatIsSaid|TestWordsRace",
	},
	{
		"agent-state-forgotten", "what calls wrote is gone in the next round",
		"orchestrator/agents/loop.go", "		f.BeginRound(n, shared)\n", "		f.BeginRound(n, shared[:0:0])\n", "./orchestrator", "TestAStateIsKept",
	},
	{
		"agent-state-late", "a gate does not see what calls of its round wrote to the state",
		"orchestrator/agents/came.go", "		now.Share(shared)\n", "", "./orchestrator", "TestTheStateOpens",
	},
	{
		"agent-state-binds-early", "a bound argument is what stood in the state when the round began",
		"orchestrator/agents/came.go", "	seen.Share(shared)\n", "	_ = shared\n", "./orchestrator", "TestTheStateOpens",
	},
	{
		"agent-state-broken", "what breaks the schema of the state is written",
		"internal/dialect/carry.go", "		case schema != nil:", "		case schema != nil && most == 0:", "./internal/dialect", "TestTheStateBehind",
	},
	{
		"agent-state-whole", "the record of a round has all of the state, also what its calls don't name",
		"agent/shared.go", "		return less\n", "		return whole\n", "./agent", "TestWhatCallsDontName",
	},
	{
		"agent-state-loaded", "a call that was loaded already puts its message into the state",
		"orchestrator/agents/loop.go", "c.Value != nil && !loaded:", "c.Value != nil || loaded:", "./orchestrator", "TestAStateIsKept",
	},
	{
		"agent-summary-lost", "what a summary tool made of rounds does not stand in their place",
		"orchestrator/agents/ask.go", "	text, _ := agent.Summary(l.Rounds[round+1].Summary)\n", "	text := \"\"\n", "./orchestrator", "TestRoundsAreSummarised",
	},
	{
		"agent-summary-free", "what a summary took does not count",
		"orchestrator/agents/spending.go", "		l.summed(n+1, &s)\n", "", "./orchestrator", "TestRoundsAreSummarised",
	},
	{
		"counted-all", "each of several who ask for the same at once is told that his request counted",
		"orchestrator/api.go", "x.known, x.already = true, d != kv.Written", "x.known, x.already = true, false", "./orchestrator", "OfSeveralSameRequestsOneCounts",
	},
	{
		"counted-cancels", "of several who cancel a run at once each that names the same is told that theirs counted",
		"orchestrator/api.go", "128), Nonce: l.clock.Unique()}", "128)}", "./orchestrator", "OfSeveralSameRequestsOneCounts",
	},
	{
		"cancelled-unread", "who cancels is told of a stop that was not read, and may have come too late",
		"orchestrator/api.go", "x.stands(func(bool) { s.refuse(m, finishedAlready(id)) })", "x.stands(send(&machine.Stop{Reason: outcome.Cancelled}))", "./orchestrator", "SimulatedWorlds$",
	},
	{
		"counted-early", "who asks is answered as soon as what stands was read, before it is known who wrote it",
		"orchestrator/api.go", "	if x.known && x.send != nil && !x.over {", "	if x.send != nil && !x.over {", "./orchestrator", "OfSeveralSameRequestsOneCounts",
	},
	{
		"round-reach-stale", "an amendment that refers to more of an earlier round finds what was there before it",
		"machine/amending.go", "	delete(x.entries, i) // as it was put together before\n", "", "./machine", "Scenarios/amendedrounds",
	},
	{
		"round-reach-untold", "an amendment that refers to more of an earlier round says nothing of what it needs",
		"orchestrator/api_amend.go", "			rec.Needs = append(rec.Needs, wire.RoundReferences)\n", "", "./orchestrator", "AnAmendmentReachesFurtherBack",
	},
	{
		"round-reach-away", "what an amendment refers to of an earlier round is not read again",
		"machine/letgo.go", "slices.Concat(a.Admitted.Earlier, a.Admitted.Reaches)", "slices.Concat(a.Admitted.Earlier)", "./machine", "GivenBackWhatItReaches",
	},
	{
		"round-reach-forgotten", "what an amendment refers to of an earlier round is not known to the next one",
		"orchestrator/agents/reading.go", "reached(reached(y.earlier, a.Round.Earlier), a.Round.Reaches)", "reached(y.earlier, a.Round.Earlier)", "./orchestrator", "AnAmendmentReachesFurtherBack",
	},
	{
		"agent-misses-nothing", "an agent comes to an output with nothing where people discarded a call of its answer",
		"machine/agent.go", "sc.standing(r).bad() || misses(r, sc) {", "sc.standing(r).bad() {", "./orchestrator", "WhatPeopleDiscard",
	},
	{
		"agent-misses-untold", "an amendment that discards calls of a round says nothing of what it needs",
		"orchestrator/api_amend.go", "			rec.Needs = append(rec.Needs, wire.DiscardedCalls)\n", "", "./orchestrator", "ARoundIsAmended",
	},
	{
		"agent-misses-added", "an agent does not come to its output where people discarded what people had added",
		"machine/amending.go", " && i < x.sc.first+len(x.sc.amended.base.Steps) {", " {", "./machine", "Scenario",
	},
	{
		"agent-misses-done", "an agent does not come to its output where a call was discarded that came to something all the same",
		"machine/agent.go", "func(i int) bool { return r.calls[i].state != succeeded })\n}\n\n// direct", "func(i int) bool { return true })\n}\n\n// direct", "./machine", "Scenario",
	},
	{
		"agent-usage-whole", "an answer whose tokens are written as 4000.5 took nothing, its cost neither",
		"agent/said.go", "		*a = amount(min(max(0, x), mostTook))\n", "		*a = amount(min(max(0, x), mostTook))\n		_, err := n.Int64()\n		return err\n", "./agent", "TestTook",
	},
	{
		"guard-usage-free", "what a guard took that is a tool does not count",
		"orchestrator/agents/spending.go", "		guarded(l, n, ^uint64(0), &s)\n", "", "./orchestrator", "TestWhatGuardsTakeCounts",
	},
	{
		"guard-usage-input", "what the guard of an input took does not count",
		"orchestrator/agents/spending.go", "			greeted(l, 0, &first)\n", "", "./orchestrator", "TestWhatGuardsTakeCounts",
	},
	{
		"guard-usage-shares", "an agent gets a share of what guards have taken before it began",
		"orchestrator/agents/spending.go", "		guarded(l, round, begun, &now)\n", "", "./orchestrator", "TestWhatGuardsTakeCounts",
	},
	{
		"guard-usage-unasked", "a planner that nobody asked keeps what is reserved for one",
		"orchestrator/agents/spending.go", "l.Rounds[round].Again || l.Guarded && !l.Rounds[round].Begun {", "l.Rounds[round].Again {", "./orchestrator", "TestWhatGuardsTakeCounts",
	},
	{
		"guard-retry-over", "a guard that is asked again has said no already",
		"machine/apply.go", "	r.send(i, s.at.time(), out)\n}\n\n// jitter",
		"	r.send(i, s.at.time(), out)\n	if g := r.scopeOf(i).asksFor; g != nil {\n		g.heard(r, r.scopeOf(i), rec.Time, out)\n	}\n}\n\n// jitter", "./orchestrator", "SimulatedAgents",
	},
	{
		"guard-approved-all", "what a person lets pass whom a guard asked is asked about no more",
		"machine/guarding.go", "	if g.from = g.guard + 1; !g.passes(r, at, out) {", "	if g.from, g.tools = math.MaxInt32, true; !g.passes(r, at, out) {", "./orchestrator", "TestGuardsAndTheirTwin",
	},
	{
		"agent-board-late", "an agent that another calls begins with what is on the blackboard when it is looked at",
		"orchestrator/agentlook.go", "agents.BoardOf(of, round, begun) }", "agents.BoardOf(of, round, begun|^uint64(0)) }", "./orchestrator", "TheBlackboardAsItBegan",
	},
	{
		"agent-summary-succeeds", "a summary that nobody was asked for counts as one",
		"machine/apply.go", `string(res.Value) == "null" && summary(r, s.Call):`, `string(res.Value) == "no" && summary(r, s.Call):`, "./machine", "Scenarios/agents",
	},
	{
		"agent-summary-needed", "a planner is not asked where no summary was made",
		"plan/called.go", "		Order(p, 0, 1)\n", "		Order(p, 0, 1)\n		p.Steps[0].Needs = append(p.Steps[0].Needs, Need{Steps: []int{1}, Data: true})\n", "./machine", "Scenarios/agents",
	},
	{
		"agent-free-locked", "the gate of what has to wait for other calls is not asked",
		"agent/shown.go", "len(e.clauses)+len(e.binds) == 0", "len(e.binds) == 0", "./agent", "RandomAgents",
	},
	{
		"agent-free-guarded", "the gates of an agent with guards are not asked",
		"agent/shown.go", "return len(d.Guards) == 0 && e.Kind", "return e.Kind", "./orchestrator/agents", "CallsAreFree",
	},
	{
		"agent-shelf-amended", "who finds an answer read does not see what amendments of its round have added",
		"orchestrator/agents/reading.go", " && slices.Equal(k.amended, amended) {", " {", "./orchestrator/agents", "LongAnswer",
	},
	{
		"agent-shelf-empty", "each gate of a long answer reads all of it anew",
		"orchestrator/agents/loop.go", "		l.Shelf.put(round, amendments, x)\n", "", "./orchestrator/agents", "LongAnswer",
	},
	{
		"agent-shelf-other", "another answer of the same round passes for the one that was read",
		"orchestrator/agents/reading.go", " && bytes.Equal(x.bytes, answer) {", " {", "./orchestrator/agents", "AnAnswerIsReadOnce",
	},
	{
		"agent-shelf-none", "the request behind a round reads its answer anew",
		"orchestrator/agents/reading.go", "	s.last.Store(&last)\n", "	_ = last\n", "./orchestrator/agents", "AnAnswerIsReadOnce",
	},
	{
		"agent-part-looked-for", "each round asks whether its part is there",
		"kv/archive_blobs.go", "	if !fresh {\n", "	if name != \"\" {\n", "./kv", "AFreshBlob",
	},
	{
		"agent-part-full", "where the store is full, an agent waits for room for a part that lies there",
		"kv/archive_blobs.go", "bad == nil && info != nil {", "bad == nil && info == nil {", "./kv", "AFullStoreStill",
	},
	{
		"agent-past-calls", "an agent that asks for its history is told of the calls of its last rounds alone",
		"orchestrator/agents/past.go", "		made.before = l.Past.calls\n", "", "./orchestrator/agents", "APastSays",
	},
	{
		"agent-gates-anew", "each gate of a round gathers all of its calls anew",
		"orchestrator/agentlook.go", "again == nil || len(x.calls) < ag.many ||", "again == nil || len(x.calls) > 0 ||", "./orchestrator", "GatesOfARound",
	},
	{
		"agent-gates-deaf", "a gate of a round of many calls does not see what was over since the first of them was asked",
		"orchestrator/agents/gates.go", "		of.Calls = append(of.Calls, more[g.taken-from].Call)\n", "		_, _ = of, more[g.taken-from]\n", "./orchestrator", "GateSees",
	},
	{
		"agent-gates-early", "a gate looks at what was over after the record that made its call ready",
		"orchestrator/agents/came.go", "	n := cameIn(l, round).upTo(since)\n", "	n := len(cameIn(l, round).all)\n", "./orchestrator/agents", "AGateLooks",
	},
	{
		"agent-gates-unread", "of a call whose result matters to a gate the result is not read",
		"orchestrator/agents/gates.go", "		if !Matters(g.loop, g.Round, &x.Call) {\n", "		if x.Seq > 0 {\n", "./orchestrator", "GateSees",
	},
	{
		"agent-free-none", "each call of a round looks at all the others",
		"orchestrator/agents/decide.go", "		s.Free = of != nil && of.Free(s.Tool)\n", "", "./orchestrator/agents", "CallsAreFree",
	},
	{
		"agent-interrupt-void", "the record of a round that was interrupted before it was decided reaches its planner",
		"machine/agentview.go", "; n < len(a.records) && !a.records[n].Void {", "; n < len(a.records) {", "./orchestrator/agents ./orchestrator", "TestAPast|AgentIsInterrupted",
	},
	{
		"agent-interrupt-waits", "an interrupting word waits for what is out",
		"machine/cut.go", "	if sc.goesOn() {\n		sc.stop(r, 0, at, out)\n", "	if sc.goesOn() {\n		sc.stopping = true\n", "./machine", "Scenarios/agents",
	},
	{
		"agent-interrupt-answer", "an answer that came before an interrupting word is decided all the same",
		"machine/cut.go", "	if r.calls[i].state == closing {\n", "	if r.calls[i].state == closing && !asksPlanner(sc) {\n", "./machine", "Scenarios/agents",
	},
	{
		"agent-guard-calls", "a call is made that a guard does not let pass",
		"orchestrator/agents/decide.go", "	if no := c.refused(l, round, asks); no != nil {\n", "	if no := c.refused(l, round, asks); no != nil && false {\n", "./orchestrator", "GuardsOfAnAgent",
	},
	{
		"agent-guard-composites", "an agent below is begun that a guard does not let pass",
		"machine/enter.go", "		err, ending = refusedCall(r, i, in)\n", "", "./machine", "Scenarios/agents",
	},
	{
		"agent-guard-results", "a result is used that a guard does not let pass",
		"machine/apply.go", "	if to == succeeded && !passesResult(r, i, at, out) {\n", "	if false {\n", "./machine", "Scenarios/agents",
	},
	{
		"agent-guard-output", "an agent comes to an output that a guard does not let pass",
		"machine/guarding.go", "	if r.stepOf(i).Agent().Guards == nil || g.passes(r, at, out) {\n", "	if g != nil {\n", "./machine", "Scenarios/agents",
	},
	{
		"agent-guard-input", "an agent begins whose input a guard does not let pass",
		"machine/agent.go", "no != nil && !no.Asks {\n			r.fail(i, no.Err", "no != nil && false {\n			r.fail(i, no.Err", "./machine", "Scenarios/agents",
	},
	{
		"agent-guard-templates", "the guards of an agent are asked about what its templates call",
		"machine/guard.go", "r.stepOf(above).Repeat == nil && r.stepOf(above).Template != nil", "above < 0", "./orchestrator", "GuardsOfAnAgent",
	},
	{
		"agent-guard-ends", "an agent that a guard ends waits for what is out",
		"machine/guard.go", "r.insideOf(of) == sc && sc.goesOn() {", "r.insideOf(of) == sc && false {", "./machine", "Scenarios/agents",
	},
	{
		"agent-guard-away", "what can't be looked at passes a guard",
		"agent/guard.go", "	case away != \"\":\n", "	case away == \"never\":\n", "./agent", "GuardsRefuse",
	},
	{
		"agent-guard-tool-calls", "a call begins before a guard has let it pass that is a tool",
		"machine/run.go", "	if passesCall(r, i, at, out) {\n", "	if true {\n", "./machine", "Scenarios/guards",
	},
	{
		"agent-guard-tool-input", "a planner is asked before a guard has let the agent's input pass that is a tool",
		"machine/agent.go", "	if !greets(r, i, at, out) {\n", "	if false {\n", "./machine", "Scenarios/guards",
	},
	{
		"agent-guard-interrupted-input", "a word that interrupts takes an input past its guards",
		"machine/guarding.go", "	if a.greeted || r.stepOf(i)", "	if a.greeted || len(a.records) > 0 || r.stepOf(i)", "./machine", "Scenarios/guards",
	},
	{
		"agent-guard-tool-failed", "a guard that fails lets everything pass",
		"agent/guard.go", "	case failed != nil:\n		said.Reason", "	case failed != nil:\n		return nil\n		said.Reason", "./agent", "GuardsThatAreTools",
	},
	{
		"agent-guard-room", "a call that waits for a guard takes room",
		"machine/guarding.go", "	if s.state.out() { // its worker is done\n", "	if false {\n", "./machine", "Scenarios/guards",
	},
	{
		"agent-guard-orphaned", "an agent is over while a guard of it is out",
		"machine/scope.go", " || sc.heldBy != nil:", ":", "./machine", "Scenarios/guards",
	},
	{
		"agent-guard-edit", "a person changes what a guard asks about",
		"machine/questions.go", "	if q.Guard != nil && (a.Value", "	if false && (a.Value", "./machine", "Scenarios/guards",
	},
	{
		"agent-guard-first-asks", "of several guards that ask a person about a call the first does alone",
		"machine/asking.go", "	case asksEachGuard(r, i):\n", "	case false:\n", "./orchestrator", "SimulatedAgents",
	},
	{
		"agent-guard-edit-unseen", "what people have let pass goes on as another has changed it",
		"machine/weighing.go", "		x.passed, x.arguments = nil, a.Arguments\n", "		x.arguments = a.Arguments\n", "./orchestrator", "EachGuardAsks",
	},
	{
		"agent-guard-own-timeout", "a planner writes an approval that stands for no answer to a guard",
		"machine/asking.go", "q != nil && q.guard > 0:", "q != nil && q.guard > 9:", "./orchestrator", "EachGuardAsks",
	},
	{
		"agent-guard-one-digest", "an answer to one guard is one to the next",
		"machine/asking.go", "	if x := r.weighings[c]; x != nil { // what", "	if x := r.weighings[c]; x != nil && false { // what", "./orchestrator", "EachGuardAsks",
	},
	{
		"agent-guard-each-need", "an orchestrator that has the first guard ask alone goes on with a run in which each does",
		"wire/needs.go", "		needs = append(needs, EachGuard)\n", "", "./orchestrator", "EachGuardAsks",
	},
	{
		"timeout-from-start", "the timeout of a step counts from the beginning of its run",
		"machine/run.go", "		by := due.Add(t)\n", "		by := r.start.Started.Add(t)\n", "./orchestrator", "SimulatedWorlds",
	},
	{
		"timeout-each-attempt", "each attempt of a step has the step's timeout for itself",
		"machine/apply.go", "	r.send(i, s.at.time(), out)\n", "	if t := r.stepOf(i).Timeout; t > 0 && s.deadline > 0 {\n		s.deadline = instantOf(s.at.time().Add(t))\n	}\n	r.send(i, s.at.time(), out)\n", "./orchestrator", "SimulatedWorlds",
	},
	{
		"list-timeout-in-room", "the timeout of a list passes while its items wait for room",
		"machine/deadlines.go", ", s.Plan == nil && r.scopeOf(step).bounded() != nil:", ":", "./machine", "Scenarios/concurrency",
	},
	{
		"list-timeout-guarded", "the timeout of a list passes while its items wait for guards",
		"machine/deadlines.go", "	return asks || of.Asks(plan.OnCall)\n", "	return asks && false\n", "./machine", "Scenarios/guards",
	},
	{
		"agent-guard-void", "a call that is not made costs a call of each guard",
		"orchestrator/agents/ready.go", "	if err != nil || c == nil || c.result != nil || c.refused(l, g.Round, asks) != nil {\n		return false\n", "	if err != nil || c == nil {\n		return false\n", "./orchestrator/agents", "AGuardIsAsked",
	},
	{
		"agent-guard-frozen", "the guards of an agent below are not frozen with the run",
		"internal/agentcheck/circle.go", "		if g.Tool != \"\" {\n", "		if false {\n", "./internal/agentcheck", "CallsOf",
	},
	{
		"agent-board-inherited", "an agent that another calls begins with an empty blackboard",
		"orchestrator/agents/loop.go", "		f.Inherit(inheritedBy(l))\n", "", "./orchestrator", "CallersBlackboard",
	},
	{
		"agent-board-twice", "what an agent was handed comes back to its caller's blackboard",
		"orchestrator/agents/loop.go", "all[min(len(inheritedBy(b.Loop)), len(all)):], true", "all, true", "./orchestrator", "CallersBlackboard",
	},
	{
		"agent-time-stands", "a planner is told what time there was, and not what is left",
		"orchestrator/agents/ask.go", "		now.Elapsed = l.Rounds[round].Elapsed\n", "		now.Elapsed = 0\n", "./orchestrator", "WhatTimeIsLeft",
	},
	{
		"agent-models-forgotten", "the models of rounds that are past are forgotten",
		"orchestrator/agents/spending.go", "			first = l.Past.spent\n", "			first = l.Past.spent\n			first.Models = nil\n", "./orchestrator/agents", "APastSays",
	},
	{
		"agent-guard-made", "a call that a guard did not let pass counts as called",
		"orchestrator/agents/came.go", "		if c.Err != nil && l.Definition.NotMade(c.Err) {\n", "		if false {\n", "./orchestrator", "GuardsOfAnAgent",
	},
	{
		"agent-replan-goes-on", "a round goes on after a call of it has asked for a new plan",
		"machine/cut.go", "	if a.cut = append(a.cut, cut{sc, why}); !sc.stopping {\n", "	if a.cut = append(a.cut, cut{sc, why}); false {\n", "./machine ./orchestrator", "Scenarios/agents|ACallAsks|SimulatedAgents",
	},
	{
		"agent-replan-gives-up", "what is out is given up when a call asks for a new plan",
		"machine/cut.go", "		sc.stop(r, instantOf(at), at, out)\n", "		sc.stop(r, 0, at, out)\n", "./machine", "Scenarios/agents",
	},
	{
		"agent-replan-pauses", "what waits to be tried again is made once more though its round is over for starting",
		"machine/cut.go", " && s.at <= sc.spares && ", " && ", "./machine", "Scenarios/agents",
	},
	{
		"agent-replan-planner", "the planner of an agent below is waited for when a call asks for a new plan",
		"machine/cut.go", " && !asksPlanner(sc) && ", " && ", "./machine", "Scenarios/agents",
	},
	{
		"agent-replan-owner", "an error that an owner decided asks for a new plan",
		"machine/apply.go", "res.Error.Code == fault.Replan && !res.ByOwner", "res.Error.Code == fault.Replan", "./machine", "Scenarios/agents",
	},
	{
		"agent-replan-spared-stop", "a stop leaves alone what a cut spared",
		"machine/apply.go", "x.goesOn() && (!x.stopping || sc.spares == 0)", "!x.stopping", "./machine", "Scenarios/agents",
	},
	{
		"agent-stopped-goes-on", "the answer of a planner is decided though its agent was stopped meanwhile",
		"machine/agent.go", "	case asksPlanner(sc) && r.halting(i):", "	case false:", "./machine", "Scenarios/agents",
	},
	{
		"agent-replan-unneeded", "a run that does not need to know of new plans reads that a call asks for one",
		"wire/result.go", "(e.Code != fault.Replan || codes.Replan)", "true", "./wire", "AskingForANewPlan",
	},
	{
		"agent-account-before", "an agent is told what was used up before its round, without the answer that asks",
		"orchestrator/agents/spending.go", "s, shares := l.asked(round), l.shares(round, upTo)", "s, shares := l.Usage(round), l.shares(round, upTo)", "./orchestrator", "AnAccountAgrees",
	},
	{
		"agent-account-below", "an agent is told that what those below it use up is left",
		"orchestrator/agentry.go", "			x.addBelow(r, round)\n", "			_ = round\n", "./orchestrator", "AnAccountAgrees",
	},
	{
		"agent-account-steps", "an agent is told of no call of the round in which it asks",
		"orchestrator/agents/spending.go", "	s.Used.Steps += made(outcomesOf(l, round, upTo))\n", "", "./orchestrator", "AnAccountAgrees",
	},
	{
		"agent-share-undivided", "each of several agents may use up all that is left",
		"agent/spending.go", "portion(left.Tokens, n)", "portion(left.Tokens, 1)", "./orchestrator", "HundredAgents|SharesOfABudget",
	},
	{
		"agent-share-forgotten", "what agents that go on may use up is promised to others too",
		"orchestrator/agents/spending.go", "			s.Promise(b.Budget.Within(share))\n", "			_ = share\n", "./orchestrator", "SharesOfABudget",
	},
	{
		"agent-share-hoarded", "an agent is promised more than its own budget lets it use up",
		"orchestrator/agents/spending.go", "s.Promise(b.Budget.Within(share))", "s.Promise(share)", "./orchestrator", "SharesOfABudget",
	},
	{
		"agent-share-unreturned", "what agents leave of their shares is lost",
		"orchestrator/agents/spending.go", "b.Over == 0 || b.Over > upTo {", "true {", "./orchestrator/agents", "SharedAgain",
	},
	{
		"agent-below-free", "what agents below have used up does not count",
		"orchestrator/agents/spending.go", "			s.Return(agent.Budget{}, b.spending(shares[b.Begun]))\n", "			_ = shares[b.Begun]\n", "./orchestrator", "HundredAgents|SharesOfABudget",
	},
	{
		"agent-untold-free", "a planner that does not say what it took has taken nothing",
		"agent/spending.go", "		s.Kept += r.Tokens\n", "", "./orchestrator", "HundredAgents",
	},
	{
		"agent-answer-unbounded", "what does not fit the budget does not make the answer shorter",
		"orchestrator/agents/ask.go", "	now.MaxOutput = kept.MaxOutput\n", "", "./orchestrator", "HundredAgents|SimulatedAgents",
	},
	{
		"agent-bound-unreserved", "the bound of an answer is written into requests that it was not counted in",
		"orchestrator/agents/ask.go", "		now.MaxOutput = agent.DefaultOutput\n", "", "./orchestrator", "SimulatedAgents",
	},
	{
		"agent-spent-unresponsive", "nobody is asked for a last answer where the budget is used up",
		"machine/agent.go", "	case exceeded(each) && a.ending == nil &&", "	case false && a.ending == nil &&", "./machine", "Scenarios/agents",
	},
	{
		"agent-late", "an owner that still finds out one round of an agent decides none of the next",
		"orchestrator/agentry.go", "	if !waits || its.deciding.At(scope) {\n", "	if !waits || its.deciding.Len() > 0 {\n", "./orchestrator", "AnOwnerThatIsLate",
	},
	{
		"token-forged", "what is told of another attempt than the one that is out reaches who watches",
		"orchestrator/flight.go", " || !r.machine.Open(c, of.Number) {\n		return nil\n	}\n	f := r.flights.At(c)\n	if f == nil || f.attempt != of.Number {\n", " {\n		return nil\n	}\n	f := r.flights.At(c)\n	if f == nil {\n", "./orchestrator", "WhatIsWritten",
	},
	{
		"token-torn", "what is written is told with half a letter at its end",
		"worker/writing.go", "				whole -= n\n", "				_ = n\n", "./orchestrator", "WhatIsWritten",
	},
	{
		"token-unheard", "what nobody hears is told as often as what somebody does",
		"worker/writing.go", "	case !heard:\n		again = writeLater\n", "", "./orchestrator", "WhatNobodyHears",
	},
	{
		"token-lost", "what nobody heard is let go of",
		"worker/writing.go", "; heard && n > 0 {", "; n > 0 {", "./orchestrator", "WhatNobodyHeard",
	},
	{
		"agent-open-unclosed", "an open plan that nobody may amend is never closed",
		"machine/consider.go", "err != nil && !(x.a.ByOwner && x.a.only()) {", "err != nil {", "./machine", "Scenarios/amendments",
	},
	{
		"agent-open-unmarked", "the record that closes such a plan does not say that its owner does",
		"orchestrator/decider.go", "	if a.ByOwner = c.Fixed; a.ByOwner {\n", "	if false {\n", "./orchestrator", "AnOpenPlanOfAnAnswer",
	},
	{
		"close-never-asked", "an owner does not ask to close a plan, since it takes its own record for one that would do nothing",
		"machine/scope.go", "	x.a.ByOwner = c.Fixed\n", "", "./machine", "Scenarios/amendments",
	},
	{
		"agent-order-handles", "a step that merely stands behind a failure has handled it",
		"machine/standing.go", "		case r.plan.Steps[d].OnlyAfter(i):\n", "", "./machine", "Scenarios/agents",
	},
	{
		"agent-order-top-only", "the order that gates add does not hold in plans within steps",
		"orchestrator/agents/decide.go", "if c.Within >= 0 && l.Formerly {", "if c.Within >= 0 {", "./orchestrator", "GatesHoldInPlans",
	},
	{
		"agent-order-waves", "the order that gates add does not hold where a plan goes by waves",
		"plan/called.go", "	deepen(p, other)\n", "", "./orchestrator", "GatesHoldInPlans",
	},
	{
		"locked-within-open", "a call of a plan within a step that was locked when the answer came is made once something else has opened it",
		"orchestrator/agents/ready.go", "l.Within && x.answer.Calls[i].Within >= 0 && s.Err != nil", "false && s.Err != nil", "./orchestrator/agents ./orchestrator", "LockedWithin",
	},
	{
		"locked-within-added", "a call within a step that people add is made though it was locked, once something else has opened it",
		"orchestrator/agents/amend.go", "if s := admits.Settled[i]; l.Within && s.Err != nil", "if s := admits.Settled[i]; false && s.Err != nil", "./orchestrator/agents", "LockedWithin",
	},
	{
		"locked-within-formerly", "a run that began before locks calls within steps by the rules of now",
		"orchestrator/agentlook.go", "x.loop.Within = slices.Contains(r.start.Needs, wire.LockedWithin)", "x.loop.Within = true", "./orchestrator", "LockedWithin",
	},
	{
		"agent-order-for-all", "a run that began before goes on by the rules of now",
		"orchestrator/agentry.go", "return !slices.Contains(r.start.Needs, wire.AgentOrder) }", "return false }", "./orchestrator", "ARunOfBefore",
	},
	{
		"agent-list-locks", "the items of a list pass a gate together",
		"agent/gatekeeper.go", "	g.listed(c, e, keys)\n", "", "./agent ./orchestrator", "SideBySide|AListMoves",
	},
	{
		"agent-list-states", "a list may lead to a state in which its other items can't be called",
		"agent/gatekeeper.go", "one = one && (e.states == nil || slices.Contains(e.states, to))", "one = one && (e.states == nil || to != \"\")", "./agent", "SideBySide",
	},
	{
		"agent-direct-list", "a direct call of a list ends the loop with nothing",
		"machine/agent.go", "; list && !formerly {", "; list && formerly {", "./machine", "Scenarios/agents",
	},
	{
		"history-unreadable", "a document is stored that nobody can read",
		"kv/archive.go", "	if !json.Valid(body) { //", "	if body == nil { //", "./kv", "AFinishedRunIsKeptOnce",
	},
	{
		"message-forgotten", "what an agent told people is gone once its run is over",
		"orchestrator/documents.go", "		room.tells(r, i, st)\n", "		if !r.machine.Finished() {\n			room.tells(r, i, st)\n		}\n", "./orchestrator", "AnAgentTellsTheUser",
	},
	{
		"message-late", "who comes late to a run is not told what its agents have told people",
		"client/watch.go", "		w.allTold(s, each)\n", "", "./orchestrator", "AnAgentTellsTheUser",
	},
	{
		"message-twice", "a watcher is told a message again by the next owner",
		"client/watch.go", "		w.heard[e.Step] = true\n", "", "./client", "FollowReportsWhatHappens",
	},
	{
		"message-anew", "a message that a retry takes over counts as told by it",
		"orchestrator/documents.go", "Reused: tries(r).Told(c)}", "Reused: false}", "./orchestrator", "ARetryKeepsMessages",
	},
	{
		"message-diverged", "a message counts as told before though its loop has gone another way",
		"orchestrator/again/again.go", "r.Machine.Token(c)) && (&unchanged{r, map[int]bool{}}).call(c)", "r.Machine.Token(c))", "./orchestrator", "ARetryKeepsMessages",
	},
	{
		"message-steers", "what an agent tells people steers a terminal",
		"internal/agents/messages.go", "		lines = append(lines, text.OneLine(strings.TrimRight(line, \"\\r\\n\")))\n", "		lines = append(lines, strings.TrimRight(line, \"\\r\\n\"))\n", "./internal/agents", "Messages",
	},
	{
		"view-value-called", "values count as calls where an agent's rounds are drawn",
		"internal/agents/draw.go", "		if !s.asked() {\n", "		if ownCall(s.id) {\n", "./internal/agents", "ViewOfValues",
	},
	{
		"sink-not-before-the-end", "a run is over before its objects are sent",
		"orchestrator/lifecycle_finish.go", "		send(ctx) // likewise", "		_ = send // likewise", "./orchestrator", "SimulatedAgents",
	},
	{
		"sink-at-the-end-alone", "an object is sent when the run is over, and not when it is one",
		"orchestrator/driver.go", "			dr.sinks.settled(r, c)\n", "", "./orchestrator", "ObjectsAreSentByTheNextOwner",
	},
	{
		"sink-one-id", "all objects of a run go under one message id",
		"subjects/sinks.go", ".text(\"/\", step, \"/=sink.\").int(n)", ".text(\"/\", \"/=sink.\").int(n)", "./orchestrator ./subjects", "ObjectsGoToSinks|SinksStay",
	},
	{
		"sink-anywhere", "a sink may have any name",
		"subjects/sinks.go", "		if !word(w, MaxSink) {\n", "		if w == \"\" {\n", "./subjects ./internal/agentcheck", "Sinks",
	},
	{
		"sink-refused-again", "what was removed from the bucket comes back with the next owner",
		"kv/sinks.go", "		h[headerExpect] = expectNone\n", "		_ = expectNone\n", "./orchestrator", "ObjectsAreSentByTheNextOwner",
	},
	{
		"sink-taken-over", "a retry sends what it took over",
		"orchestrator/agents/sent.go", "		if !o.again && o.token != \"\" && ", "		if o.token != \"\" && ", "./orchestrator", "ARetrySendsWhatItMade",
	},
	{
		"sink-unfit", "what a condition of the entry does not hold for goes to its sinks",
		"agent/add.go", "	if !is {\n		return a, \"\", nil\n", "	if !is && (e == nil || e.artifact == nil) {\n		return a, \"\", nil\n", "./orchestrator", "ObjectsGoToSinks",
	},
	{
		"sink-before-the-round", "an object of a call that began while its planner wrote is sent before the record of its round stands",
		"orchestrator/agents/sent.go", "		if l.Rounds[n].Record == nil {", "		if l.Rounds[n] == nil {", "./orchestrator", "ObjectsOfStreamedCalls",
	},
	{
		"sink-anew", "who sends gathers all calls of a round anew for each that is over",
		"orchestrator/sinks.go", "machine.RoundCount(r.machine, of)-1, over)", "machine.RoundCount(r.machine, of)-1, nil)", "./orchestrator", "GatesOfARoundCost",
	},
	{
		"sink-through-again", "who sends goes through all that the calls of a round came to each time",
		"orchestrator/agents/sent.go", "		c := cameIn(l, n)\n", "		c := cameIn(l, n)\n		c.sending = sending{}\n", "./orchestrator/agents", "WhoSendsLooks",
	},
	{
		"sink-skips-unsent", "what a sink did not answer is taken for sent by whoever comes next",
		"orchestrator/agents/sent.go", "	return s.unsent\n", "	now := s.unsent\n	s.unsent = nil\n	return now\n", "./orchestrator/agents", "WhoSendsLooks",
	},
	{
		"sink-deaf", "of a round of many calls an object goes to sinks when the run is over, if its call was over behind others",
		"orchestrator/agentlook.go", "	x := &looked{scope: of, sends: toSinks(r, of)}\n	for _, c := range over", "	x := &looked{scope: of}\n	for _, c := range over", "./orchestrator", "ObjectsOfManyCalls",
	},
	{
		"sink-need", "an orchestrator that sends nothing goes on with a run whose objects go to sinks",
		"wire/needs.go", "		needs = append(needs, Sinks)\n", "", "./wire", "NeedOfSinks",
	},
	{
		"object-condition-late", "what calls of the same round wrote is not seen by conditions about objects",
		"orchestrator/agents/came.go", "		shared, _ := l.shared(round, upTo, among)\n		return shared\n", "		return nil\n", "./orchestrator", "ObjectsAreTaken",
	},
	{
		"object-condition-beginning", "whether an object goes to sinks is decided by the facts of the beginning of its round",
		"orchestrator/agents/sent.go", "agent.AddSending(s.facts, ", "agent.AddSending(s.facts.Clone(), ", "./orchestrator", "SimulatedAgents",
	},
	{
		"object-condition-itself", "a condition about an object has it on the blackboard already",
		"agent/board.go", "	bind := b.takers(a, look)", "	b.latest = b.latest.with(simpleName(a.Type), a.Value)\n	bind := b.takers(a, look)", "./agent", "RandomAgents",
	},
	{
		"object-condition-need", "an orchestrator that can't read a condition about an object goes on with a run that has one",
		"wire/needs.go", "		needs = append(needs, ObjectConditions)\n", "", "./wire", "NeedOfObjectConditions",
	},
	{
		"object-condition-selected", "in a run of before entries are selected that its owner of before has refused",
		"orchestrator/agents/loop.go", "			agent.SelectFormerly(f)\n", "", "./orchestrator/agents", "SelectedAsInRunsOfBefore",
	},
	{
		"object-order-come", "a later round acts upon the object that came last, and not on that of the answer's last call",
		"agent/facts.go", "	f.board.settle()\n	f.Share(shared)", "	f.Share(shared)", "./agent ./orchestrator", "TheLastCallsObject",
	},
	{
		"object-order-items", "of the items of a list the one counts that came last",
		"orchestrator/agents/came.go", "			at = append(at, n)", "			_ = n", "./orchestrator/agents", "PlacesOfCalls",
	},
	{
		"object-order-before", "objects of a run that began before are acted upon in the answer's order",
		"agent/add.go", "; c.formerly {", "; false {", "./agent", "TheLastCallsObject",
	},
	{
		"object-order-need", "an orchestrator that knows no order of objects goes on with a run in which it matters",
		"wire/needs.go", "		needs = append(needs, AnswerOrder)\n", "", "./wire", "NeedOfAnswerOrder",
	},
	{
		"selection-opens", "a selection that can't be used opens its facade",
		"agent/add.go", "len(bad) > 0 && !f.formerly", "false && len(bad) > 0", "./agent", "Scenarios",
	},
	{
		"native-plan-lost", "a plan that a model called natively has no result in its conversation",
		"model/native.go", "!before && s.Tool != \"\"", "false && !before", "./model", "PlanThatWasCalledNatively",
	},
	{
		"native-id-begun", "a native call takes the id of another one that had begun",
		"model/native.go", "!begun || b.Tool", "!begun || true || b.Tool", "./model", "IdsOfWhatHadBegun",
	},
	{
		"round-approved-unseen", "who has approved of one round approves of the next by the same words",
		"internal/cli/answered.go", "return q.Number > 1 || q.Revision > 0 ||", "return", "./internal/cli", "GoldenApprovedAmendments",
	},
	{
		"agent-share-twice", "agents whose objects are captured count twice where a budget is shared out",
		"orchestrator/agentlook.go", "len(x.loop.Rounds[round].Below) > 0 && x.loop.Ordered", "false", "./orchestrator", "SharesOfABudget",
	},
}
