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
// examples/agents, which runs; "" where what the row says is all in this package.
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
		"called":   {"Groups and facades that need something", "called counts calls that failed, too.", ""},
		"artifact": {"Playbook.", "unlockedByArtifact", "researcher"},
		"state":    {"Playbook.", "unlockedByBlackboard", "translation"},
		"when":     {"Playbook.", "unlockedWhen: any condition.", "researcher"},
	},
	"group": {
		"group":    {"Groups: all, some by name and expression", "", "web"},
		"include":  {"Groups: all, some by name and expression", "", ""},
		"exclude":  {"A group without some of its tools", "", ""},
		"prefix":   {"Groups: all, some by name and expression", "", ""},
		"note":     {"Groups: all, some by name and expression", "", ""},
		"optional": {"A facade whose tools are all left out is left out.", "", ""},
		"needs":    {"Groups and facades that need something", "", ""},
		"in":       {"Groups and facades that need something", "", ""},
	},
	"chain": {
		"chain":                {"Chains.", "Domain tools: declared at once", "users"},
		"tools":                {"Chains.", "Domain tools: declared at once", "users"},
		"bind":                 {"Chains.", "Domain tools: declared at once", "users"},
		"when":                 {"Chains.", "A predicate filters which objects contribute tools.", "admins"},
		"* with tools":         {"Chains.", "Tools for an object of any type.", ""},
		"* beside others":      {"Chains.", "Auto-discovery: a new object replaces all before.", "explorer"},
		"a list binds nothing": {"", "Domain tools: declared at once", "users"},
		"last wins":            {"", "Domain tools: declared at once", "users"},
		"free of needs, in":    {"", "Chained tools are not subject to unlock conditions", ""},
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
		"needs":       {"A facade that needs something, and its tools with it.", "", ""},
		"in":          {"Groups and facades that need something", "", ""},
		"nested":      {"Facades.", "Nested facades.", "admin"},
		"empty":       {"A facade whose tools are all left out is left out.", "", ""},
		"in plans":    {"", "Facades in plans: one that waits for nothing", ""},
	},
	"search_tools": {
		"search_tools": {"What is built in.", "Tool search beside plans", "catalogue"},
		"group, limit": {"", "Tool search beside plans", ""},
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
	entries, scenarios := headings(t, "entries.txt"), headings(t, "scenarios.txt")
	for form, rows := range tableOfEntries {
		for row, x := range rows {
			require.NotEqual(t, played{}, x, "%s: %s", form, row)
			for heading, in := range map[string]string{x.entries: entries, x.scenarios: scenarios} {
				require.Contains(t, in, "\n# "+heading, "%s: %s", form, row)
			}
			runs(t, x.example)
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
