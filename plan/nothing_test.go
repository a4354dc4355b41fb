package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// References that find nothing are told with their places and what was there instead, and never with a value.
func TestNothing(t *testing.T) {
	t.Parallel()
	p := parsed(t, steps(`{"id":"a","tool":"t"},{"id":"b","tool":"t"},{"id":"gone","tool":"t"},{"id":"s","tool":"t","arguments":{
		"found":"$ref:a.x","null":"$ref:a.null","key":"$ref:a.y","deep":[{"$ref":"a.in.y.z"}],"text":"is $ref:a.x and ${ref:b[7]}","other":"$ref:gone || $ref:a.y",
		"default":"$ref:a.y || null","list":"$ref:a.list[*].y","none":"$ref:a.y[*]","a/b":{"whole":"$ref:gone"}}}`))
	result := func(dep int) ([]byte, bool) {
		return []byte([]string{`{"x":"secret","list":[{"x":1}],"null":null,"in":{"secret":"s"}}`, `["secret"]`}[min(dep, 1)]), dep < 2
	}
	var got []string
	for _, n := range p.NewResolver().Nothing(3, nil, result) {
		got = append(got, fmt.Sprintf("%s %s: %s", n.At, n.Reference, n.Saw))
	}
	const keys = `step "a" returned an object with the keys x, list, null, in`
	require.Equal(t, []string{
		"/steps/3/arguments/key a.y: " + keys,
		"/steps/3/arguments/deep/0 a.in.y.z: $ref:a.in is an object with the keys secret",
		`/steps/3/arguments/text b[7]: step "b" returned an array`,
		"/steps/3/arguments/other gone: " + keys,
		"/steps/3/arguments/none a.y[*]: " + keys,
		`/steps/3/arguments/a~1b/whole gone: step "gone" did not succeed`,
	}, got)

	each := parsed(t, steps(`{"id":"a","tool":"t"},{"id":"s","tool":"t","for_each":{"in":"$ref:a"},"arguments":"{\"v\":\"$ref:item.y\"}"}`))
	found := each.NewResolver().Nothing(1, []byte(`{"x":1}`), nil)
	require.Equal(t, []plan.Nothing{{Reference: "item.y", At: "/steps/1/arguments/v", Saw: "the item is an object with the keys x"}}, found)
}

// Of a condition what it does not ask for is told: a condition that is never true looks like one that is false.
func TestNothingDecided(t *testing.T) {
	t.Parallel()
	result := func(dep int) ([]byte, bool) {
		return []byte([]string{`{"x":1,"null":null,"list":[{"x":1}]}`, `"yes"`}[min(dep, 1)]), dep < 2
	}
	const keys = `found nothing, so it is null in the condition; step "a" returned an object with the keys x, null, list`
	for condition, want := range map[string]string{
		"$ref:a.totl > 3":                                    "$ref:a.totl " + keys,
		"$ref:q.answer == 'yes'":                             `$ref:q.answer found nothing, so it is null in the condition; step "q" returned a string`,
		"len($ref:a.x[*]) > 1":                               "$ref:a.x[*] found nothing, so it is null in the condition; $ref:a.x is a number",
		"$ref:a.y":                                           "$ref:a.y " + keys,
		"$ref:a.x > 0 and $ref:a.null > 1":                   "",
		"($ref:a.totl ?? 0) > 3":                             "",
		"$ref:a.y != null and $ref:a.y > 3":                  "",
		"null == $ref:a.y or $ref:a.y.z > 3":                 "",
		"$ref:gone.x > 3":                                    "",
		"$error:a.code == 'x' or $status:gone == 'failed'":   "",
		"$error:gone.code == 'x' or $error:gone.cod == 'x'":  "$error:gone.cod found nothing, so it is null in the condition; $error:gone is an object with the keys code, message, details",
		"$ref:a.list[*].x == [1] and $ref:a.list[*].y == []": "",
	} {
		p := parsed(t, steps(`{"id":"a","tool":"t"},{"id":"q","tool":"t"},{"id":"gone","tool":"t"},{"id":"s","tool":"t","if":`+quoted(condition)+`}`))
		fates := func(step int) plan.Fate {
			if step < 2 {
				return plan.Fate{Status: "succeeded"}
			}
			return plan.Fate{Status: "failed", Error: fault.New(fault.ToolFailed, "no")}
		}
		got := ""
		for _, n := range p.NewResolver().Fates(fates).NothingDecided(3, result) {
			require.Equal(t, "/steps/3/if", n.At)
			got += n.Message()
		}
		require.Equal(t, want, got, condition)
	}
}

// Under on_missing: error only calculations have null in the place of nothing.
func TestNothingUnderOnMissingError(t *testing.T) {
	t.Parallel()
	p := parsed(t, `{"on_missing":"error","steps":[{"id":"a","tool":"t"},{"id":"v","value":{"x":"$ref:a.y","z":{"$calc":"sum($ref:a.m) + 1"}}}]}`)
	found := p.NewResolver().Nothing(1, nil, func(int) ([]byte, bool) { return []byte(`{"x":1}`), true })
	require.Len(t, found, 1)
	require.Equal(t, "$ref:a.m", found[0].String())
}

func TestAnOutlineIsBounded(t *testing.T) {
	t.Parallel()
	p := parsed(t, steps(`{"id":"a","tool":"t"},{"id":"s","tool":"t","arguments":{"x":"$ref:a.nope"}}`))
	long := `{` + repeat(1000, `"%d`+strings.Repeat("é", 100)+`":{"deep":[1]}`) + `}`
	found := p.NewResolver().Nothing(1, nil, func(int) ([]byte, bool) { return []byte(long), true })
	require.Less(t, len(found[0].Saw), 1000)
	require.True(t, strings.HasSuffix(found[0].Saw, ", …"), found[0].Saw)
}

// What a wrong value came from is said by the reference, and not only by its place.
func TestExplain(t *testing.T) {
	t.Parallel()
	p := parsed(t, steps(`{"id":"a","tool":"t"},{"id":"s","tool":"t","arguments":{"arg_0":"$ref:a.y","arg_1":["$ref:a"],"arg_2":5,"arg_3":"$ref:a.list[*].n","arg_4":"$ref:a.y || 1","arg_5":"$ref:a.y || $ref:a.x"}}`))
	result := func(int) ([]byte, bool) { return []byte(`{"x":1,"list":[{"n":1}],"text":"t"}`), true }
	for at, want := range map[string]string{
		"/arg_0":      `/arg_0 is null because $ref:a.y found nothing; step "a" returned an object with the keys x, list, text`,
		"/arg_1":      "",
		"/arg_1/0":    "$ref:a came to an object with the keys x, list, text",
		"/arg_1/0/x":  "$ref:a came to an object with the keys x, list, text",
		"/arg_2":      "",
		"/arg_3/0":    "$ref:a.list[*].n came to an array",
		"/arg_4":      "$ref:a.y came to a number",
		"/arg_5":      "$ref:a.x came to a number",
		"/arg_0thing": "",
	} {
		require.Equal(t, want, p.NewResolver().Explain(1, nil, at, result), at)
	}
}
