package expression

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
)

// bomb is an expression or a value that is made to take long.
type bomb struct {
	text string
	v    values
}

func many(n int, item, between string) string {
	return strings.TrimSuffix(strings.Repeat(item+between, n), between)
}

// bombs end with an error, all of them.
func bombs() map[string]bomb {
	mega := strings.Repeat("a", 1<<20-2)
	items := func(n int, item string) string { return "[" + many(n, item, ",") + "]" }
	return map[string]bomb{
		"long text":                {"1" + strings.Repeat(" + 1", 1<<18), nil},
		"long string":              {"'" + strings.Repeat("a", 1<<20) + "'", nil},
		"brackets":                 {strings.Repeat("(", 1<<20), nil},
		"brackets, closed":         {strings.Repeat("(", 8000) + "1" + strings.Repeat(")", 8000), nil},
		"lists":                    {strings.Repeat("[", 8000), nil},
		"signs":                    {strings.Repeat("-", 16_000) + "1", nil},
		"nots":                     {strings.Repeat("not ", 4_000) + "true", nil},
		"choices":                  {strings.Repeat("true ? ", 2_000) + "1", nil},
		"alternatives":             {strings.Repeat("null ?? ", 2_000) + "1", nil},
		"calls":                    {strings.Repeat("abs(", 4_000), nil},
		"chains in chains":         {strings.Repeat("(1 < ", 60) + "2" + strings.Repeat(" < 3)", 60), nil},
		"a long chain":             {many(300, "1", " < "), nil},
		"a number of many digits":  {strings.Repeat("1", 1<<20) + " > 0", nil},
		"a literal's exponent":     {"1e999999999 > 0", nil},
		"repetitions":              {"'x' matches '" + strings.Repeat("(a{1000}){1000}", 10) + "'", nil},
		"repetitions side by side": {"'x' matches '" + strings.Repeat("a{1000}", 36) + "'", nil},
		"ranges that ignore case":  {"'x' matches '(?i)" + strings.Repeat("[B-\U0010FFFF]", 30) + "'", nil},

		"digits in data":           {"$ref:a > 0", values{"$ref:a": strings.Repeat("1", 1<<20)}},
		"digits in data, by half":  {"$ref:a > 0", values{"$ref:a": strings.Repeat("1", 1<<19)}},
		"digits behind the point":  {"$ref:a + 1", values{"$ref:a": "0." + strings.Repeat("1", 60_000)}},
		"an exponent":              {"$ref:a + 1", values{"$ref:a": "1e999999999"}},
		"an exponent, alone":       {"-$ref:a", values{"$ref:a": "1e999999999999999999999"}},
		"a small exponent":         {"$ref:a + 1", values{"$ref:a": "1e-999999999"}},
		"exponents compared":       {"$ref:a == $ref:a", values{"$ref:a": "[1e999999999]"}},
		"exponents far apart":      {"sum($ref:a) == 'x' or 1 / 0 > 1", values{"$ref:a": items(9_000, "1e6000,1e-6000")[:100_000] + "1]"}},
		"remainder":                {"1e6144 % 7", nil},
		"remainder, small":         {"1 % 1e-6144", nil},
		"digits to round to":       {"round(1.5, 999999999)", nil},
		"digits to round from":     {"round(1.5, -999999999)", nil},
		"products":                 {"product($ref:a)", values{"$ref:a": items(10_000, "99999999999999999999999999999999999")}},
		"too many items":           {"sum($ref:a)", values{"$ref:a": items(10_001, "1")}},
		"items summed often":       {many(60, "sum($ref:a)", " + "), values{"$ref:a": items(10_000, "1.23456789")}},
		"items looked for":         {many(60, "$ref:b in $ref:a", " or "), values{"$ref:a": items(10_000, `"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"`), "$ref:b": `"b"`}},
		"empty lists":              {"$ref:a == []", values{"$ref:a": items(20_000, "[]")}},
		"deep lists":               {"$ref:a == $ref:b", values{"$ref:a": strings.Repeat("[", 9000) + strings.Repeat("]", 9000), "$ref:b": strings.Repeat("[", 9000) + strings.Repeat("]", 9000)}},
		"lists in lists":           {many(90, "$ref:a != $ref:b", " or "), values{"$ref:a": strings.Repeat("[", 100) + `"` + mega[:400_000] + `"` + strings.Repeat("]", 100), "$ref:b": strings.Repeat("[", 100) + `"` + mega[:400_000] + `"` + strings.Repeat("]", 100)}},
		"long string in data":      {"$ref:a contains 'b'", values{"$ref:a": `"` + mega + `aaa"`}},
		"letters again and again":  {strings.Repeat("lower(upper(", 90) + "$ref:a" + strings.Repeat("))", 90), values{"$ref:a": `"` + mega + `"`}},
		"wide letters":             {strings.Repeat("lower(upper(", 90) + "$ref:a" + strings.Repeat("))", 90), values{"$ref:a": `"` + strings.Repeat("ß", 1<<19-1) + `"`}},
		"parts of strings":         {many(90, "$ref:a contains $ref:b", " or "), values{"$ref:a": `"` + mega[:1<<19] + `"`, "$ref:b": `"` + mega[:1<<18] + `b"`}},
		"patterns over long texts": {many(8, "$ref:a matches '(a|aa)+b'", " or "), values{"$ref:a": `"` + mega + `"`}},
		"a heavy pattern":          {"$ref:a matches '(a{1,30}){1,30}b'", values{"$ref:a": `"` + mega[:1<<17] + `"`}},
		"values that double":       {"[" + many(190, "$ref:a", ", ") + "]", values{"$ref:a": `"` + mega[:1<<19] + `"`}},
		"values that double, deep": {"[" + many(50, "[$ref:a, $ref:a]", ", ") + "] == [" + many(20, "$ref:a", ", ") + "] or 1 / 0 > 1", values{"$ref:a": `"` + mega[:1<<19] + `"`}},
		"objects of many keys":     {many(60, "$ref:a == $ref:b", " and ") + " and 1 / 0 > 1", values{"$ref:a": keys(9_000, 1), "$ref:b": keys(9_000, -1)}},
	}
}

// keys returns an object with so many keys, forwards or backwards.
func keys(n, step int) string {
	var all []string
	for i := range n / 2 {
		all = append(all, fmt.Sprintf(`"key%d":%d`, i, i))
	}
	if step < 0 {
		slices.Reverse(all)
	}
	return "{" + strings.Join(all, ",") + "}"
}

func (b bomb) explode() *fault.Error {
	x, err := Compile(b.text, plain)
	if err != nil {
		return err
	}
	_, err = x.Value(b.v.of(x), ValueLimits)
	return err
}

// TestBombs: whoever writes a plan or returns a value can't hold up an orchestrator. What ends them is counted, not
// timed; the time here is that of a machine that has much else to do.
func TestBombs(t *testing.T) {
	for name, b := range bombs() {
		start := time.Now()
		err := b.explode()
		took := time.Since(start)
		require.NotNil(t, err, name)
		require.Contains(t, []fault.Code{fault.InvalidCondition, fault.ConditionFailed}, err.Code, name)
		require.Less(t, len(err.Error()), 600, name)
		require.Less(t, took, time.Second, name)
		for _, raw := range b.v {
			require.True(t, json.Valid([]byte(raw)), "%s: what is no JSON is no test", name)
		}
	}
}

func BenchmarkBombs(b *testing.B) {
	all := bombs()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_ = all[name].explode()
			}
		})
	}
}

// FuzzCompile: whatever the text, there is an expression or an error that says what to do; and whatever the values, the
// same result twice, which is JSON.
func FuzzCompile(f *testing.F) {
	for _, text := range []string{
		"$ref:a > 1 and $ref:b in ['x']", "round(sum($ref:a) / 3, 2) ?? -1", "not ($ref:a matches '^\\d+$') or true ? [1] : {}",
		"lower($ref:a) == 'x' && !false || null", "1 < 2 < 3 % 4", "'$$ref:a' contains \"\\u00e9\"", "((((", "$ref:a.b-c",
	} {
		f.Add(text, `[1, 2.5, null]`, `"x"`)
		f.Add(text, `{"x": [1e5, "ä", true]}`, `-0.1e-3`)
	}
	f.Fuzz(func(t *testing.T, text, a, b string) {
		x, err := Compile(text, plain)
		if err != nil {
			require.Equal(t, fault.InvalidCondition, err.Code)
			require.NotEmpty(t, err.Message)
			return
		}
		if !json.Valid([]byte(a)) || !json.Valid([]byte(b)) {
			return
		}
		get := func(i int) ([]byte, bool) { return []byte([]string{a, b, "null"}[i%3]), i%4 < 3 }
		first, bad := x.Value(get, ConditionLimits)
		again, worse := x.Value(get, ConditionLimits)
		require.Equal(t, first, again)
		require.Equal(t, bad, worse)
		if bad == nil {
			require.True(t, json.Valid(first), "%s is %s", text, first)
		} else {
			require.Equal(t, fault.ConditionFailed, bad.Code)
		}
		if _, err := x.True(get, ConditionLimits); err != nil {
			require.Equal(t, fault.ConditionFailed, err.Code)
		}
	})
}

var condition = `$ref:weather.temp > 20 and $ref:weather.sky == 'sunny'`

func BenchmarkCompile(b *testing.B) {
	for name, text := range map[string]string{"condition": condition, "status": "$status:pay == 'failed'", "sum": "round(sum($ref:lines[*].total) * 1.19, 2)"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Compile(text, prefix); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// prefix is a Reader as fast as that of plans.
func prefix(s string, i int) (int, string) {
	for i++; i < len(s) && s[i] != ' ' && s[i] != ')' && s[i] != ','; i++ {
	}
	return i, ""
}

func BenchmarkTrue(b *testing.B) {
	x := compiled(b, condition)
	get := func(i int) ([]byte, bool) { return [][]byte{[]byte("21.5"), []byte(`"sunny"`)}[i], true }
	b.ReportAllocs()
	for b.Loop() {
		if yes, err := x.True(get, ConditionLimits); !yes || err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSum(b *testing.B) {
	x := compiled(b, "sum($ref:a)")
	raw := []byte("[" + many(1000, "19.99", ",") + "]")
	get := func(int) ([]byte, bool) { return raw, true }
	b.ReportAllocs()
	for b.Loop() {
		if _, err := x.Value(get, ValueLimits); err != nil {
			b.Fatal(err)
		}
	}
}
