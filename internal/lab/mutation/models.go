package mutation

// ofModels are the bugs of what planners are asked, and of those who ask language models.
var ofModels = []mutant{
	{
		"agent-room-asked", "a round has room for as many calls as its answer asks for",
		"orchestrator/agents/decide.go", "	if p.Concurrency == 0 || of.Concurrency > 0 && of.Concurrency < p.Concurrency {", "	if p.Concurrency == 0 {", "./orchestrator", "ARoundHasRoomForSoMany",
	},
	{
		"agent-room-streamed", "all calls begin at once that a planner hands over while it writes",
		"plan/called.go", "begun := &Plan{Open: true, Concurrency: a.Concurrency, Timeout", "begun := &Plan{Open: true, Timeout", "./orchestrator", "WhatBeginsEarlyHasRoom",
	},
	{
		"request-whole", "each request has the rounds themselves, and not the name of their last part",
		"orchestrator/agentry.go", "		case whole:\n			args, err = asked.Whole()", "		case true:\n			args, err = asked.Whole()", "./orchestrator", "RequestsAreLinear",
	},
	{
		"request-never-cut", "a request grows beyond what its agent lets it have",
		"agent/request/cut.go", "	if cut+whole <= room || len(l.whole) == 1 {", "	if room > 0 || len(l.whole) == 1 {", "./agent/request", "ARequestShrinks|OldestRounds",
	},
	{
		"request-cut-each-round", "a request shrinks a little in each round, so that no two begin alike",
		"agent/request/cut.go", "min(cut, l.mostCut())+whole > target) {", "min(cut, l.mostCut())+whole > max(target, room)) {", "./agent/request", "ARequestShrinks|OldestRounds",
	},
	{
		"request-tools-of-now", "tools that come later change what a request begins with",
		"model/transcript.go", "		t.tools = sortedTools(r.Tools)\n	}\n	if s", "		t.tools = sortedTools(r.Tools)\n		if r.ToolChanges != nil {\n			t.tools = sortedTools(append(append([]Tool{}, r.Tools...), r.ToolChanges.Added...))\n		}\n	}\n	if s", "./model", "GrowsAtItsEnd|AnAgentsRequest",
	},
	{
		"model-state-to-others", "what one provider wants back goes to another one, too",
		"model/rounds.go", "	if round.Provider.fits(m) {", "	if round.Provider != nil {", "./model", "AStateGoesBack|AnAgentGivesStates",
	},
	{
		"model-state-lost", "what a provider wants back is not given back",
		"model/rounds.go", "	if round.Provider.fits(m) {", "	if round.Provider.fits(m) && m.Name == \"nobody\" {", "./model ./model/provider", "AStateGoesBack|AnAgentGivesStates|ThinkingGoesBack",
	},
	{
		"model-fallback-refused", "another model is asked for what one has refused to answer",
		"model/failure.go", "	case Limited, Overloaded, Server, Unreachable, Late, Broken, Exhausted:\n		return true\n	case Invalid, TooLong, Refused,", "	case Limited, Overloaded, Server, Unreachable, Late, Broken, Exhausted, Refused:\n		return true\n	case Invalid, TooLong,", "./model/provider", "Fallback",
	},
	{
		"model-fallback-never", "no other model is asked where one can't answer now",
		"model/provider/call.go", "		if !errors.As(err, &f) || !f.Passes() {", "		if !errors.As(err, &f) || f.Passes() {", "./model/provider", "Fallback",
	},
	{
		"model-rate-own", "each worker keeps to a model's rate by itself, and not with all others",
		"model/provider/rates.go", "	r := model.ParseRate(raw)\n", "	r := model.ParseRate(raw[:0])\n", "./internal/serve/models", "WorkersShareARate",
	},
	{
		"model-rate-unheard", "what a provider says is left counts for nothing",
		"model/rate.go", "			*level = min(*level, left)", "			*level = max(*level, left)", "./model", "ARateIs",
	},
	{
		"model-key-echoed", "a key that a provider repeats stands in the error",
		"model/failure.go", "		return strings.ReplaceAll(s, secret, \"[key]\")", "		return s", "./model/provider", "Failures",
	},
	{
		"model-commands-late", "a model that has nothing to execute is read to its end",
		"model/reader.go", "	if a.early != nil && a.early.write(text) {", "	if a.early != nil && a.early.write(text) && text == \"\" {", "./model", "AResponseIsSureEarly",
	},
	{
		"model-schemas-kept", "schemas that a model refuses are remembered without bound",
		"model/provider/refused.go", "		delete(s.all, s.order[s.next])\n", "", "./model/provider", "TheLastRefusedSchemas",
	},
	{
		"model-cache-unmarked", "Anthropic's models are not told what to keep in their prompt cache",
		"model/anthropic.go", "			messages[i].mark()\n", "", "./model", "Bodies|PartsAreMarked",
	},
}
