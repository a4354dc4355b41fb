package mutation

// ofStreams are the bugs of answers of which steps begin before they are whole.
var ofStreams = []mutant{
	{
		"stream-token", "what a planner hands over counts, whoever has claimed its attempt",
		"machine/streaming.go", "	if a.claim != (claim{x.a.Streamed.Attempt, x.a.Streamed.Nonce}) {", "	if a == nil {", "./orchestrator", "SimulatedStreams",
	},
	{
		"stream-over", "what is handed over counts though the attempt that did it is over",
		"machine/streaming.go", "	if !planner.state.out() || int(planner.attempt) != x.a.Streamed.Attempt {", "	if planner == nil {", "./orchestrator", "SimulatedStreams",
	},
	{
		"stream-redelivered", "an answer that a lost worker had begun, and of which it has handed over steps, is written by another as well",
		"worker/prepare.go", "	if x.mayStand && x.step.Stream != \"\" && x.step.Claim == \"\" && !x.claim() {", "	if false {", "./worker", "AnAnswerThatALostWorker",
	},
	{
		"stream-unclaimed", "steps are handed over before the attempt is claimed",
		"worker/stream.go", "	if x.nonce == \"\" && !s.claim() {", "	if x.nonce == \"\" {\n		x.nonce = \"nobody's\"\n	}\n	if false {", "./worker", "StepsAreHandedOver",
	},
	{
		"stream-asks-on", "a planner whose steps are refused goes on to hand them over",
		"worker/stream.go", "	s.over, s.queue = true, nil\n", "	s.queue = nil\n", "./worker", "WhoIsRefusedHandsOver",
	},
	{
		"stream-goes-on", "what an attempt has handed over starts after it has ended without an answer",
		"machine/streaming.go", "	if begun == nil || begun.amended == nil || begun.stopping {\n		return\n	}\n	r.ordered++", "	if begun != nil || sc.stopping {\n		return\n	}\n	r.ordered++", "./orchestrator", "AnAttemptThatEnds",
	},
	{
		"stream-again", "a step that had begun is made again, once the answer is whole",
		"machine/streaming.go", "	if !slices.Contains(d.Begun, id) {", "	if true {", "./orchestrator", "StepsBeginWhile",
	},
	{
		"stream-destructive", "a call that is hinted destructive begins before the answer is whole",
		"orchestrator/agents/stream.go", "	case e.Destructive:\n		return \"its tool is hinted destructive\"\n", "", "./orchestrator", "SimulatedStreams",
	},
	{
		"stream-untold", "a planner is not told what has begun in the attempt before",
		"orchestrator/agentlook.go", "at > 0 && at <= to.EndedAt {", "at > to.EndedAt && at == 0 {", "./orchestrator", "AnAttemptThatEnds",
	},
	{
		"stream-another", "a step that had begun passes for another one under its id",
		"agent/begun.go", "		case !SameStep(same, step):", "		case !SameStep(same, same):", "./orchestrator", "AnAnswerThatIsAnother",
	},
	{
		"stream-lacked", "a planner is not told that its answer lacks what had begun",
		"orchestrator/agents/ask.go", "		case x.lacked[c.ID]:\n			rec.Note = lacks\n", "", "./orchestrator", "AnAnswerThatIsAnother",
	},
	{
		"stream-unadmitted", "what was decided of a step that begins early is lost: which results of earlier rounds it has, and what it waits for",
		"machine/amending.go", "	if x.sc.round == 0 && !isBegun(x.sc) {", "	if x.sc.round == 0 {", "./orchestrator", "AnAnswerThatIsAnother",
	},
	{
		"stream-output", "an output that refers to others stays as it was written, where something had begun beside it",
		"orchestrator/agents/decide.go", " && a.End != agent.EndNone && a.Plan.Output == nil {", " && a.End != agent.EndNone {", "./orchestrator", "ARetryOfWhatHadBegun",
	},
	{
		"stream-retry", "a retry takes over what had begun beside the steps that came to it, and so takes no further round over",
		"orchestrator/reuse_within.go", "		case subjects.InScope(within, plan.StreamStep):\n", "		case \"\":\n", "./orchestrator", "ARetryOfWhatHadBegun",
	},
	{
		"stream-need", "an orchestrator that knows of no such rounds goes on with a run that can have one",
		"wire/needs.go", ", \"stream_plan\": StreamedPlans}", "}", "./wire ./orchestrator", "WhatNeedsStreamedPlans|AnotherOwnerTakesSteps",
	},
	{
		"stream-elsewhere", "a planner creates its claim on a subject that is another's",
		"wire/step.go", "	case s.Stream != \"\" && s.Stream != subjects.ClaimRecord(a, shards):", "	case false:", "./wire", "StreamForms",
	},
	{
		"stream-fallback", "another model is asked for an answer of which steps have begun",
		"model/provider/call.go", "		if worker.NewStream(ctx).Began() {", "		if false {", "./internal/serve/models", "AModelThatBreaksOff",
	},
	{
		"stream-model-untold", "a model is not told what had begun of the answer that broke off",
		"model/transcript.go", "	add(began[r.Mode == ModePlan], r.Began)\n", "", "./internal/serve/models", "AModelThatBreaksOff",
	},
	{
		"stream-half-call", "a call is handed over while its arguments are still written",
		"model/reader.go", "		a.next(a.calls[n-1])\n", "		a.next(&written{id: a.calls[n-1].id, name: a.calls[n-1].name})\n", "./model", "WhatIsWholeIsHandedOver",
	},
	{
		"stream-reversed", "steps that are handed over each before what it refers to are all read anew for each of them",
		"orchestrator/agents/stream.go", "	add = inOrder(add)\n", "", "./orchestrator/agents", "StepsAreTaken",
	},
	{
		"stream-skipped", "what never began, as what it waited for failed, passes for what has begun once its attempt is over",
		"machine/streaming.go", "		if s.attempt > 0 || s.state == succeeded {", "		if s.attempt > 0 || s.state.terminal() {", "./orchestrator", "RandomStreams",
	},
	{
		"stream-told-more", "a planner that is asked again is told of what began since, so that owners make other requests",
		"orchestrator/agentlook.go", "at > 0 && at <= to.EndedAt {", "at > 0 && to.EndedAt > 0 {", "./orchestrator", "RandomStreams",
	},
	{
		"stream-shut-down", "a planner that is shut down in the middle of its answer has failed for good with that",
		"worker/execution.go", "	case x.lost.Load() || errors.Is(context.Cause(x.base), ErrDraining):", "	case errors.Is(context.Cause(x.base), ErrDraining):\n		x.fail(describe(Terminal(err)))\n	case x.lost.Load():", "./orchestrator", "APlannerThatIsShutDown",
	},
	{
		"stream-given-up", "a call that is out when its planner's attempt ends is given up, and made again with the answer",
		"machine/streaming.go", "		if s.attempt > 0 || s.state == succeeded {", "		if s.state == succeeded {", "./orchestrator", "ACallAtMostOnceThatBeganEarly",
	},
	{
		"stream-invalid-free", "an answer that can't be used is none of three in a row, where something of it had begun",
		"machine/agent.go", "	return a.records[round].Invalid || slices", "	return a.records[round].Invalid && a.records[round].Plan == nil || slices", "./orchestrator", "RefusedAnswersOfWhich",
	},
	{
		"stream-invalid-gone", "what had begun of an answer that can't be used is no part of its round, which has nothing in the account",
		"orchestrator/agents/decide.go", "	if len(begun) == 0 {", "	if len(begun) >= 0 {", "./orchestrator", "RefusedAnswersOfWhich",
	},
}
