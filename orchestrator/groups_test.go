package orchestrator_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// group applies a group of tools.
func (s *system) group(definition string) {
	s.t.Helper()
	_, err := client.GroupsOf(s.client).Apply(ctx(s.t), []byte(definition))
	require.NoError(s.t, err)
}

// permit submits a plan with permissions, and waits for its outcome.
func (s *system) permit(plan, run string, permissions ...string) *outcome.Outcome {
	s.t.Helper()
	o, err := s.client.Run(ctx(s.t), []byte(plan), client.SubmitOptions{Run: run, Permissions: append([]string{}, permissions...)})
	require.NoError(s.t, err)
	return o
}

// A run that was submitted with permissions calls no tool that takes another one, in whatever part of its plan; one
// without a list calls every tool. The verdict says where, and what is missing.
func TestAToolThatTakesAnotherPermissionIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.apply("inner", "", `{"id":"x","tool":"length","arguments":{"text":"x"}}`, `"$ref:x"`)
	s.group(`{"role":"web","tools":["echo"],"permissions":["internet"]}`)
	s.group(`{"role":"sums","match":["l*"],"permissions":["host","internet"]}`)
	const plan = `{"steps":[{"id":"free","value":1},{"id":"a","tool":"echo","arguments":{"n":1}},
		{"id":"b","plan":{"steps":[{"id":"c","tool":"length","arguments":{"text":"x"}}]}},{"id":"d","tool":"inner"},
		{"id":"e","tool":"big","arguments":{"bytes":3}}]}`
	o := s.run(plan, "everything")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	o = s.permit(plan, "enough", "host", "internet", "unused")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())

	o = s.permit(plan, "some", "internet")
	require.Equal(t, outcome.Rejected, o.Status)
	require.Equal(t, []fault.Code{fault.NotPermitted, fault.NotPermitted}, codes(o.Problems))
	require.Equal(t, []string{"/steps/2/plan/steps/0/tool", "/steps/3/tool"}, []string{o.Problems[0].Path, o.Problems[1].Path})
	for _, p := range o.Problems {
		require.Contains(t, p.Message, "host")
		require.NotContains(t, p.Message, "internet")
		require.NotEmpty(t, p.Hint)
	}
	o = s.permit(plan, "none")
	require.Len(t, o.Problems, 3)
	o = s.permit(`{"steps":[{"id":"e","tool":"big","arguments":{"bytes":3}}]}`, "needs-none")
	require.Equal(t, outcome.Succeeded, o.Status, "what is in no group takes no permission")

	// The rejection left its id free, and other permissions are another question.
	o = s.permit(plan, "some", "internet", "host")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	doc, err := s.client.Get(ctx(t), "some")
	require.NoError(t, err)
	require.Equal(t, []string{"host", "internet"}, doc.Permissions)
	e, err := s.store.Ledger.Read(ctx(t), subjects.StartRecord(subjects.NewRun("default", "some"), doc.Generation, 1))
	require.NoError(t, err)
	start, _, err := wire.ParseStart(e.Header, e.Data)
	require.NoError(t, err)
	require.Contains(t, start.Needs, wire.Permissions)
	doc, err = s.client.Get(ctx(t), "everything")
	require.NoError(t, err)
	require.Nil(t, doc.Permissions)
	e, err = s.store.Ledger.Read(ctx(t), subjects.StartRecord(subjects.NewRun("default", "everything"), doc.Generation, 1))
	require.NoError(t, err)
	require.NotContains(t, string(e.Data), "permi", "who uses none pays nothing")
}

// What a run may call was frozen at its start: an amendment is held against that, whatever became of the groups, and by
// every owner.
func TestAmendmentsKeepToTheRunsPermissions(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.group(`{"role":"web","tools":["echo"],"permissions":["internet"]}`)
	s.group(`{"role":"sums","tools":["length"],"permissions":["host"]}`)
	run, err := s.client.Submit(ctx(t), []byte(`{"open":true,"steps":[{"id":"a","tool":"echo","arguments":{"n":1}}]}`),
		client.SubmitOptions{Run: "open", Permissions: []string{"internet"}})
	require.NoError(t, err)
	add := func(revision int, step string) error {
		_, err := s.client.Amend(ctx(t), "open", client.Amendment{Revision: revision, Add: raws(step), Close: revision == 1})
		return err
	}
	require.NoError(t, add(0, `{"id":"b","tool":"echo","arguments":{"n":2}}`))
	require.NoError(t, client.GroupsOf(s.client).Remove(ctx(t), "sums", ""))
	s.group(`{"role":"web","tools":["big"],"permissions":["host"]}`)
	refused := func() {
		t.Helper()
		err = add(1, `{"id":"c","tool":"length","arguments":{"text":"x"}}`)
		require.ErrorContains(t, err, "host")
		require.Contains(t, string(fault.As(err).Details), string(fault.NotPermitted))
	}
	refused()
	s.orchestrator() // beside the first, which ends
	s.leave()
	refused()
	require.NoError(t, add(1, `{"id":"c","tool":"big","arguments":{"bytes":3}}`), "in no group when the run began")
	o, err := run.Wait(ctx(t))
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
}

// A retry may what the run before might, unless it is told otherwise.
func TestARetryHasThePermissionsOfItsRun(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.group(`{"role":"bad","tools":["fail"],"permissions":["host"]}`)
	const plan = `{"steps":[{"id":"a","tool":"fail","retry":{"max_attempts":1}}]}`
	require.Equal(t, outcome.Failed, s.permit(plan, "first", "host").Status)
	r, err := s.client.Retry(ctx(t), "first", client.RetryOptions{})
	require.NoError(t, err)
	require.Equal(t, outcome.Failed, s.wait(r).Status)
	doc, err := s.client.Get(ctx(t), "first.2")
	require.NoError(t, err)
	require.Equal(t, []string{"host"}, doc.Permissions)
	r, err = s.client.Retry(ctx(t), "first", client.RetryOptions{Run: "less", Permissions: []string{}})
	require.NoError(t, err)
	require.Contains(t, codes(s.wait(r).Problems), fault.NotPermitted)
}

// The call of a dead letter may be made again with what its run might, and no more: also where that was nothing that takes
// a permission. A dry run says what a run with the same permissions would be told.
func TestDeadLettersAndDryRunsKeepToPermissions(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.plays("planner", `{"output":1}`)
	s.group(`{"role":"web","tools":["echo"],"permissions":["internet"]}`)
	s.agent("reaches", "", `{"planner":{"tool":"planner"},"tools":[{"unfold":"f","description":"F.","tools":["echo"]}]}`)
	s.agent("above", "", `{"planner":{"tool":"planner"},"tools":["reaches"]}`)
	s.apply("called", "", `{"id":"i","tool":"echo"}`, `"$ref:i"`)
	s.agent("by-template", "", `{"planner":{"tool":"planner"},"tools":["called"]}`)
	for _, call := range []string{"echo", "called", "reaches", "above", "by-template", "planner", "length"} {
		plan := `{"steps":[{"id":"a","tool":"` + call + `","arguments":{"text":"x"}}]}`
		for _, permissions := range [][]string{nil, {}, {"internet"}} {
			d, err := s.client.DryRun(ctx(t), []byte(plan), client.DryRunPermissions(permissions))
			require.NoError(t, err)
			refused := permissions != nil && len(permissions) == 0 && call != "planner" && call != "length"
			require.Equal(t, refused, len(d.Problems) > 0, "%s %v: %v", call, permissions, d.Problems)
			if !refused {
				continue
			}
			o := s.permit(plan, "dry-"+call)
			require.Equal(t, o.Problems, d.Problems, call)
		}
	}

	const plan = `{"steps":[{"id":"a","tool":"fail","retry":{"max_attempts":1}}]}`
	for run, permissions := range map[string][]string{"all": nil, "none": {}, "host": {"host"}} {
		o, err := s.client.Run(ctx(t), []byte(plan), client.SubmitOptions{Run: run, Permissions: permissions})
		require.NoError(t, err)
		require.Equal(t, outcome.Failed, o.Status)
	}
	s.group(`{"role":"bad","tools":["fail"],"permissions":["host"]}`)
	for run, want := range map[string]outcome.RunStatus{"all": outcome.Failed, "none": outcome.Rejected, "host": outcome.Failed} {
		letters, err := s.client.DeadLetters(ctx(t), client.DeadOptions{Run: run})
		require.NoError(t, err)
		require.Len(t, letters, 1)
		r, err := s.client.RetryDead(ctx(t), letters[0], client.RetryDeadOptions{})
		require.NoError(t, err)
		require.Equal(t, want, s.wait(r).Status, run)
		if want == outcome.Rejected {
			r, err = s.client.RetryDead(ctx(t), letters[0], client.RetryDeadOptions{Permissions: []string{"host"}})
			require.NoError(t, err)
			require.Equal(t, outcome.Failed, s.wait(r).Status)
		}
	}
}

func TestGroupsAreAppliedListedAndRemoved(t *testing.T) {
	t.Parallel()
	s := start(t)
	set, err := client.GroupsOf(s.client).All(ctx(t))
	require.NoError(t, err)
	require.Empty(t, set.All())
	s.group(`{"role":"web","provider":"docker","match":["web_*"],"priority":2}`)
	s.group(`{"role":"web","tools":["fetch"],"permissions":["internet"]}`)
	s.group(`{"role":"web","tools":["fetch"],"permissions":["net"]}`)
	set, err = client.GroupsOf(s.client).All(ctx(t))
	require.NoError(t, err)
	require.Len(t, set.All(), 2)
	require.Equal(t, "docker", set.All()[0].Provider)
	require.Equal(t, []string{"net"}, set.All()[1].Permissions)
	_, err = client.GroupsOf(s.client).Apply(ctx(t), []byte(`{"role":"a b"}`))
	require.Equal(t, fault.InvalidValue, fault.CodeOf(err))
	require.NoError(t, client.GroupsOf(s.client).Remove(ctx(t), "web", "docker"))
	require.Equal(t, fault.NotFound, fault.CodeOf(client.GroupsOf(s.client).Remove(ctx(t), "web", "docker")))
	require.Equal(t, fault.InvalidValue, fault.CodeOf(client.GroupsOf(s.client).Remove(ctx(t), "*", ">")))
	set, err = client.GroupsOf(s.client).All(ctx(t))
	require.NoError(t, err)
	require.Equal(t, []string{"web"}, set.Roles())
}

// What an agent calls is its planner's choice, so a run without a permission calls no agent that can reach a tool which
// takes it: by itself, by a template, by another agent, or as its planner.
func TestPermissionsHoldForWhatAnAgentCanReach(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.plays("planner", `{"steps":[{"id":"e","tool":"echo","arguments":{"n":1}}],"output":"$ref:e.n"}`, `{"output":"no"}`)
	s.plays("guarded", `{"output":1}`)
	s.group(`{"role":"web","tools":["echo"],"permissions":["internet"]}`)
	s.group(`{"role":"thinking","tools":["guarded"],"permissions":["models"]}`)
	s.agent("reaches", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["echo"]}`)
	s.apply("called", "", `{"id":"i","tool":"echo"}`, `"$ref:i"`)
	s.agent("by-template", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["called"]}`)
	s.agent("by-agent", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["reaches","execute_tool_plan"]}`)
	s.agent("by-planner", "", `{"planner":{"tool":"guarded","mode":"plan"},"tools":["length"]}`)
	for name, takes := range map[string]string{"reaches": "internet", "by-template": "internet", "by-agent": "internet", "by-planner": "models"} {
		call := `{"steps":[{"id":"a","tool":"` + name + `"}]}`
		for _, permissions := range [][]string{nil, {"host"}} {
			o := s.permit(call, "refused-"+name, permissions...)
			require.Equal(t, outcome.Rejected, o.Status, "%s %v: %s", name, permissions, o.JSON())
			require.Equal(t, []fault.Code{fault.NotPermitted}, codes(o.Problems))
			require.Contains(t, o.Problems[0].Message, takes)
		}
		o := s.permit(call, "enough-"+name, takes)
		require.Equal(t, outcome.Succeeded, o.Status, "%s: %s", name, o.JSON())
	}
}

// A run that was submitted with groups among its permissions calls the tools of these alone, wherever its plan calls:
// in sub-plans, templates, agents and what they search for, and in amendments, by whatever owner.
func TestARunIsBoundToGroups(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.plays("planner", `{"output":"no"}`)
	s.plays("seeking", `{"steps":[{"id":"find","tool":"search_tools","arguments":{"query":"echo length big"}}],"output":"$ref:find"}`)
	s.apply("within", "", `{"id":"i","tool":"echo","arguments":{"n":1}}`, `"$ref:i"`)
	s.apply("without", "", `{"id":"i","tool":"length","arguments":{"text":"x"}}`, `"$ref:i"`)
	s.agent("keeps-to-it", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["echo"]}`)
	s.agent("reaches-out", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["echo","length"]}`)
	s.agent("seeks", "", `{"planner":{"tool":"seeking","mode":"plan"},"tools":[{"search_tools":{"limit":9}}]}`)
	s.plays("outside", `{"output":"no"}`)
	s.apply("with-an-agent", "", `{"id":"i","agent":{"planner":{"tool":"planner","mode":"plan"},"tools":["echo","length"]}}`, `"$ref:i"`)
	s.agent("thinks-outside", "", `{"planner":{"tool":"outside","mode":"plan"},"tools":["echo"]}`)
	s.group(`{"role":"mine","tools":["echo"],"match":["with*","keeps*","reaches*","thinks*","seeks","planner","seeking"],"permissions":["internet"]}`)
	s.group(`{"role":"sums","tools":["length"]}`)
	const bound, inline = ` is not in the group that the run is bound to, "mine"`, `"agent":{"planner":{"tool":"planner","mode":"plan"},"tools":`
	for step, refused := range map[string][2]string{
		`"tool":"echo","arguments":{"n":1}`:        {},
		`"value":1`:                                {},
		`"tool":"within"`:                          {},
		`"tool":"keeps-to-it"`:                     {},
		inline + `["echo"]}`:                       {},
		`"tool":"length","arguments":{"text":"x"}`: {"/steps/0/tool", "it" + bound},
		`"tool":"big","arguments":{"bytes":3}`:     {"/steps/0/tool", "it" + bound},
		`"plan":{"steps":[{"id":"c","tool":"length","arguments":{"text":"x"}}]}`: {"/steps/0/plan/steps/0/tool", "it" + bound},
		`"tool":"without"`:                   {"/steps/0/tool", `/steps/0/tool: the run may not call the tool of this step: it` + bound},
		`"tool":"reaches-out"`:               {"/steps/0/tool", `"reaches-out": a tool that it can reach` + bound},
		`"tool":"with-an-agent"`:             {"/steps/0/tool", `/steps/0/agent: the run may not call the agent: a tool that it can reach` + bound},
		`"tool":"thinks-outside"`:            {"/steps/0/tool", `"thinks-outside": its planner` + bound},
		inline + `["echo","length"]}`:        {"/steps/0/agent", `the agent: "length"` + bound},
		inline + `["reaches-out"]}`:          {"/steps/0/agent", `the agent: a tool that it can reach` + bound},
		inline + `["length","reaches-out"]}`: {"/steps/0/agent", `the agent: "length"` + bound},
	} {
		at, says := refused[0], refused[1]
		plan := `{"steps":[{"id":"a",` + step + `}]}`
		o := s.permit(plan, "", "group:mine")
		d, err := s.client.DryRun(ctx(t), []byte(plan), client.DryRunPermissions([]string{"group:mine"}))
		require.NoError(t, err)
		require.Equal(t, o.Problems, append([]fault.Problem(nil), d.Problems...), "a dry run says the same: %s", step)
		if at == "" {
			require.Equal(t, outcome.Succeeded, o.Status, "%s: %s", step, o.JSON())
			continue
		}
		require.Equal(t, outcome.Rejected, o.Status, "%s: %s", step, o.JSON())
		require.Equal(t, []fault.Code{fault.NotPermitted}, codes(o.Problems), step)
		require.Equal(t, at, o.Problems[0].Path)
		require.Contains(t, o.Problems[0].Message, says)
		require.Contains(t, o.Problems[0].Hint, `"stepjet groups show mine"`)
		if !strings.Contains(step, `"length"`) {
			require.NotContains(t, string(o.JSON()), "length", "no other tool is named")
		}
	}
	o := s.permit(`{"steps":[{"id":"a","tool":"nobody"}]}`, "", "group:mine")
	require.Contains(t, string(o.JSON()), "unknown_tool")
	require.NotContains(t, string(o.JSON()), "length", "no other tool is named")
	o = s.permit(`{"steps":[{"id":"a","tool":"length","arguments":{"text":"x"}}]}`, "", "group:mine", "group:sums")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	o = s.permit(`{"steps":[{"id":"a","tool":"echo","arguments":{"n":1}}]}`, "", "group:nobodys")
	require.Equal(t, outcome.Rejected, o.Status, "%s", o.JSON())
	o = s.permit(`{"steps":[{"id":"a","tool":"seeks"}]}`, "", "group:mine")
	require.Contains(t, result(t, o, "a"), `"echo"`)
	require.NotContains(t, result(t, o, "a"), `"length"`)
}

// What counts of the groups was frozen when the run began: an amendment is held against that, by every owner.
func TestAmendmentsKeepToTheRunsGroups(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.group(`{"role":"mine","tools":["echo"]}`)
	run, err := s.client.Submit(ctx(t), []byte(`{"open":true,"steps":[{"id":"a","value":1}]}`),
		client.SubmitOptions{Run: "bound", Permissions: []string{"group:mine"}})
	require.NoError(t, err)
	add := func(revision int, step string) error {
		_, err := s.client.Amend(ctx(t), "bound", client.Amendment{Revision: revision, Add: raws(step), Close: revision == 1})
		return err
	}
	require.NoError(t, add(0, `{"id":"first","tool":"echo","arguments":{"n":1}}`)) // it has begun
	s.group(`{"role":"mine","tools":["length"]}`)
	s.orchestrator()
	s.leave()
	err = add(1, `{"id":"b","tool":"length","arguments":{"text":"x"}}`)
	require.ErrorContains(t, err, `it is not in the group that the run is bound to, "mine"`)
	require.NoError(t, add(1, `{"id":"b","tool":"echo","arguments":{"n":1}}`))
	o, err := run.Wait(ctx(t))
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	doc, err := s.client.Get(ctx(t), "bound")
	require.NoError(t, err)
	e, err := s.store.Ledger.Read(ctx(t), subjects.StartRecord(subjects.NewRun("default", "bound"), doc.Generation, 1))
	require.NoError(t, err)
	start, _, err := wire.ParseStart(e.Header, e.Data)
	require.NoError(t, err)
	require.Contains(t, start.Needs, wire.OnlyGroups)
}
