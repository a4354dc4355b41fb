package mutation

// ofLettingGo are the bugs of results that a run lets go of, and reads again.
var ofLettingGo = []mutant{
	{
		"start-of-another", "starts that begin alike count as one",
		"wire/starts.go", "	key := sha256.Sum256(body)\n", "	key := sha256.Sum256(body[:min(len(body), 16)])\n", "./wire", "StartsOfTheSameBytes",
	},
	{
		"few-dropped", "of few entries the last goes in place of the one that is dropped",
		"internal/few/few.go", "			copy(in.list[i:], in.list[i+1:])\n", "", "./internal/few", "ItIsAMap",
	},
	{
		"sight-shared", "a run goes on to look through what it has handed on to others",
		"machine/sight.go", "	t.sight, s.run, s.sc, s.turn = nil, nil, nil, turn{}\n", "	s.run, s.sc, s.turn = nil, nil, turn{}\n", "./machine", "Scenarios",
	},
	{
		"let-go-never", "a run holds what nobody refers to any more",
		"machine/letgo.go", "	if k.bytes+k.derived < max(least, k.next) ||", "	if least >= 0 ||", "./machine", "WhatARunHoldsIsFlat",
	},
	{
		"let-go-last", "a run lets go of what the next iteration refers to",
		"machine/letgo.go", "	if int(sc.iteration) >= l.entered-1 {", "	if int(sc.iteration) >= l.entered {", "./machine", "AppliedOnceAllIsThere",
	},
	{
		"let-go-collected", "a run lets go of what a loop's list is derived of",
		"machine/letgo.go", "	return size > MaxDerived\n", "	return true\n", "./machine", "ACollectedListIsKept",
	},
	{
		"let-go-replay", "the state is computed anew of values that are not there",
		"machine/run.go", "	if r.kept.gone > 0 {", "	if false {", "./machine", "LetGoOfNothing",
	},
	{
		"let-go-meanwhile", "records are applied while values are read again",
		"machine/run.go", "	if r.kept.missing { // it", "	if false { // it", "./machine", "AppliedOnceAllIsThere",
	},
	{
		"let-go-items", "a list is put together of items that are not there",
		"machine/outcome.go", "		if x.Handle != nil || x.Away {", "		if x.Handle != nil {", "./orchestrator", "ALoopThatLetsGo",
	},
	{
		"let-go-rounds", "what a round refers to of earlier ones is not read again",
		"orchestrator/driver.go", "	return dr.earlier(r, *rec, machine.MissingOf(r.machine, rec.Round))\n", "	return true\n", "./orchestrator", "RoundsOfLongAgo",
	},
	{
		"let-go-referred", "what a round refers to of earlier ones is let go of while it runs",
		"machine/letgo.go", "	if g.referred[g.run.calls[i].Step] {", "	if false {", "./machine", "ARoundKeeps",
	},
	{
		"let-go-purged", "a run whose records are gone is tried to be read for ever",
		"orchestrator/evaluator.go", "			case purged:\n", "			case purged && err == nil:\n", "./orchestrator", "PurgedWhileItReadsAgain",
	},
	{
		"let-go-input", "what is in a scope whose input was let go of counts as having none",
		"machine/tree.go", "in.away || in.gone", "in.away", "./orchestrator", "ALoopThatLetsGo",
	},
	{
		"let-go-whole", "a run lets go of what each request of an agent's planner has in it",
		"machine/letgo.go", "|| g.whole(sc.of, Call{Step: a.of[0].first})", "", "./machine", "RoundsAreLetGoOf",
	},
	{
		"let-go-derived", "what a composite came to is read from a record that it doesn't have",
		"orchestrator/inputs.go", "	case res.Away && res.Derived:", "	case false:", "./orchestrator", "ALoopThatLetsGo",
	},
	{
		"let-go-unwatched", "who looks at a run that goes on does not see what was let go of",
		"orchestrator/api.go", "		complete(ctx)\n", "		_ = complete\n", "./orchestrator", "ALoopThatLetsGo",
	},
}
