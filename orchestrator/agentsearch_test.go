package orchestrator_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/orchestrator/agents"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// hostAll hosts tools that return the text of their name.
func (s *system) hostAll(names ...string) {
	for _, name := range names {
		s.host(name, nil, func(context.Context, json.RawMessage) (worker.Output, error) {
			return worker.Output{Body: []byte(`"` + name + `"`)}, nil
		})
	}
}

// frozen reads the start of a run.
func (s *system) frozen(run string) *wire.Start {
	s.t.Helper()
	doc := s.history("default", run)
	e, err := s.store.Ledger.Read(ctx(s.t), subjects.StartRecord(subjects.NewRun("default", run), doc.Generation, 1))
	require.NoError(s.t, err)
	start, _, err := wire.ParseStart(e.Header, e.Data)
	require.NoError(s.t, err)
	return start
}

// TestAnAgentFindsTools: what a search finds can be called from the next round on. It looks through the tools of the run's
// start, whoever owns the run by then, and finds no agent.
func TestAnAgentFindsTools(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.hostAll("mail.send", "mail.draft")
	s.apply("mail.both", `,"description":"Drafts and sends mail."`, `{"id":"x","tool":"mail.draft"},{"id":"y","tool":"mail.send","depends_on":["x"]}`, `"$ref:y"`)
	s.agent("mail.agent", "", `{"planner":{"tool":"fail"},"tools":["mail.send"]}`)
	s.apply("mail.indirect", "", `{"id":"x","tool":"mail.agent"}`, `"$ref:x"`)
	x := s.plays("planner",
		`{"steps":[{"id":"early","tool":"mail.send"}]}`,
		`{"steps":[{"id":"find","tool":"search_tools","arguments":{"query":"mail"}}]}`,
		`{"steps":[{"id":"send","tool":"mail.both"}],"output":"$ref:send"}`)
	x.before = func(round int) {
		if round == 1 { // another owner, who sees another registry
			s.hostAll("mail.new")
			s.orchestrator()
			s.leave()
		}
	}
	s.agent("seeker", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["search_tools"]}`)
	o := s.run(`{"steps":[{"id":"a","tool":"seeker"}]}`, "finds")
	require.JSONEq(t, `"mail.send"`, result(t, o, "a"), "%s", o.JSON())
	require.Contains(t, string(x.asked[1]["rounds"]), `there is no tool \"mail.send\"`)
	var changes struct{ Added []tool.Definition }
	require.NoError(t, json.Unmarshal(x.asked[2]["tool_changes"], &changes))
	var names []string
	for _, d := range changes.Added {
		names = append(names, d.Name)
	}
	require.Equal(t, []string{"mail.both", "mail.draft", "mail.send"}, names)
	require.NotContains(t, s.frozen("finds").Search[""], "mail.indirect")
	require.Equal(t, []int{0, 1, 2}, x.times())
}

// TestASearchKeepsToPermissions: who may not call a tool does not find it, and may call who searches.
func TestASearchKeepsToPermissions(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.hostAll("mail.send", "mail.draft", "post.send")
	s.apply("mail.both", "", `{"id":"x","tool":"mail.draft"},{"id":"y","tool":"mail.send"}`, `"$ref:y"`)
	s.group(`{"role":"out","tools":["mail.send"],"permissions":["internet"]}`)
	s.group(`{"role":"mail","match":["mail.*"]}`)
	x := s.plays("planner", `{"steps":[{"id":"find","tool":"search_tools","arguments":{"query":"mail send"}}],"output":"$ref:find"}`)
	s.agent("seeker", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":[{"search_tools":{"group":"mail","limit":5}}]}`)
	found := func(o *outcome.Outcome) (names []string) {
		var hits []struct{ Name string }
		require.NoError(t, json.Unmarshal([]byte(result(t, o, "a")), &hits), "%s", o.JSON())
		for _, h := range hits {
			names = append(names, h.Name)
		}
		return names
	}
	const plan = `{"steps":[{"id":"a","tool":"seeker"}]}`
	require.ElementsMatch(t, []string{"mail.send", "mail.draft", "mail.both"}, found(s.run(plan, "free")))
	require.ElementsMatch(t, []string{"mail.send", "mail.draft", "mail.both"}, found(s.permit(plan, "may", "internet")))
	require.Equal(t, []string{"mail.draft"}, found(s.permit(plan, "may-not")))
	require.Len(t, x.times(), 3)
}

// TestAnAgentHasTheToolsOfGroups as they were when its run began, under the names that its entry says.
func TestAnAgentHasTheToolsOfGroups(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.plays("planner",
		`{"steps":[{"id":"n","tool":"text_length","arguments":{"text":"abc"}},{"id":"e","tool":"echo","arguments":{}}]}`,
		`{"steps":[{"id":"n","tool":"text_length","arguments":{"text":"abc"}}],"output":"$ref:n"}`)
	const definition = `{"planner":{"tool":"planner","mode":"plan"},"tools":[{"group":"sums","exclude":["fail"],"prefix":"text_"}]}`
	_, err := s.client.ApplyTemplate(ctx(t), []byte(`{"name":"adder","agent":`+definition+`}`))
	require.Equal(t, "/agent/tools/0/group", tool.FlawsOf(err)[0].Path)
	s.group(`{"role":"sums","tools":["length","fail"]}`)
	s.group(`{"role":"sums","provider":"none","tools":["gone"],"priority":5}`)
	s.agent("adder", "", definition)
	x.before = func(round int) {
		if round == 0 {
			for _, provider := range []string{"", "none"} {
				if err := client.GroupsOf(s.client).Remove(ctx(t), "sums", provider); err != nil {
					t.Error(err)
				}
			}
			s.orchestrator()
			s.leave()
		}
	}
	o := s.run(`{"steps":[{"id":"a","tool":"adder"}]}`, "groups")
	require.JSONEq(t, `3`, result(t, o, "a"), "%s", o.JSON())
	require.Contains(t, string(x.asked[1]["rounds"]), `there is no tool \"echo\"","hint":"there are: text_length"`)
	require.Equal(t, map[string][]string{"sums": {"fail", "length"}}, s.frozen("groups").Groups)
	o = s.run(`{"steps":[{"id":"a","tool":"adder"}]}`, "without")
	require.Equal(t, outcome.Rejected, o.Status)
	require.Contains(t, o.Problems[0].Message, `the agent "adder" can't run: /agent/tools/0/group: there is no group "sums"`)
}

func TestASearchThatIsTooWide(t *testing.T) {
	t.Parallel()
	require.Nil(t, agents.TooWide(agents.MostSearched))
	require.Contains(t, agents.TooWide(agents.MostSearched+1).Flaw, `{"search_tools": {"group": "web"}}`)
}

// TestAFacadeWhoseToolsAreSelected by a tool, with what the facade was called with: they are there from the next round on. An
// agent is selected by nobody, nor what came after the run began.
func TestAFacadeWhoseToolsAreSelected(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.hostAll("mail.send", "mail.draft")
	s.agent("mail.agent", "", `{"planner":{"tool":"fail"}}`)
	s.host("pick", nil, func(_ context.Context, args json.RawMessage) (worker.Output, error) {
		var of struct{ Of []string }
		err := json.Unmarshal(args, &of)
		entries, _ := json.Marshal(append([]any{map[string]any{"tool": "mail.draft", "as": "draft", "needs": map[string]any{"all": []string{"mail.send"}}}}, toAny(of.Of)...))
		return worker.Output{Body: entries}, err
	})
	open := func(of string) string { return `{"steps":[{"id":"o","tool":"mail","arguments":{"of":` + of + `}}]}` }
	x := s.plays("planner", open(`["mail.agent"]`), open(`["mail.new"]`), open(`["mail.send"]`),
		`{"steps":[{"id":"d","tool":"draft"}]}`,
		`{"steps":[{"id":"s","tool":"mail.send"},{"id":"d","tool":"draft","depends_on":["s"]}],"output":{"s":"$ref:s","d":"$ref:d"}}`)
	x.before = func(round int) {
		if round == 1 || round == 3 {
			s.hostAll("mail.new")
			s.orchestrator()
			s.leave()
		}
	}
	s.agent("selects", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":[{"unfold":"mail","description":"Mail.","select":"pick",
		"inputSchema":{"type":"object","properties":{"of":{"type":"array"}},"required":["of"]}}]}`)
	o := s.run(`{"steps":[{"id":"a","tool":"selects"},{"id":"b","tool":"mail.agent","if":"$status:a == 'failed'"}]}`, "selects")
	require.JSONEq(t, `{"s":"mail.send","d":"mail.draft"}`, result(t, o, "a"), "%s", o.JSON())
	rounds := string(x.asked[3]["rounds"])
	require.Contains(t, rounds, `"note":"'mail' was not opened: what 'pick' selected for it can't be used: /1: there is no tool \"mail.agent\""`)
	require.Contains(t, rounds, `can't be used: /1: there is no tool \"mail.new\""`)
	require.Contains(t, string(x.asked[3]["tool_changes"]), `"name":"draft"`)
	require.Contains(t, string(x.asked[3]["locked"]), `'draft' can't be called yet`)
	require.Contains(t, string(x.asked[4]["rounds"]), `"code":"locked"`)
}

func toAny(texts []string) (all []any) {
	for _, x := range texts {
		all = append(all, x)
	}
	return all
}
