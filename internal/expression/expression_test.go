package expression

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
)

func TestReferencesStandOnceInTheirOrder(t *testing.T) {
	t.Parallel()
	x := compiled(t, `$ref:b.x > 1 and $ref:a["y z"] == $ref:b.x or $status:a in $ref:b`)
	require.Equal(t, []string{`$ref:b.x`, `$ref:a["y z"]`, `$status:a`, `$ref:b`}, x.References())
	require.Equal(t, `$ref:b.x > 1 and $ref:a["y z"] == $ref:b.x or $status:a in $ref:b`, x.Text())
	require.Empty(t, compiled(t, "1 < 2").References())
}

func TestUses(t *testing.T) {
	t.Parallel()
	type use = Use
	one, or := func(refs ...int) use { return use{References: refs} }, func(refs ...int) use { return use{References: refs, Ended: true} }
	for text, want := range map[string][]use{
		"1 < 2":                           nil,
		"$ref:a":                          {one(0)},
		"$ref:a ?? 5":                     {or(0)},
		"5 ?? $ref:a":                     {or(0)},
		"$ref:a ?? $ref:b":                {one(0, 1)},
		"$ref:a ?? $ref:b ?? 0":           {or(0, 1)},
		"($ref:a + $ref:b * 2) ?? $ref:c": {one(0, 1, 2)},
		"($ref:a ?? 1) + $ref:a":          {or(0), one(0)},
		"$ref:a + ($ref:b ?? 1)":          {one(0), or(1)},
		"len($ref:a ?? ($ref:b ?? $ref:c)) > 0 and $ref:d": {one(0, 1, 2), one(3)},
	} {
		require.Equal(t, want, compiled(t, text).Uses(), text)
	}
}

// What does not matter is not asked for, and nothing is asked for twice.
func TestGetIsAskedOnceAndForWhatMatters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"$ref:a and $ref:b":                     "$ref:a",
		"$ref:b or $ref:a":                      "$ref:b",
		"$ref:b ?? $ref:a":                      "$ref:b",
		"$ref:b ? $ref:a : $ref:c":              "$ref:b $ref:a",
		"$ref:a ? $ref:a : $ref:c":              "$ref:a $ref:c",
		"$ref:b == $ref:b and $ref:b == $ref:b": "$ref:b",
	} {
		x := compiled(t, text)
		var asked []string
		_, err := x.Value(func(i int) ([]byte, bool) {
			asked = append(asked, x.References()[i])
			return []byte(map[string]string{"$ref:a": "false", "$ref:b": "true"}[x.References()[i]]), true
		}, ConditionLimits)
		require.Nil(t, err, text)
		require.Equal(t, want, strings.Join(asked, " "), text)
	}
}

func TestWhatIsHandedOnKeepsItsBytes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"$ref:a", "$ref:none ?? $ref:a", "true ? $ref:a : 1", "(($ref:a))"} {
		got, err := calculated(t, text, values{"$ref:a": ` {"b" : 1.0,  "a":[ 1e400 ]} `})
		require.Nil(t, err)
		require.Equal(t, `{"b" : 1.0,  "a":[ 1e400 ]}`, got, text)
	}
	got, err := calculated(t, "[$ref:a, 1.0]", values{"$ref:a": "1.00"})
	require.Nil(t, err)
	require.Equal(t, "[1.00,1]", got)
}

// Each message says where, each hint what to write.
func TestMessages(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"$ref:a.total-5 > 1":     "invalid_condition: at byte 12: the \"-\" in $ref:a.total-5 may be a minus, or a part of the key (write `$ref:a.total - 5` with spaces for a difference, or `$ref:a[\"total-5\"]` for the key)",
		"$ref:a.x-$ref:b.y > 1":  "invalid_condition: at byte 8: the \"-\" in $ref:a.x- may be a minus, or a part of the key (write `$ref:a.x - …` with spaces for a difference, or `$ref:a[\"x-\"]` for the key)",
		"$ref:a.b-c.d[0] > 1":    "invalid_condition: at byte 8: the \"-\" in $ref:a.b-c.d[0] may be a minus, or a part of the key (write `$ref:a.b - c.d[0]` with spaces for a difference, or `$ref:a[\"b-c\"].d[0]` for the key)",
		"$ref:a = 5":             "invalid_condition: at byte 7: \"=\" is no operator (write `==` to compare)",
		"$ref:a == '$ref:b'":     "invalid_condition: at byte 10: a reference stands within a string, where it is only text (write the reference without quotes and braces, with texts around it as concat(\"…\", $ref:…); where the text is meant, double its dollar: $$)",
		"$ref:a == sunny":        "invalid_condition: at byte 10: sunny means nothing in an expression (write `$ref:sunny` for a step's result, \"sunny\" for a text)",
		"True":                   "invalid_condition: at byte 0: True means nothing in an expression (write `true`)",
		"not $ref:a == 5":        "invalid_condition: at byte 0: \"not\" takes only what stands next to it, not all of the comparison (put the comparison in brackets: `not (a == b)`)",
		"$ref:a ?? 0 > 5":        "invalid_condition: at byte 12: > does not belong here (put `a ?? b` in brackets before you go on with it: `(a ?? b) > 0`)",
		"$ref:a matches $ref:b":  "invalid_condition: at byte 7: matches takes a pattern in quotes, which is the same each time (write `$ref:step.code matches '^[A-Z]{3}$'`; another value is looked for by contains)",
		"$ref:a + ' km'":         "invalid_condition: at byte 7: \"+\" takes numbers, and ' km' is a string (texts are put together by `concat($ref:a.first, \" \", $ref:a.last)`)",
		"$ref: > 1":              "invalid_condition: at byte 0: $ref: > 1 is no reference: a step's id is expected (write `$ref:step.path`; keys of more than letters, digits and _ in brackets: `$ref:step[\"the key\"]`)",
		"${ref:a.x} > 1":         "invalid_condition: at byte 0: a \"$\" begins a reference, and this is none: ${ref:a.x} > 1 (in an expression references stand without braces: `$ref:step.path`)",
		"filter($ref:a, .x > 1)": "invalid_condition: at byte 15: \".\" is no operator (a path belongs to its reference: `$ref:step.path`; a number begins with a digit: 0.5)",
		"1 +":                    "invalid_condition: the expression ends too early (an operand or a closing bracket is missing)",
	} {
		_, err := Compile(text, plain)
		require.NotNil(t, err, text)
		require.Equal(t, want, err.Error(), text)
	}
	v := values{"$ref:a.s": `"12"`, "$ref:a.n": "0", "$ref:a.l": `[1, "x"]`, "$ref:a.f": `[{"data": 1}]`, "$ref:a.o": "{}"}
	for text, want := range map[string]string{
		"$ref:a.s > 5":      "condition_failed: `>` at byte 9: $ref:a.s is a string, and 5 is a number (compare numbers with numbers, and strings with strings)",
		"1 + $ref:a.s":      "condition_failed: `+` at byte 2: $ref:a.s is a string, and it takes numbers (texts are put together by `concat($ref:a.first, \" \", $ref:a.last)`; a string is no number, even where it looks like one: let a step make one of it)",
		"5 / $ref:a.n":      "condition_failed: `/` at byte 2: a division by zero (ask first: `divisor == 0 ? null : … / divisor`)",
		"sum($ref:a.l)":     "condition_failed: `sum` at byte 0: $ref:a.l has an item that is a string, and it takes numbers (refer to the field of its items that is the number)",
		"sum($ref:a.f)":     "condition_failed: `sum` at byte 0: $ref:a.f has an item that is an object, and it takes numbers (refer to the field of its items that is the number; what a for_each step came to is in `data` of its items)",
		"$ref:a.o or true":  "condition_failed: `or` at byte 9: $ref:a.o is an object, and it takes true and false (refer to one of its keys)",
		"$ref:a.n or true":  "condition_failed: `or` at byte 9: $ref:a.n is a number, and it takes true and false (compare it with something, as in `… > 0`; another value in place of null is `a ?? b`)",
		"1e6000 * 1e6000":   "condition_failed: `*` at byte 7: the result lies beyond 10^6144, or is nearer to zero than 10^-6144 (are the units those that are meant?)",
		"'1' in 'x1'":       "condition_failed: `in` at byte 4: 'x1' is a string, and it takes an array or an object behind it (a part of a string is found by `… contains …`)",
		"$ref:a.n ? 1 : 2":  "condition_failed: `? :`: $ref:a.n is a number, and it takes true and false (compare it with something, as in `… > 0`; another value in place of null is `a ?? b`)",
		"round(1, 0.5) > 1": "condition_failed: `round` at byte 0: the number of digits is not a whole number between -6144 and 6144 (write `round(x, 2)` for two digits behind the point)",
		"$ref:a.n + 1":      "condition_failed: the condition came to a number, which is neither true nor false (compare what it came to with something: `… > 0`, `… != null`)",
	} {
		_, err := decided(t, text, v)
		require.NotNil(t, err, text)
		require.Equal(t, want, err.Error(), text)
	}
}

// Messages may be read by those who may not read the values.
func TestMessagesTellNoValues(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{`"s3cret"`, `["s3cret"]`, `{"s3cret": "s3cret"}`, "53177", "1e99999", `"` + strings.Repeat("s3cret", 20_000) + `"`} {
		for _, text := range []string{"$ref:a + 1", "$ref:a < null", "not $ref:a", "$ref:a and true", "lower($ref:a) == 5", "sum($ref:a)", "len($ref:a)", "$ref:a in $ref:a", "$ref:a == $ref:b", "abs($ref:a)"} {
			if _, err := decided(t, text, values{"$ref:a": secret, "$ref:b": secret}); err != nil {
				require.NotContains(t, err.Error(), "s3cret")
				require.NotContains(t, err.Error(), "53177")
				require.NotContains(t, err.Error(), "99999")
				require.Less(t, len(err.Error()), 300)
			}
		}
	}
}

func TestLimitsCountWhatIsRead(t *testing.T) {
	t.Parallel()
	l := Limits{Bytes: 100, Elements: 5}
	v := values{
		"$ref:five": "[1,2,3,4,5]", "$ref:six": `[1,2,3,{"x":[4]}]`, "$ref:long": `"` + strings.Repeat("a", 99) + `"`, "$ref:two": "[1,2]",
		"$ref:large": "[" + strings.Repeat("0,", 5000) + "0]",
	}
	for text, ok := range map[string]bool{
		"sum($ref:five) == 15":                           true,
		"sum($ref:five) + sum($ref:five) == 30":          true, // read once
		"sum($ref:five) / len($ref:five) == 3":           true,
		"len($ref:five) + len($ref:two) == 7":            false,
		"true or len($ref:five) + len($ref:two) == 7":    true, // not read
		"len($ref:six) == 4":                             false,
		"len($ref:long) == 99":                           false,
		"$ref:long contains 'a'":                         false,
		"$ref:long != null":                              true, // nothing of it is needed
		"$ref:long == 5":                                 true,
		"$ref:large":                                     true,
		"$ref:large != null and $ref:six != null":        true,
		"$ref:large == []":                               false,
		"($ref:large ?? []) == null":                     true,
		"[$ref:two, $ref:two] == [[1,2],[1,2]]":          true,
		"len([$ref:large, $ref:large]) == 2":             true,
		"$ref:five == [1,2,3,4,5] and $ref:long != null": true,
	} {
		x := compiled(t, text)
		_, err := x.True(v.of(x), l)
		require.Equal(t, ok, err == nil, "%s: %v", text, err)
		if err != nil {
			require.Equal(t, fault.ConditionFailed, err.Code)
			require.NotEmpty(t, err.Hint)
		}
	}
	for text, ok := range map[string]bool{"$ref:five": true, "$ref:large": false, "[$ref:two, $ref:two]": true, "lower($ref:long)": false,
		"[$ref:five" + strings.Repeat(", $ref:five", 7) + "]": true, "[$ref:five" + strings.Repeat(", $ref:five", 9) + "]": false} {
		x := compiled(t, text)
		got, err := x.Value(v.of(x), l)
		require.Equal(t, ok, err == nil, "%s: %s %v", text, got, err)
	}
}

// Expressions are shared by goroutines.
func TestConcurrentEvaluation(t *testing.T) {
	t.Parallel()
	x := compiled(t, `round(sum($ref:a) * 1.19, 2) > 10 and 1.5 < 2 and lower($ref:b) matches '^a' ? [0.5, 0.25] : null`)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			v := values{"$ref:a": "[1.5, 20]", "$ref:b": `"Abc"`}
			for range 200 {
				got, err := x.Value(v.of(x), ValueLimits)
				if err != nil || string(got) != "[0.5,0.25]" {
					t.Errorf("%s, %v", got, err)
				}
			}
		})
	}
	all.Wait()
}

// Whoever follows a hint to the letter is not refused for it again, and means what he meant before.
func TestHintsAreWhatWasMeant(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"$ref:a is not null":     "write `!=`: `x != null` for `x is not null`",
		"$ref:a is not None":     "write `!=`: `x != null` for `x is not null`",
		"$ref:a == not None":     "write `!=`: `x != null` for `x is not null`",
		"$ref:a is null":         "write `==`",
		"floor(2.7)":             "write `(x % 1 < 0 ? x - x % 1 - 1 : x - x % 1)`",
		"ceil(2.1)":              "write `(x % 1 > 0 ? x - x % 1 + 1 : x - x % 1)`",
		"7 // 2":                 "write `(a - a % b) / b` for the whole part of a quotient, `/` to divide; there are no comments",
		"$ref:a.items | length":  "there are no filters; write `len(…)`, with the value in the brackets",
		"$ref:a.items | sum > 1": "there are no filters; write `sum(…)` around the value",
		"$ref:a | $ref:b":        "write `or`, or `??` for another value in place of null",
		"$ref:a-$ref:b":          "write `$ref:a - $ref:b` with spaces for a difference",
	} {
		_, err := Compile(text, plain)
		require.NotNil(t, err, text)
		require.Equal(t, want, err.Hint, text)
	}
	_, err := Compile("$ref:a.o == {}", plain)
	require.Contains(t, err.Hint, "an object is empty where `len(…) == 0`")
	v := values{"$ref:o": "{}"}
	for text, want := range map[string]string{
		"2.7": "2 3", "2.1": "2 3", "2": "2 2", "-2": "-2 -2", "-2.5": "-3 -2", "0": "0 0",
	} {
		floor, err := calculated(t, strings.ReplaceAll("(x % 1 < 0 ? x - x % 1 - 1 : x - x % 1)", "x", text), v)
		require.Nil(t, err, text)
		ceil, err := calculated(t, strings.ReplaceAll("(x % 1 > 0 ? x - x % 1 + 1 : x - x % 1)", "x", text), v)
		require.Nil(t, err, text)
		require.Equal(t, want, floor+" "+ceil, text)
	}
	got, err := calculated(t, "[len($ref:o) == 0, (7 - 7 % 2) / 2]", v)
	require.Nil(t, err)
	require.Equal(t, "[true,3]", got)
}
