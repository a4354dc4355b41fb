package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/plan"
)

// TestQuestionsThatNobodyCanAnswer: what is known of a question is refused with the plan, and not when a person waits.
func TestQuestionsThatNobodyCanAnswer(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 70_000)
	ask := func(args string) string {
		return steps(`{"id":"a","tool":"echo"},{"id":"q","tool":"ask","arguments":` + args + `}`)
	}
	approval := func(a string) string {
		return steps(`{"id":"a","tool":"echo"},{"id":"q","tool":"echo","approval":` + a + `}`)
	}
	for name, c := range map[string]struct{ plan, code, path, message, hint string }{
		"no schema":        {ask(`{"question":"x","schema":{"type":"nonsense"}}`), "invalid_arguments", "/steps/1/arguments/schema", "the schema of the answer is none", `{"type": "number"}`},
		"beside a hole":    {ask(`{"question":"${ref:a.x}?","schema":{"type":"nonsense"}}`), "invalid_arguments", "/steps/1/arguments/schema", "the schema of the answer is none", "JSON schema"},
		"choices":          {ask(`{"question":"x","schema":{"type":"string"},"choices":["a",2]}`), "invalid_arguments", "/steps/1/arguments/choices/1", "the choice 2 does not fit the schema", "leave the schema out"},
		"choice by a hole": {ask(`{"question":"x","schema":{"type":"string"},"choices":["$ref:a.x",2]}`), "invalid_arguments", "/steps/1/arguments/choices/1", "the choice 2", "choices that fit"},
		"large choices":    {ask(`{"question":"x","choices":["` + long + `","$ref:a.x"]}`), "too_large", "/steps/1/arguments", "at most 65536 are shown", "refer to a part"},
		"large schema":     {ask(`{"question":"x","schema":{"title":"` + long + `"}}`), "too_large", "/steps/1/arguments", "at most 65536", "refer to a part"},
		"large text":       {approval(`{"ask":"${ref:a.x} ` + long + `"}`), "too_large", "/steps/1/approval/ask", "at most 65536", "in short"},
		"large plan's":     {`{"approval":{"ask":"` + long + `"},"steps":[{"id":"a","tool":"echo"}]}`, "too_large", "/approval/ask", "at most 65536", "in short"},
	} {
		_, r := plan.Parse([]byte(c.plan), corpusTools(t))
		require.Len(t, r.Problems, 1, name)
		x := r.Problems[0]
		require.Equal(t, []string{c.code, c.path}, []string{string(x.Code), x.Path}, name)
		require.Contains(t, x.Message, c.message, name)
		require.Contains(t, x.Hint, c.hint, name)
	}
	for name, fine := range map[string]string{
		"schema":          ask(`{"question":"x","schema":{"enum":[1,2]},"choices":[1,2]}`),
		"no literal":      ask(`{"question":"x","schema":"$ref:a.s","choices":[1]}`),
		"part no literal": ask(`{"question":"x","schema":{"type":"$ref:a.s"},"choices":[1]}`),
		"choices later":   ask(`{"question":"x","schema":{"type":"string"},"choices":"$ref:a.l"}`),
		"choice later":    ask(`{"question":"x","schema":{"type":"object"},"choices":["$ref:a.l",{"x":"$ref:a.l"}]}`),
		"escapes":         approval(`{"ask":"` + strings.Repeat(`\u00e9`, 30_000) + `"}`),
	} {
		_, r := plan.Parse([]byte(fine), corpusTools(t))
		require.Empty(t, r.Problems, name)
	}
}

// TestOtherWordsForWhatIsAsked: who writes another word for an argument of the tool that asks is told its name; left out, the
// choices would be lost.
func TestOtherWordsForWhatIsAsked(t *testing.T) {
	t.Parallel()
	for args, hints := range map[string][]string{
		`{"prompt":"Which?","options":["a","b"]}`:   {`rename "prompt" to "question"`, `rename "options" to "choices"`, `rename "prompt" to "question"`},
		`{"text":"Which?"}`:                         {`rename "text" to "question"`},
		`{"question":"Which?","options":["a","b"]}`: {`rename "options" to "choices"`},
		`{"question":"Which?","text":"x"}`:          {`leave "text" out`},
		`{"question":"Which?","unit":"x"}`:          {`leave "unit" out`},
	} {
		_, r := plan.Parse([]byte(steps(`{"id":"q","tool":"ask","arguments":`+args+`}`)), corpusTools(t))
		var got []string
		for _, p := range r.Problems {
			got = append(got, p.Hint)
		}
		require.ElementsMatch(t, hints, got, args)
	}
}

// TestATextThatCalculates: a call of a function is text where it stands, and who writes it is warned.
func TestATextThatCalculates(t *testing.T) {
	t.Parallel()
	for value, warned := range map[string]bool{
		`sum($ref:a.l[*].price)`: true, `round($ref:a.x, 2)`: true, `($ref:a.x + 1)`: true, `concat($ref:a.x, 'b')`: true, `len ($ref:a.l) > 1`: true,
		`($ref:a.x)`: false, `(see $ref:a.x)`: false, `total($ref:a.x)`: false, `sum of $ref:a.x (net)`: false, `sum(a) is $ref:a.x`: false,
	} {
		_, r := plan.Parse([]byte(steps(`{"id":"a","tool":"echo"},{"id":"v","value":"`+value+`"}`)), corpusTools(t))
		require.Empty(t, r.Problems, value)
		if !warned {
			require.Empty(t, r.Warnings, value)
			continue
		}
		require.Len(t, r.Warnings, 1, value)
		require.Contains(t, r.Warnings[0].Message, "nothing is computed", value)
		require.Contains(t, r.Warnings[0].Hint, `{"$calc": "`+value+`"}`, value)
	}
}
