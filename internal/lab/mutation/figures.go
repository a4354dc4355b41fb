package mutation

// ofFigures are the bugs of what the page tells of tools, which it has from the heads of runs.
var ofFigures = []mutant{
	{
		"figures-question-is-a-call", "an attempt that asked a person counts as a call, and the time until the answer as one that it took",
		"outcome/calls.go", "		c.Asked++\n		return\n", "		c.Asked++\n", "./outcome ./wire", "AQuestionIsNoCall|AHeadWithCalls",
	},
	{
		"figures-told-twice", "what a run says of its calls is added each time that it is told",
		"internal/ui/index/reading.go", "!(told && e.at == l.at) && l.Status", "l.Status", "./internal/ui/index", "SummedUpByTheHour",
	},
	{
		"list-keeps-what-is-gone", "a list that was read anew has what is gone from the streams",
		"internal/ui/index/reading.go", "case e.docIn != rd.number && e.planIn != rd.number:", "case e.docIn > rd.number && e.planIn != rd.number:", "./internal/ui/index", "ReadAnew|NextReading",
	},
	{
		"list-believes-the-past", "what an earlier reading told of a document counts though the streams were made anew",
		"internal/ui/index/reading.go", "told := e.docIn == rd.number", "told := e.docIn > 0", "./internal/ui/index", "ReadAnew|NextReading",
	},
	{
		"list-hears-the-last-cursor", "the cursors of a reading that has ended are heard",
		"internal/ui/index/reading.go", "	if ix.reading != rd {\n		return\n	}\n	e := ix.entry(l.Key)", "	e := ix.entry(l.Key)", "./internal/ui/index", "ReadAnew|NextReading",
	},
	{
		"waiting-told-to-anybody", "who may ask what is wanted of tools is told of the runs of all tenants that wait",
		"orchestrator/demand.go", "named: m.Subject == subjects.WaitingSubject", "named: m.Subject != \"\"", "./orchestrator", "AreNamed",
	},
	{
		"waiting-however-short", "a run that waits for a worker needs attention however short that is",
		"orchestrator/demand.go", "if w.now.Sub(due) < w.of.over {", "if w.now.Sub(due) < 0 {", "./orchestrator", "AreNamed",
	},
	{
		"waiting-flickers", "a run that waits too long needs no attention for as long as its owner isn't sure of it",
		"internal/ui/index/waits.go", "e.Waits != nil && !unsure(e.Run())", "e.Waits != nil && unsure != nil", "./internal/ui/index", "WaitsTooLong",
	},
	{
		"page-viewer-speaks", "who may only look at runs says something to their agents",
		"internal/ui/ui.go", "act.word, Operator)", "act.word, Viewer)", "./internal/ui", "WhoMayDoWhat",
	},
	{
		"page-word-twice", "what the page sends twice is said twice to an agent",
		"internal/ui/word.go", "ID: in.ID, Text: in.Text", "Text: in.Text", "./internal/ui", "AnAgentIsSpokenTo",
	},
	{
		"figures-old-are-lost", "what calls came to is lost where hours grow old and become a part of a longer stretch",
		"internal/ui/index/tally/tally.go", "			t.scratch.unpack(c.packed)\n			t.pack(into)", "			t.pack(into)", "./internal/ui/index/tally", "SimplyAddingUp",
	},
	{
		"figures-without-bound", "stretches stay as short as they are, however many tools there are",
		"internal/ui/index/tally/tally.go", "t.bytes > t.most && t.lengthen()", "t.bytes < 0 && t.lengthen()", "./internal/ui/index/tally", "NoRoom",
	},
}
