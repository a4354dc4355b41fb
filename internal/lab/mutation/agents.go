package mutation

// ofAgents are the bugs of the loops of agents.
var ofAgents = []mutant{
	{
		"agent-asks-locked", "a question in a round is asked though its entry is locked when its turn comes",
		"orchestrator/agentry.go", "!inRound || q.Kind != outcome.Ask {", "!inRound || q.Kind == outcome.Ask {", "./orchestrator", "AgentAsks",
	},
	{
		"agent-asks-since", "the gate of a question is asked as of the beginning of the run",
		"machine/asking.go", "		s.since = r.seq\n", "", "./orchestrator", "AgentAsks",
	},
}
