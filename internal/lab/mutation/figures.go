package mutation

// ofFigures are the bugs of what the page tells of tools, which it has from the heads of runs.
var ofFigures = []mutant{
	{
		"figures-question-is-a-call", "an attempt that asked a person counts as a call, and the time until the answer as one that it took",
		"outcome/calls.go", "		c.Asked++\n		return\n", "		c.Asked++\n", "./outcome ./wire", "AQuestionIsNoCall|AHeadWithCalls",
	},
	{
		"figures-told-twice", "what a run says of its calls is added each time that it is told",
		"internal/ui/index/index.go", "e.at != l.at && l.Status", "l.Status", "./internal/ui/index", "SummedUpByTheHour",
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
