package mutation

// ofTakingOver are the bugs of who reads first what is busy.
var ofTakingOver = []mutant{
	{
		"ahead-told", "how far all is read is told by what is read ahead of it",
		"orchestrator/loop.go", "	case !ahead:\n", "	case true:\n", "./orchestrator", "ReadOnceMore",
	},
	{
		"ahead-twice", "what was read ahead counts once more when all is read",
		"orchestrator/lifecycle.go", "	if e.Seq <= r.lastSeq {\n", "	if false {\n", "./orchestrator", "ReadOnceMore",
	},
	{
		"ahead-alone", "what is busy is read ahead, and nothing after it",
		"orchestrator/partitions.go", "		c.closed = nil\n		ps.followAll(c)\n", "		c.closed = nil\n", "./orchestrator", "AllIsReadBehind",
	},
	{
		"ahead-on", "what is read ahead counts where all is read by another",
		"orchestrator/loop.go", "	case from.caughtUp:\n		return", "	case false:\n		return", "./orchestrator", "ReadOnceMore",
	},
	{
		"ahead-untold", "marks don't tell what is busy",
		"orchestrator/reaper.go", "		m.Busy = append(m.Busy, key)\n", "		_ = m\n", "./orchestrator", "MarksTellWhatIsBusy",
	},
	{
		"ahead-unordered", "what is read later counts as begun later",
		"orchestrator/run.go", "	return slices.Insert(runs, at, r)", "	_ = at\n	return append(runs, r)", "./orchestrator", "MarksTellWhatIsBusy",
	},
	{
		"ahead-wide", "runs that are quiet are opened as many at a time as others",
		"orchestrator/partitions.go", "if c.opening >= quietWide && c.quiet(r) {", "if false {", "./orchestrator", "AFewAtATime",
	},
	{
		"ahead-forgotten", "the marks of who is gone are gone with it",
		"kv/members_watch.go", "	for _, x := range m.past {\n", "	for _, x := range map[string]*seenMember{} {\n", "./kv", "MembersHearEachOthersMarks",
	},
}
