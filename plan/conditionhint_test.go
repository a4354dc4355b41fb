package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// conditional is a plan whose last step has a field; a and fetch-1 come before it.
func conditional(field, value string) []byte {
	return []byte(steps(`{"id":"a","tool":"echo"},{"id":"fetch-1","tool":"echo"},{"id":"b","tool":"echo","` + field + `":` + value + `}`))
}

// What models write for references in conditions, and what the hint writes for it.
func TestHintsOfConditions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{{a.x}} == 3":                         "$ref:a.x == 3",
		"{{ steps.a.x }} == 3":                 "$ref:a.x == 3",
		"${a.x} > 3":                           "$ref:a.x > 3",
		"${{ a.x }} > 3":                       "$ref:a.x > 3",
		"${ref:a.x} > 3":                       "$ref:a.x > 3",
		"a.x == 3":                             "$ref:a.x == 3",
		"steps.a.x == 3":                       "$ref:a.x == 3",
		"$a.x > 3":                             "$ref:a.x > 3",
		"$steps.a.x > 3":                       "$ref:a.x > 3",
		"fetch-1.count > 0":                    "$ref:fetch-1.count > 0",
		"a.status == 'done' and a.x == 'done'": "$status:a == 'succeeded' and $ref:a.x == 'done'",
		"status(a) == 'failed'":                "$status:a == 'failed'",
		"status('a') == 'failed'":              "$status:a == 'failed'",
		"status($ref:a) == 'failed'":           "$status:a == 'failed'",
		"a.status == 'failed'":                 "$status:a == 'failed'",
		"{{a.status}} == 'failed'":             "$status:a == 'failed'",
		"a.error.code == 'x' and a.x":          "$error:a.code == 'x' and $ref:a.x",
		"error(a) != null":                     "$error:a != null",
		"'$ref:a.sky' == 'sunny'":              "$ref:a.sky == 'sunny'",
		`"{{a.sky}}" == "sunny"`:               `$ref:a.sky == "sunny"`,
		"${status:a} == 'failed'":              "$status:a == 'failed'",
		"$ref:a.x === 3 && $ref:a.y !== 4":     "$ref:a.x == 3 && $ref:a.y != 4",
		"$ref:a.x == 3 and {{fetch-1.y}}":      "$ref:a.x == 3 and $ref:fetch-1.y",
		"'${ref:a.x[0].name}' == 'a'":          "$ref:a.x[0].name == 'a'",
		"'${status:a}' == 'succeeded'":         "$status:a == 'succeeded'",
		"'${error:a.code}' == 'tool_failed'":   "$error:a.code == 'tool_failed'",
		"'x ${ref:a.y}!' == 'x z!'":            "concat('x ', $ref:a.y, '!') == 'x z!'",
		`"see $ref:a.y" == "x"`:                `concat("see ", $ref:a.y) == "x"`,
	} {
		p, r := plan.Parse(conditional("if", quoted(text)), nil)
		require.Nil(t, p, text)
		require.Len(t, r.Problems, 1, text)
		require.Equal(t, fault.InvalidCondition, r.Problems[0].Code, text)
		require.Equal(t, "/steps/2/if", r.Problems[0].Path)
		require.Equal(t, `write "if": `+quoted(want), r.Problems[0].Hint, text)
		p, r = plan.Parse(conditional("if", quoted(want)), nil)
		require.Empty(t, r.Problems, want)
		require.Equal(t, want, p.Steps[2].If.Text())
	}
}

// What can't be written anew keeps the hint that says what is wrong.
func TestConditionsThatNobodyCanMend(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"nobody.x == 3", "{{nobody.x}} > 1", "", "a and and", "the weather is fine", "{{", "'", "status(", "$", "${"} {
		_, r := plan.Parse(conditional("if", quoted(text)), nil)
		require.NotEmpty(t, r.Problems, text)
		require.Equal(t, fault.InvalidCondition, r.Problems[0].Code, text)
		require.NotEmpty(t, r.Problems[0].Hint, text)
		require.NotContains(t, r.Problems[0].Hint, `write "if"`, text)
	}
}

// A status that no step has would make a condition that is never true.
func TestAStatusThatThereIsNot(t *testing.T) {
	t.Parallel()
	for text, hint := range map[string]string{
		"$status:a == 'success'":                            `write "if": "$status:a == 'succeeded'"`,
		`1 == 1 and $status:a != "OK"`:                      `write "if": "1 == 1 and $status:a != \"succeeded\""`,
		"$status:a == 'failed' or $status:fetch-1=='error'": `write "if": "$status:a == 'failed' or $status:fetch-1=='failed'"`,
		"$status:a == 'purple'":                             "write 'succeeded', 'failed', 'skipped', 'cancelled' or 'not_taken'",
	} {
		_, r := plan.Parse(conditional("if", quoted(text)), nil)
		require.Len(t, r.Problems, 1, text)
		require.Equal(t, fault.InvalidCondition, r.Problems[0].Code)
		require.Equal(t, hint, r.Problems[0].Hint, text)
	}
	for _, text := range []string{"$status:a == 'not_taken'", "$status:a in ['failed', 'x']", "$status:a == $status:fetch-1", "$status:a == 'skipped' or $ref:a.x == 'ok'"} {
		_, r := plan.Parse(conditional("if", quoted(text)), nil)
		require.Empty(t, r.Problems, text)
	}
}

// Other names of the field, whose text is read as a condition all the same: all problems come at once.
func TestOtherNamesOfIf(t *testing.T) {
	t.Parallel()
	for field, c := range map[string]struct{ value, hint string }{
		"when":      {`"$ref:a.x > 1"`, `write "if": "$ref:a.x > 1"`},
		"condition": {`"$ref:a.x > 1"`, `write "if": "$ref:a.x > 1"`},
		"run_if":    {`"$ref:a.x > 1"`, `write "if": "$ref:a.x > 1"`},
		"only_if":   {`true`, `leave it out: a step without "if" is always taken`},
		"unless":    {`"$ref:a.x"`, `write "if" with the opposite: "if": "not ($ref:a.x)"`},
		"If":        {`"$ref:a.x > 1"`, `write "if": "$ref:a.x > 1"`},
		"run_when":  {`{"$ref":"a.ok"}`, `write "if": "$ref:a.ok"`},
		"if":        {`{"==":[1,2]}`, `write "if": "$ref:a.total > 100 and $status:b == 'succeeded'"`},
	} {
		body := conditional(field, c.value)
		_, r := plan.Parse(body, nil)
		require.Len(t, r.Problems, 1, field)
		require.Equal(t, c.hint, r.Problems[0].Hint, field)
		if field != "if" {
			require.Equal(t, fault.UnknownField, r.Problems[0].Code)
			require.NotNil(t, plan.Accepted(body, nil), "it was a field that nobody knew, or refused")
		}
	}
	_, r := plan.Parse(conditional("condition", `"{{a.x}} == 3"`), nil)
	require.Equal(t, []string{"invalid_condition", "unknown_field"}, codes(r.Problems))
	require.Equal(t, "/steps/2/condition", r.Problems[1].Path)
	require.Equal(t, `write "if": "$ref:a.x == 3"`, r.Problems[1].Hint)
	require.Equal(t, `write "if"`, r.Problems[0].Hint, "what is wrong with the text stands in the other")
}
