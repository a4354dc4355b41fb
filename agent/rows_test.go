package agent

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// played is where a row of the table of entries is played: by cases of testdata, by their headings, and as an agent of
// examples/agents, which runs; "" for the one row of which all is in this package.
type played struct{ entries, scenarios, example string }

// tableOfEntries has each form of entry, each of its fields, and what else is said of it.
var tableOfEntries = map[string]map[string]played{
	"tool": {
		"tool":        {"A tool by its name.", "Simple agentic tool", "calculator"},
		"as":          {"Another name, another description", "unlockedByAll and unlockedByAny.", "desk"},
		"description": {"Another name, another description", "Description, note, direct, optional tools.", "desk"},
		"note":        {"A note to a tool's own description.", "Description, note, direct, optional tools.", "desk"},
		"bind":        {"Another name, another description", "Context that the model never sees", "desk"},
		"optional":    {"A missing tool that is optional is left out.", "Description, note, direct, optional tools.", "desk"},
		"direct":      {"Once, direct, artifacts.", "", "desk"},
		"needs":       {"Playbook.", "Playbook: a prerequisite", "researcher"},
		"in":          {"A state machine.", "State machine: each tool in its states", "order"},
		"to":          {"A state machine.", "State machine: each tool in its states", "order"},
		"once":        {"Once, direct, artifacts.", "One shot per loop: the exact text", "skills"},
		"artifact":    {"Once, direct, artifacts.", "An artifact is filtered and cut out of a result.", "researcher"},
	},
	"needs": {
		"all":      {"Playbook.", "unlockedByAll and unlockedByAny.", "researcher"},
		"any":      {"Playbook.", "unlockedByAll and unlockedByAny.", "researcher"},
		"called":   {"Groups and facades that need something", "called counts calls that failed, too.", "warehouse"},
		"artifact": {"Playbook.", "unlockedByArtifact", "researcher"},
		"state":    {"Playbook.", "unlockedByBlackboard", "translation"},
		"when":     {"Playbook.", "unlockedWhen: any condition.", "researcher"},
	},
	"group": {
		"group":    {"Groups: all, some by name and expression", "", "web"},
		"include":  {"Groups: all, some by name and expression", "", "chatbot"},
		"exclude":  {"A group without some of its tools", "", "chatbot"},
		"prefix":   {"Groups: all, some by name and expression", "", "chatbot"},
		"note":     {"Groups: all, some by name and expression", "", "chatbot"},
		"optional": {"A facade whose tools are all left out is left out.", "", "web"},
		"needs":    {"Groups and facades that need something", "", "warehouse"},
		"in":       {"Groups and facades that need something", "", "warehouse"},
	},
	"chain": {
		"chain":                {"Chains.", "Domain tools: declared at once", "users"},
		"tools":                {"Chains.", "Domain tools: declared at once", "users"},
		"bind":                 {"Chains.", "Domain tools: declared at once", "users"},
		"when":                 {"Chains.", "A predicate filters which objects contribute tools.", "admins"},
		"* with tools":         {"Chains.", "Tools for an object of any type.", "warehouse"},
		"* beside others":      {"Chains.", "Auto-discovery: a new object replaces all before.", "explorer"},
		"a list binds nothing": {"", "Domain tools: declared at once", "users"},
		"last wins":            {"", "Domain tools: declared at once", "users"},
		"free of needs, in":    {"", "Chained tools are not subject to unlock conditions", "warehouse"},
	},
	"unfold": {
		"unfold":      {"Facades.", "Facade: called, it is replaced by its tools", "database"},
		"description": {"Facades.", "Facade: called, it is replaced by its tools", "database"},
		"tools":       {"Facades.", "Facade: called, it is replaced by its tools", "database"},
		"notes":       {"Facades.", "Facade: called, it is replaced by its tools", "database"},
		"exclusive":   {"Facades.", "Exclusive: all others are hidden until the end.", "personality"},
		"by":          {"Facades.", "By category: an enum", "files"},
		"inputSchema": {"Facades.", "Dynamically configured: arguments go into descriptions", "cart"},
		"select":      {"Facades.", "Custom selection: a tool returns the entries.", "levels"},
		"needs":       {"A facade that needs something, and its tools with it.", "", "warehouse"},
		"in":          {"Groups and facades that need something", "", "warehouse"},
		"nested":      {"Facades.", "Nested facades.", "admin"},
		"empty":       {"A facade whose tools are all left out is left out.", "", "chatbot"},
		"in plans":    {"", "Facades in plans: one that waits for nothing", "chatbot"},
	},
	"search_tools": {
		"search_tools": {"What is built in.", "Tool search beside plans", "catalogue"},
		"group":        {"", "Tool search beside plans", "chatbot"},
		"limit":        {"", "Tool search beside plans", "catalogue"},
		"no limit":     {"", "A search without a limit finds eight.", ""},
	},
	"built in": {
		"execute_tool_plan": {"What is built in.", "Plans within calls", "catalogue"},
		"process":           {"What is built in.", "Process introspection.", "assistant"},
		"blackboard":        {"What is built in.", "Blackboard.", "assistant"},
		"progress":          {"What is built in.", "A word for the user: one passes", "assistant"},
		"communicate":       {"What is built in.", "A word for the user: one passes", "assistant"},
		"ask":               {"What is built in.", "", "team"},
	},
}

// tablesOfExamples are what else docs/agents.md has in tables: forms of answers, and guards. By what stands in a file of the
// example, and in which.
var tablesOfExamples = []struct{ example, file, text string }{
	{"calculator", "answers.json", `"steps"`}, {"refund", "answers.json", `"calls"`}, {"payment", "answers.json", `"_outputPath"`},
	{"commands", "answers.json", `"execution_commands"`}, {"commands", "answers.json", `"tool_command"`}, {"commands", "answers-nothing.json", `"response"`},
	{"calculator", "answers.json", `"output"`}, {"chatbot", "answers.json", `"It turns`}, {"chatbot", "answers.json", "```json"}, {"chatbot", "transcript.txt", "no good: /steps/1/tool"},
	{"calculator", "transcript-zero.txt", "dropped output"}, {"commands", "transcript.txt", "THE LAST ANSWER"}, {"commands", "transcript.txt", "action results"},
	{"limits", "agent.json", `"on": "input"`}, {"limits", "agent.json", `"on": "call"`}, {"limits", "agent.json", `"on": "result"`}, {"limits", "agent.json", `"on": "output"`},
	{"limits", "agent.json", `"else": "reject"`}, {"limits", "outcome-negative.json", `"rejected"`}, {"limits", "outcome-nobody.json", `"rejected"`},
	{"checked", "agent.json", `"else": "ask"`}, {"checked", "agent.json", `"on": "call", "tool"`}, {"approved", "agent.json", `"approval"`},
	{"trip", "transcript.txt", "ann says"}, {"offers", "transcript.txt", "asks for a new plan"}, {"concert", "agent.json", `"capture_nested"`}, {"briefing", "plan.json", `"agent"`},
}

// examplesOfSeeds are the agents of examples/agents that the seeds describe, beside those of rows: they run there, too.
var examplesOfSeeds = []string{"calculator", "researcher", "order", "users", "database", "files", "admin", "cart", "assistant", "refund", "trip", "payment", "translation", "outing", "commands"}

// TestEachRowOfTheEntriesIsPlayed: each form of entry, each of its fields and each half-sentence of the table of docs/agents.md
// has cases that play it, and where it concerns the loop an agent that runs. A field that is new needs its row.
func TestEachRowOfTheEntriesIsPlayed(t *testing.T) {
	t.Parallel()
	for form, fields := range map[string][]string{
		"tool": toolFields, "group": groupFields, "chain": chainFields, "unfold": unfoldFields, "search_tools": searchFields,
		"needs": {"all", "any", "called", "artifact", "state", "when"}, "built in": slices.Collect(maps.Keys(builtInEntries(t))),
	} {
		for _, field := range fields {
			require.Contains(t, tableOfEntries[form], field, "a row of %s", form)
		}
	}
	for _, x := range tablesOfExamples {
		require.Contains(t, fileOf(t, x.example, x.file), x.text, "%s of %s", x.file, x.example)
	}
	entries, scenarios := headings(t, "entries.txt"), headings(t, "scenarios.txt")
	for form, rows := range tableOfEntries {
		for row, x := range rows {
			require.NotEqual(t, played{}, x, "%s: %s", form, row)
			for heading, in := range map[string]string{x.entries: entries, x.scenarios: scenarios} {
				require.Contains(t, in, "\n# "+heading, "%s: %s", form, row)
			}
			require.True(t, x.example != "" || row == "no limit", "%s: %s runs nowhere", form, row)
			runs(t, x.example)
			if field := ofDefinition(form, row); x.example != "" && field != "" {
				require.Contains(t, fileOf(t, x.example, "agent.json"), `"`+field+`"`, "%s: %s of %s", form, row, x.example)
			}
		}
	}
	for _, name := range examplesOfSeeds {
		runs(t, name)
	}
}

// runs fails unless there is such an agent, with what a run of it was held against.
func runs(t *testing.T, example string) {
	t.Helper()
	for _, file := range []string{"transcript.txt", "outcome.json"} {
		if example != "" {
			require.FileExists(t, "../examples/agents/"+example+"/"+file)
		}
	}
}

// ofDefinition is what a definition has to have that plays a row; empty for one that is about more than a field.
func ofDefinition(form, row string) string {
	all := map[string][]string{"tool": toolFields[1:], "group": groupFields, "chain": chainFields, "unfold": unfoldFields, "needs": {"all", "any", "called", "artifact", "state", "when"}}
	if form != "built in" && !slices.Contains(all[form], row) || row == "execute_tool_plan" { // which a search brings along
		return ""
	}
	return row
}

// fileOf returns a file of an example.
func fileOf(t *testing.T, example, file string) string {
	t.Helper()
	raw, err := os.ReadFile("../examples/agents/" + example + "/" + file)
	require.NoError(t, err)
	return string(raw)
}

func headings(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	return "\n" + string(raw) + "\n# \n"
}

// builtInEntries are those that a definition names, and that are no tool.
func builtInEntries(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	d := define(t, `"tools": ["process", "blackboard", "progress", "communicate", "ask", "execute_tool_plan"]`)
	for _, e := range d.Entries() {
		if e.within == nil && e.Kind != KindTool && !strings.HasSuffix(e.Name, "_context") {
			all[e.Name] = true
		}
	}
	return all
}
