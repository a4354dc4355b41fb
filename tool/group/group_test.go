package group_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/tool/group"
)

func parse(t *testing.T, raw string) *group.Definition {
	t.Helper()
	d, err := group.Parse([]byte(raw))
	require.NoError(t, err, raw)
	return d
}

func live(names ...string) (all []group.Live) {
	for _, name := range names {
		all = append(all, group.Live{Name: name})
	}
	return all
}

func TestTheFirstByPriorityWithLiveToolsCounts(t *testing.T) {
	t.Parallel()
	s := group.NewSet([]*group.Definition{
		parse(t, `{"role":"web","provider":"b","tools":["fetch"],"priority":1}`),
		parse(t, `{"role":"web","provider":"docker","match":["web_*"],"exclude":["/delete/"],"priority":9}`),
		parse(t, `{"role":"web","provider":"a","tools":["curl","fetch"],"priority":1}`),
		parse(t, `{"role":"math","tools":["add"]}`),
	})
	require.Equal(t, []string{"math", "web"}, s.Roles())
	for _, c := range []struct {
		live     []string
		provider string
		tools    []string
	}{
		{[]string{"web_search", "fetch", "web_delete", "web_read"}, "docker", []string{"web_read", "web_search"}},
		{[]string{"web_delete", "fetch"}, "a", []string{"fetch"}},
		{[]string{"x"}, "docker", nil},
	} {
		d, tools := s.Resolve("web", live(c.live...))
		require.Equal(t, c.provider, d.Provider, c.live)
		require.Equal(t, c.tools, tools, c.live)
	}
	d, _ := s.Resolve("files", live("fetch"))
	require.Nil(t, d)
	require.True(t, parse(t, `{"role":"a","tools":["hint:readOnly"]}`).Holds("hint:readOnly", nil), "a name is a name")
}

// A tool needs what each group says that holds it, also one that does not count for its role.
func TestATooINeedsThePermissionsOfAllItsGroups(t *testing.T) {
	t.Parallel()
	yes := true
	s := group.NewSet([]*group.Definition{
		parse(t, `{"role":"web","provider":"weak","match":["*"],"exclude":["hint:readOnly"],"permissions":["net"]}`),
		parse(t, `{"role":"web","provider":"strong","tools":["rm"],"permissions":["host","net"],"priority":9}`),
		parse(t, `{"role":"free","tools":["rm","look"]}`),
	})
	require.Equal(t, []string{"host", "net"}, s.Permissions("rm", nil))
	require.Equal(t, []string{"net"}, s.Permissions("x", nil))
	require.Nil(t, s.Permissions("look", &tool.Annotations{ReadOnlyHint: &yes}))
	require.Len(t, s.Keeping(nil), 2)
	require.Equal(t, []string{"host"}, group.Permit([]string{"net"}, s).Lacks("rm", nil))
	require.Equal(t, []string{"host", "net"}, group.Permit(nil, s).Lacks("rm", nil))
	require.Empty(t, group.Permit([]string{"net", "host"}, s).Lacks("rm", nil))
	var all *group.Permits
	require.Nil(t, all.Lacks("rm", nil), "a run without a list may call everything")
}

// A group among a run's permissions bounds it to what a definition of the role holds, and opens what these need, but
// nothing that another group closes.
func TestAGroupAmongPermissionsBoundsARun(t *testing.T) {
	t.Parallel()
	s := group.NewSet([]*group.Definition{
		parse(t, `{"role":"web","tools":["fetch","both"],"permissions":["net"]}`),
		parse(t, `{"role":"web","provider":"other","tools":["other_fetch"],"priority":9}`),
		parse(t, `{"role":"host","tools":["both","rm"],"permissions":["host"]}`),
		parse(t, `{"role":"free","tools":["look"]}`),
	})
	for _, c := range []struct {
		has  string
		tool string
		want []string
	}{
		{"group:web", "fetch", nil}, {"group:web", "other_fetch", nil}, {"group:web", "both", []string{"host"}},
		{"group:web", "look", []string{group.NoGroup}}, {"group:web", "unheard_of", []string{group.NoGroup}},
		{"group:web", "rm", []string{"host", group.NoGroup}}, {"group:web,host", "both", nil},
		{"group:web,host", "rm", []string{group.NoGroup}}, {"group:web,group:host", "both", nil},
		{"group:web,group:free", "look", nil}, {"group:nobodys", "look", []string{group.NoGroup}}, {"net", "look", nil},
		{"net", "fetch", nil}, {"host", "fetch", []string{"net"}},
	} {
		p := group.Permit(strings.Split(c.has, ","), s)
		require.Equal(t, c.want, p.Lacks(c.tool, nil), "%s %s", c.has, c.tool)
		require.Equal(t, strings.Contains(c.has, "group:"), p.Bounded())
	}
	require.Len(t, s.Keeping([]string{"group:free"}), 3)
	require.Len(t, s.Keeping([]string{"net"}), 2)
	var all *group.Permits
	require.False(t, all.Bounded())
}

func TestAllThatIsWrongIsSaid(t *testing.T) {
	t.Parallel()
	for raw, says := range map[string]string{
		`{"role":"a b","provider":"/","permissions":["x y","none"],"match":["a*b","!c"],"exclude":["("],"tools":["a b"]}`: `/permissions/0: "x y"|/permissions/1: "none"|/tools/0: "a b"|/match/0: "a*b"|/match/1: "!c"|/provider: "/"|/role: "a b"`,
		`{"role":"a"}`: "/tools: the group holds none", `{"role":"a","tool":["x"]}`: `unknown field "tool"`, `[`: "can't be read",
		`{"role":"a","tools":["x"]}{}`: "more than one", `{"tools":["x"]}`: `/role: ""`, `{"role":"a","match":[""]}`: "/match/0",
		`{"role":"a","match":["/(/"]}`: "/match/0", `{"role":"a","match":["group:b"]}`: "/match/0", `{"role":"a","tools":["x"],"priority":"high"}`: "priority",
		`{"role":"a","tools":["` + strings.Repeat("x", group.MaxDefinition) + `"]}`: "bytes",
	} {
		_, err := group.Parse([]byte(raw))
		require.Equal(t, fault.InvalidValue, fault.CodeOf(err), raw)
		for part := range strings.SplitSeq(says, "|") {
			require.ErrorContains(t, err, part, raw)
		}
	}
}

// Resolving, compared with one that looks at every pair, over random groups and tools.
func TestResolvingAsANaiveOne(t *testing.T) {
	t.Parallel()
	names := []string{"a1", "a2", "b1", "b2", "c1"}
	pick := func() string { return names[rand.IntN(len(names))] }
	for range 3000 {
		var all []*group.Definition
		fits := map[*group.Definition]func(string) bool{}
		for i := range rand.IntN(5) {
			one, prefix, not := pick(), pick()[:1], pick()
			d := parse(t, fmt.Sprintf(`{"role":"r%d","provider":"p%d","tools":[%q],"match":["%s*"],"exclude":[%q],"priority":%d,"permissions":["q%d"]}`,
				rand.IntN(2), i, one, prefix, not, rand.IntN(3), rand.IntN(2)))
			all = append(all, d)
			fits[d] = func(s string) bool { return (s == one || strings.HasPrefix(s, prefix)) && s != not }
		}
		s := group.NewSet(all)
		var there []string
		for _, name := range names {
			if rand.IntN(2) == 0 {
				there = append(there, name)
			}
		}
		var want *group.Definition
		var tools []string
		better := func(a, b *group.Definition) bool {
			return b == nil || a.Priority > b.Priority || a.Priority == b.Priority && a.Provider < b.Provider
		}
		for _, needed := range []bool{true, false} {
			for _, d := range all {
				has := slices.ContainsFunc(there, fits[d])
				if d.Role == "r0" && (has || !needed) && len(tools) == 0 && better(d, want) {
					want = d
				}
			}
			if want != nil && needed {
				for _, name := range there {
					if fits[want](name) {
						tools = append(tools, name)
					}
				}
			}
			if want != nil {
				break
			}
		}
		d, got := s.Resolve("r0", live(there...))
		require.Equal(t, want, d)
		require.Equal(t, tools, got)
		for _, name := range names {
			need := map[string]bool{}
			for _, d := range all {
				if fits[d](name) {
					need[d.Permissions[0]] = true
				}
			}
			require.Len(t, s.Permissions(name, nil), len(need))
		}
	}
}

// A refusal says which tools are the reason, and what to do. Names of tools in none of the groups that a run is bound to are told it
// only where its plan has them.
func TestARefusalSaysWhichToolsAndWhatToDo(t *testing.T) {
	t.Parallel()
	s := group.NewSet([]*group.Definition{
		parse(t, `{"role":"web","tools":["look","agent","thinks","both"],"permissions":["net"]}`),
		parse(t, `{"role":"host","tools":["rm","both"],"permissions":["host","root"]}`), parse(t, `{"role":"free","tools":["x"]}`),
	})
	const permit, add = "submit the plan with what it needs (permissions), or leave the step out", "have what is missing added to one of these groups, submit the plan with one more that holds it (permissions), or leave the step out: "
	show := func(group string) string { return `"stepjet groups show ` + group + `" says what a group holds` }
	written := func(name string) bool { return name == "x" || name == "y" }
	for _, c := range []struct {
		has       []string
		call      group.Call
		why, hint string
	}{
		{nil, group.Call{Tool: "x", Reaches: live("x")}, "", ""},
		{nil, group.Call{Tool: "look", Reaches: live("look")}, `it takes the permission "net"`, permit},
		{nil, group.Call{Tool: "both", Reaches: live("both")}, `it takes the permissions "host", "net" and "root"`, permit},
		{nil, group.Call{Tool: "agent", Planner: "thinks", Reaches: live("rm", "agent", "thinks", "x")},
			`it takes the permission "net"; its planner "thinks" takes the permission "net"; "rm", which it can reach, takes the permissions "host" and "root"`, permit},
		{[]string{"net"}, group.Call{Tool: "agent", Planner: "thinks", Reaches: live("thinks", "rm", "agent")},
			`"rm", which it can reach, takes the permissions "host" and "root"`, permit},
		{[]string{"group:web"}, group.Call{Tool: "look", Reaches: live("look")}, "", ""},
		{[]string{"group:web"}, group.Call{Tool: "y", Reaches: live("y")}, `it is not in the group that the run is bound to, "web"`, add + show("web")},
		{[]string{"group:web"}, group.Call{Tool: "rm", Reaches: live("rm")},
			`it is not in the group that the run is bound to, "web"; it takes the permissions "host" and "root"`,
			"submit the plan with all that it needs (permissions, groups among them), or leave the step out: " + show("web")},
		{[]string{"group:web"}, group.Call{Tool: "agent", Planner: "p", Reaches: live("p", "agent", "look")}, `its planner is not in the group that the run is bound to, "web"`,
			add + show("web") + `, "stepjet agents show agent" what the agent names`},
		{[]string{"group:web", "group:free"}, group.Call{Tool: "z", Planner: "p", Reaches: live("p", "z", "rm", "y")},
			`it, its planner and 2 tools that it can reach are in none of the groups that the run is bound to, "web" and "free"`,
			add + show("NAME") + `, "stepjet agents show z" what the agent names`},
		{[]string{"group:web"}, group.Call{Tool: "=a", Planner: "y", Reaches: live("x", "y", "rm"), Written: written},
			`"y", "x" and a tool that it can reach are not in the group that the run is bound to, "web"`, add + show("web")},
		{[]string{"group:web"}, group.Call{Tool: "agent", Planner: "thinks", Reaches: live("agent", "both")},
			`"both", which it can reach, takes the permissions "host" and "root"`, permit},
	} {
		no := group.Permit(c.has, s).Refuse(c.call)
		if c.why == "" {
			require.Nil(t, no, "%s %v", c.has, c.call)
			continue
		}
		unseen := strings.HasPrefix(c.why, "it is not in") || strings.HasPrefix(c.why, "it, its")
		require.Equal(t, &group.Refusal{Why: c.why, Hint: c.hint, Unseen: unseen}, no, "%s %v", c.has, c.call)
	}
	many := group.Call{Tool: "a"}
	for i := range 9 {
		many.Reaches = append(many.Reaches, live(fmt.Sprint("w", i))...)
	}
	many.Written = func(string) bool { return true }
	require.Equal(t, `"w0", "w1", "w2" and 6 tools that it can reach are not in the group that the run is bound to, "web"`, group.Permit([]string{"group:web"}, s).Refuse(many).Why)
	all := group.NewSet([]*group.Definition{parse(t, `{"role":"w","match":["w*"],"permissions":["p1","p2","p3","p4"]}`)})
	no := group.Permit(nil, all).Refuse(many)
	require.Equal(t, 3, strings.Count(no.Why, `, which it can reach, takes the permissions "p1", "p2", "p3" and 1 more`), no.Why)
	require.True(t, strings.HasSuffix(no.Why, "; 6 more that it can reach take permissions"), no.Why)
	var everything *group.Permits
	require.Nil(t, everything.Refuse(many), "a run without a list may call everything")
}
