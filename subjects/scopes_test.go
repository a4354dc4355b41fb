package subjects_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/subjects"
)

func TestStepTokens(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("s/", subjects.MaxComposites)
	wide := strings.Repeat("x", subjects.MaxStepID)
	for _, token := range []string{
		"=", "a", "-", "0", "a=0", "a=10000", "a/b", "a/b/c", "map=3/fetch", "poll/=2", "poll/=2/status", "a/=2/=plan", "a/=0/=guard-1", "map=3/=2/fetch", "a/=2/=1/=plan",
		"a=3/b=4/=5/c=6", deep + "a", deep + "a=3", deep + "=1", deep + "=1/=plan", strings.Repeat("s=1/=2/", subjects.MaxComposites) + "a", wide + "=2147483647",
	} {
		segments, ok := subjects.ParseStepToken(token)
		require.True(t, ok, token)
		require.Equal(t, token, subjects.StepToken(segments...))
	}
	for _, token := range []string{
		"", "/", "a/", "/a", "a//b", "=/a", "a/=", "==", "=2", "=2/a", "=plan", "a/=plan", "a=1/=plan", "a/=2/=plan/b", "a/=2/=plan/=3", "a/=2/=p.q", "a/=2/=1st", "a/=2/=-x", "a/=2/=_",
		"a=", "a=01", "a=+1", "a=-1", "a=x", "a=1=2", "a==1", "a=2147483648", "a=99999999999999999999", "a/=01", "a b", "a.b", "a*", ">", "é", "a/é", "a/b.c", wide + "x", "a/" + wide + "x",
		"a/=1/=p" + wide, deep + "a/b", deep + "a/=1/b", deep + "a=1/b", strings.Repeat(wide+"/", 7) + wide, strings.Repeat("s/=111111111/", 40) + "a",
	} {
		require.False(t, subjects.ValidStepToken(token), token)
		segments, ok := subjects.ParseStepToken(token)
		require.False(t, ok, token)
		require.Nil(t, segments)
	}
}

func TestTokensAreBuiltFromScopes(t *testing.T) {
	t.Parallel()
	root := subjects.RootScope
	require.Equal(t, "a", subjects.InScope(root, "a"))
	fetch := subjects.InScope(subjects.ItemToken(subjects.InScope(root, "map"), 3), "fetch")
	require.Equal(t, "map=3/fetch", fetch)
	require.Equal(t, "map=3", subjects.ScopeOf(fetch))
	require.Equal(t, root, subjects.ScopeOf("map=3"))
	require.Equal(t, root, subjects.ScopeOf("a"))
	round := subjects.Iteration("a", 2)
	require.Equal(t, "a/=2", round)
	require.Equal(t, "a", subjects.ScopeOf(round))
	require.Equal(t, "a/=2/=plan", subjects.OwnCall(round, "plan"))
	segments, ok := subjects.ParseStepToken("map=3/poll/=2/=plan")
	require.True(t, ok)
	require.Equal(t, []subjects.Segment{
		{Kind: subjects.ItemSegment, Name: "map", Number: 3}, {Name: "poll"}, {Kind: subjects.IterationSegment, Number: 2}, {Kind: subjects.CallSegment, Name: "plan"},
	}, segments)
}

func TestItemsOfTokens(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]struct {
		step string
		item int
		is   bool
	}{
		"a": {"a", 0, false}, "a=3": {"a", 3, true}, "a/b=3": {"a/b", 3, true}, "a=1/b=3": {"a=1/b", 3, true}, "map=3/fetch": {"map=3/fetch", 0, false}, "a/=3": {"a/=3", 0, false},
		"=": {"=", 0, false}, "=3": {"=3", 0, false}, "a=": {"a=", 0, false}, "a=03": {"a=03", 0, false}, "a=x": {"a=x", 0, false}, "a/=2/=plan": {"a/=2/=plan", 0, false},
	} {
		step, item, is := subjects.SplitItem(token)
		require.Equal(t, want.step, step, token)
		require.Equal(t, want.item, item, token)
		require.Equal(t, want.is, is, token)
	}
}

// randomToken is a token of any form.
func randomToken(r *rand.Rand) string {
	ids := []string{"a", "b", "1", "2", "-", "a-1", "=", "map"}
	token := subjects.RootScope
	for n := r.IntN(subjects.MaxComposites) + 1; n > 0; n-- {
		token = subjects.InScope(token, ids[r.IntN(6)])
		if r.IntN(3) == 0 {
			token = subjects.ItemToken(token, r.IntN(3))
		}
		if n > 1 && r.IntN(3) == 0 {
			token = subjects.Iteration(token, r.IntN(3))
		}
	}
	if r.IntN(4) == 0 {
		token = subjects.OwnCall(subjects.Iteration(token, r.IntN(3)), "plan")
	}
	return token
}

// Every token comes back from wherever it stands, and no two steps, attempts or repairs share a name.
func TestNamesOfStepsInScopes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	owner := map[string]string{}
	claim := func(kind, name, by string) {
		before, taken := owner[kind+name]
		require.True(t, !taken || before == by, "%s is of %s and of %s", name, before, by)
		owner[kind+name] = by
	}
	for range 20_000 {
		token := randomToken(r)
		segments, ok := subjects.ParseStepToken(token)
		require.True(t, ok, token)
		require.Equal(t, token, subjects.StepToken(segments...))
		a := subjects.Attempt{Run: subjects.NewRun("acme", "r"), Generation: 7, Tool: "t", Step: token, Number: 1 + r.IntN(3)}
		if r.IntN(4) == 0 {
			a.Tool = subjects.CompositeTool
		}
		for subject, kind := range map[string]subjects.RecordKind{subjects.StepRecord(a, 2): subjects.StepKind, subjects.ClaimRecord(a, 2): subjects.ClaimKind} {
			rec, ok := subjects.ParseRecord(subject)
			require.True(t, ok, subject)
			require.Equal(t, subjects.Record{Kind: kind, Run: a.Run, Generation: 7, Attempt: a}, rec)
		}
		_, _, dead, ok := subjects.ParseDeadKey(subjects.DeadKey(a.Run, 7, token))
		require.True(t, ok)
		require.Equal(t, token, dead)
		step, attempt := token, fmt.Sprint(token, " ", a.Number)
		claim("key", a.Key(), step)
		claim("message", a.MessageID(), attempt)
		n := 1 + r.IntN(3)
		claim("message", a.RepairID(n), fmt.Sprint(attempt, " repair ", n))
		claim("blob", a.BlobName("x"), attempt)
		if a.Tool == subjects.CompositeTool {
			continue // such a one is never sent
		}
		for _, subject := range []string{subjects.Step(a, 2), subjects.Scheduled(a, 2)} {
			back, _, ok := subjects.ParseStep(subject)
			require.True(t, ok, subject)
			require.Equal(t, a, back)
		}
		back, ok := subjects.ParseCancel(subjects.Cancel(a))
		require.True(t, ok)
		require.Equal(t, a, back)
	}
}

// A tool called "=" there is not: only the records of composites have that name.
func TestTheToolOfComposites(t *testing.T) {
	t.Parallel()
	require.False(t, subjects.ValidTool(subjects.CompositeTool))
	a := attempt()
	a.Tool = subjects.CompositeTool
	require.Contains(t, subjects.StepRecord(a, 1), ".step.=.fetch-1.3")
	rec, ok := subjects.ParseRecord(strings.Replace(subjects.StepRecord(a, 1), ".=.", ".=3D.", 1))
	require.True(t, ok)
	require.Equal(t, subjects.StrayRecord, rec.Kind)
	_, _, ok = subjects.ParseStep("step.0.=.1.acme.r.7.a.1")
	require.False(t, ok)
}

// FuzzStepToken: whatever is a token is made of its segments, and takes one token of a subject.
func FuzzStepToken(f *testing.F) {
	for _, s := range []string{"=", "a", "a=3", "map=3/fetch", "poll/=2/status", "a/=2/=plan", "a//b", "=2", "a=01", "a/=x/b", "a.b", ">"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, token string) {
		segments, ok := subjects.ParseStepToken(token)
		require.Equal(t, ok, subjects.ValidStepToken(token))
		if !ok {
			return
		}
		require.Equal(t, token, subjects.StepToken(segments...))
		require.LessOrEqual(t, len(token), subjects.MaxStepToken)
		require.True(t, subjects.Literal(token))
		require.NotContains(t, token, ".")
		if len(segments) > 0 {
			require.Equal(t, token, subjects.InScope(subjects.ScopeOf(token), segments[len(segments)-1].String()))
		}
	})
}
