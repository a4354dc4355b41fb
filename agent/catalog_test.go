package agent

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

var update = flag.Bool("update", false, "write testdata anew")

// tools are a catalog of the tests: any name of a list, each with a schema of the arguments that a test says, and groups.
type tools struct {
	names  []string
	groups map[string][]string
}

// arguments are those of some tools; others take anything.
var arguments = map[string]string{
	"update_email": `{"type":"object","properties":{"user_id":{"type":"string"},"email":{"type":"string"}},"required":["user_id","email"]}`,
	"add_item":     `{"type":"object","properties":{"cart":{"type":"string"},"item":{"type":"string"}},"required":["cart","item"]}`,
	"delete_user":  `{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`,
}

func (c tools) Lookup(name string) (*tool.Definition, bool) {
	if !slices.Contains(c.names, name) {
		return nil, false
	}
	d := &tool.Definition{Name: name, Description: "Does " + name + ".", InputSchema: json.RawMessage(arguments[name])}
	if strings.Contains(name, "delete") {
		yes := true
		d.Annotations = &tool.Annotations{DestructiveHint: &yes}
	}
	return d, true
}

func (c tools) Names() []string { return slices.Sorted(slices.Values(c.names)) }

func (c tools) Group(role string) ([]string, bool) {
	g, ok := c.groups[role]
	return slices.Sorted(slices.Values(g)), ok
}

func (c tools) Groups() (all []string) {
	for role := range c.groups {
		all = append(all, role)
	}
	slices.Sort(all)
	return all
}

func (c tools) Searchable(role string) []string {
	if role == "" {
		return c.Names()
	}
	all, _ := c.Group(role)
	return all
}

// everything is the catalog that the tables are read with.
var everything = tools{
	names: strings.Fields(`search fetch analyze summarize report process_it format act finalize add_item confirm ship deliver review status help
		get_user search_user update_email get_profile query_table insert_record delete_record read_file list_dir write_file delete_file about
		create_user delete_user update_config backup grant revoke formal casual skill model script judge summary connect
		web_search web_fetch web_delete view_cart checkout add multiply divide order_get order_cancel move_on`),
	groups: map[string][]string{"web": {"web_search", "web_fetch", "web_delete"}, "empty": {}},
}

// define reads a definition with these members of an agent, a planner included.
func define(t testing.TB, members string) *Definition {
	t.Helper()
	d, r := Parse(definition(members), everything)
	require.Empty(t, r.Problems)
	return d
}

// definition writes a definition with these members of an agent, and a planner where they have none.
func definition(members string) []byte {
	if !strings.Contains(members, `"planner"`) {
		members = strings.TrimSuffix(`"planner": {"tool": "model"}, `+members, ", ")
	}
	return fmt.Appendf(nil, `{"name": "helper", "description": "Helps.", "agent": {%s}}`, members)
}

// golden runs each case of a file through a function, and compares what it comes to. A case is a comment of lines that
// begin with "#", an input, "----", and what it comes to.
func golden(t *testing.T, file string, run func(in string) string) {
	t.Helper()
	path := "testdata/" + file
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	var out strings.Builder
	cases := strings.Split(strings.TrimSpace(string(raw)), "\n\n")
	for _, c := range cases {
		head, want, _ := strings.Cut(c, "\n----")
		comment, in := "", head
		for strings.HasPrefix(in, "#") {
			line, rest, _ := strings.Cut(in, "\n")
			comment, in = comment+line+"\n", rest
		}
		got := strings.TrimSpace(run(in))
		if got == "" {
			got = "fine"
		}
		if !*update {
			require.Equal(t, strings.TrimSpace(want), got, "%s%s", comment, in)
		}
		fmt.Fprintf(&out, "%s%s\n----\n%s\n\n", comment, in, got)
	}
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(strings.TrimSpace(out.String())+"\n"), 0o600))
	}
}

func problems(r plan.Report) string {
	var b strings.Builder
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "%s %s: %s", p.Code, p.Path, p.Message)
		if p.Hint != "" {
			fmt.Fprintf(&b, " | %s", p.Hint)
		}
		b.WriteString("\n")
	}
	for _, p := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s %s: %s | %s\n", p.Code, p.Path, p.Message, p.Hint)
	}
	return b.String()
}

// TestReadingOnEnds: a part of an object is no longer than a planner is shown whole, and the next one begins where it ends.
func TestReadingOnEnds(t *testing.T) {
	t.Parallel()
	v := quoteJSON(strings.Repeat("\"ä\n<€", 300))
	a := Artifact{Name: "Doc", Type: "Doc", Value: v}
	text := ""
	for from := 0; from < len(v); {
		raw, err := a.part("", from, 0, 256)
		require.Nil(t, err)
		require.LessOrEqual(t, len(raw), 256)
		var part struct {
			Text     string
			From, To int
		}
		require.NoError(t, json.Unmarshal(raw, &part))
		require.Greater(t, part.To, from)
		text, from = text+part.Text, part.To
	}
	require.Equal(t, string(v), text, "nothing is missing")
}
