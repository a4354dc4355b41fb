package orchestrator_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// A reference that found nothing is a warning of the outcome, also where the result lies in a blob; where the null
// breaks a schema, the error names it.
func TestReferencesThatFoundNothing(t *testing.T) {
	t.Parallel()
	s := start(t)
	o := s.run(`{"steps":[
		{"id":"a","tool":"echo","arguments":{"x":1,"list":[{"n":1},{"m":2}],"text":"t"}},
		{"id":"big","tool":"echo","arguments":{"text":"`+strings.Repeat("y", 600_000)+`"}},
		{"id":"b","tool":"echo","arguments":{"v":"$ref:a.y","w":"$ref:a.y || 1","big":"$ref:big.nope"}},
		{"id":"c","tool":"length","arguments":{"text":"$ref:a.why"}},
		{"id":"d","tool":"echo","for_each":{"in":"$ref:a.list"},"arguments":{"n":"$ref:item.n"}},
		{"id":"e","tool":"echo","arguments":{"ns":"$ref:d[*].data.n"}}],"output_steps":["e","b"]}`, "nothing")
	require.Equal(t, outcome.Partial, o.Status)
	require.Equal(t, `{"ns":[1,null]}`, string(o.Results[0].JSON))
	var said []string
	for _, w := range o.Warnings {
		require.Equal(t, fault.UnresolvedRef, w.Code)
		said = append(said, w.Path+" of "+w.Step+": "+w.Message)
	}
	const keys = `step "a" returned an object with the keys x, list, text`
	require.Equal(t, []string{
		"/steps/2/arguments/v of b: $ref:a.y found nothing, so null stands in its place; " + keys,
		`/steps/2/arguments/big of b: $ref:big.nope found nothing, so null stands in its place; step "big" returned an object with the keys text`,
		"/steps/3/arguments/text of c: $ref:a.why found nothing, so null stands in its place; " + keys,
		"/steps/4/arguments/n of d: item 1: $ref:item.n found nothing, so null stands in its place; the item is an object with the keys m",
	}, said)
	require.Len(t, o.Errors, 1)
	require.Equal(t, fault.InvalidArguments, o.Errors[0].Code)
	require.Contains(t, o.Errors[0].Message, "/text is null because $ref:a.why found nothing; "+keys)
}

// A condition that reads nothing looks like one that is false, so the outcome tells, whether the step was taken or not;
// and a calculation's null is told under on_missing: error too.
func TestConditionsThatFoundNothing(t *testing.T) {
	t.Parallel()
	s := start(t)
	o := s.run(`{"on_missing":"error","steps":[
		{"id":"a","tool":"echo","arguments":{"total":5}},
		{"id":"b","tool":"echo","if":"$ref:a.totl > 3"},
		{"id":"c","tool":"echo","if":"not ($ref:a.totl == 3)"},
		{"id":"d","tool":"echo","if":"$ref:a.next != null and $ref:a.next > 3"},
		{"id":"e","tool":"echo","if":"$ref:b.x == 3"},
		{"id":"v","value":{"$calc":"sum($ref:a.m) + 1"}}],"output_steps":["v"]}`, "decided")
	require.Equal(t, outcome.Succeeded, o.Status)
	require.Equal(t, []string{"b", "d", "e"}, o.NotTaken)
	var said []string
	for _, w := range o.Warnings {
		said = append(said, w.Path+" of "+w.Step+": "+w.Message)
	}
	const keys = `step "a" returned an object with the keys total`
	require.Equal(t, []string{
		"/steps/1/if of b: $ref:a.totl found nothing, so it is null in the condition; " + keys,
		"/steps/2/if of c: $ref:a.totl found nothing, so it is null in the condition; " + keys,
		"/steps/5/value of v: $ref:a.m found nothing, so null stands in its place; " + keys,
	}, said)
}

// An error of resolved arguments says what would fit, as that of a plan does.
func TestResolvedArgumentsThatDoNotFitHaveAHint(t *testing.T) {
	t.Parallel()
	s := start(t)
	o := s.run(`{"steps":[{"id":"a","tool":"echo","arguments":{"x":5}},
		{"id":"b","tool":"length","arguments":{"text":"$ref:a.x"}}],"output_steps":["b"]}`, "hint")
	require.Len(t, o.Errors, 1)
	require.Equal(t, fault.InvalidArguments, o.Errors[0].Code)
	require.Equal(t, `what would fit at /text: write "5", in quotes; a referenced result has another form than the tool expects; `+
		"refer to the field that fits, or convert it with a step between", o.Errors[0].Hint)
}
