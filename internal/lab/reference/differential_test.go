package reference_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/plan"
)

var (
	cases     = flag.Int("cases", 20_000, "random cases of each differential test")
	firstSeed = flag.Int64("seed", 1, "seed of the first random case; to replay one, set -cases 1 too")
)

// sight is what references see of the dependencies of a step, for both.
type sight reference.Sight

// of returns a sight of results alone: every step succeeded.
func of(result func(dep int) ([]byte, bool)) sight {
	return sight{
		Result: result, Status: func(int) string { return "succeeded" }, Err: func(int) *reference.Err { return nil },
	}
}

// resolver returns what resolves the arguments of a plan, and sees how steps ended.
func (s sight) resolver(p *plan.Plan) *plan.Resolver { return p.NewResolver().Fates(s.fate) }

func (s sight) fate(dep int) plan.Fate {
	f := plan.Fate{Status: s.Status(dep)}
	if err := s.Err(dep); err != nil {
		f.Error = &fault.Error{Code: fault.Code(err.Code), Message: err.Message, Retryable: err.Retryable}
	}
	return f
}

// requireSameArguments resolves the arguments of one step both ways and gives the code they fail with, or "".
func requireSameArguments(t *testing.T, seed int64, doc string, p *plan.Plan, q *reference.Plan, step int, s sight) string {
	t.Helper()
	if q.Steps[step].Value {
		return requireSameValue(t, seed, doc, p, q, step, s)
	}
	got, gotErr := s.resolver(p).Arguments(step, s.Result)
	want, wantErr := q.Arguments(step, reference.Sight(s))
	code := requireSame(t, fmt.Sprintf("seed %d, step %d: %s", seed, step, doc), got, gotErr, want, wantErr)
	if wantErr == nil && !q.Steps[step].ForEach {
		requireSameNothing(t, doc, p, q, step, nil, s)
	}
	if a := q.Steps[step].Approval; !q.Steps[step].ForEach || a != nil && a.All {
		requireSameQuestion(t, doc, p, q, step, nil, s)
	}
	if q.Steps[step].ForEach {
		requireSameItems(t, seed, doc, p, q, step, s)
	}
	return code
}

// requireSameValue derives the value of one step both ways and gives the code they fail with, or "".
func requireSameValue(t *testing.T, seed int64, doc string, p *plan.Plan, q *reference.Plan, step int, s sight) string {
	t.Helper()
	effort := plan.FullEffort
	got, gotErr := s.resolver(p).Derive(step, plan.MaxValues, &effort, s.Result)
	want, wantErr := q.Derive(step, plan.MaxValues, reference.Sight(s))
	what := fmt.Sprintf("seed %d, step %d: %s", seed, step, doc)
	if wantErr != nil {
		requireSame(t, what, got, gotErr, want, wantErr)
		return "value " + wantErr.Code
	}
	require.Nil(t, gotErr, what)
	require.True(t, json.Valid(got), what)
	require.Equal(t, anyOf(t, want), anyOf(t, got), what) // texts may be escaped in several ways
	return "value"
}

// anyOf reads JSON with the exact digits of its numbers.
func anyOf(t *testing.T, raw []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	require.NoError(t, d.Decode(&v), "%s", raw)
	return v
}

// requireSameTaking evaluates the condition of a step both ways, and gives what it comes to.
func requireSameTaking(t *testing.T, what string, p *plan.Plan, q *reference.Plan, step int, s sight) string {
	t.Helper()
	want, wantErr := q.Holds(step, reference.Sight(s))
	c := p.Steps[step].If
	if c == nil {
		require.True(t, want, what)
		return "none"
	}
	got, gotErr := c.Holds(p, nil, s.Result, s.fate)
	if wantErr != nil {
		require.NotNil(t, gotErr, "%s: %s", what, c.Text())
		require.Equal(t, wantErr.Code, string(gotErr.Code), what)
		return wantErr.Code
	}
	require.Nil(t, gotErr, what)
	require.Equal(t, want, got, "%s: %s", what, c.Text())
	return strconv.FormatBool(got)
}

// requireSame compares JSON, or the codes of errors, and gives the code.
func requireSame(t *testing.T, what string, got []byte, gotErr *fault.Error, want []byte, wantErr *reference.Err) string {
	t.Helper()
	if wantErr != nil {
		require.NotNil(t, gotErr, "fails with %s, not with %s: %s", wantErr.Code, got, what)
		require.Equal(t, wantErr.Code, string(gotErr.Code), what)
		return wantErr.Code
	}
	require.Nil(t, gotErr, what)
	require.Equal(t, string(want), string(got), what)
	require.True(t, json.Valid(got), what)
	return ""
}

// requireSameItems takes the list of a for_each step apart both ways, and resolves the arguments of each item.
func requireSameItems(t *testing.T, seed int64, doc string, p *plan.Plan, q *reference.Plan, step int, s sight) {
	t.Helper()
	what := fmt.Sprintf("seed %d, step %d: %s", seed, step, doc)
	got, gotErr := s.resolver(p).Items(step, s.Result)
	want, wantErr := q.Items(step, reference.Sight(s))
	if wantErr != nil || gotErr != nil {
		requireSame(t, what, nil, gotErr, nil, wantErr)
		return
	}
	require.Len(t, got, len(want), what)
	resolver := s.resolver(p)
	for i := range want {
		require.Equal(t, string(want[i]), string(got[i]), what)
		arguments, err := resolver.ItemArguments(step, got[i], s.Result)
		wanted, wantedErr := q.ItemArguments(step, want[i], reference.Sight(s))
		requireSame(t, what, arguments, err, wanted, wantedErr)
		if a := q.Steps[step].Approval; a == nil || !a.All {
			requireSameQuestion(t, doc, p, q, step, want[i], s)
		}
		if wantedErr == nil {
			requireSameNothing(t, doc, p, q, step, want[i], s)
		}
	}
}

// requireSameQuestion words the question of a step both ways, or of an item of one.
func requireSameQuestion(t *testing.T, doc string, p *plan.Plan, q *reference.Plan, step int, item []byte, s sight) {
	t.Helper()
	what := fmt.Sprintf("the question of step %d in %s", step, doc)
	got, gotErr := s.resolver(p).Question(step, item, s.Result)
	want, wantErr := q.Question(step, item, reference.Sight(s))
	if wantErr != nil {
		require.NotNil(t, gotErr, what)
		require.Equal(t, wantErr.Code, string(gotErr.Code), what)
		return
	}
	require.Nil(t, gotErr, what)
	if len(want) > 0 && want[0] == '"' {
		require.Equal(t, anyOf(t, want), got, what) // it is shown as the text that it is
		return
	}
	require.Equal(t, string(want), got, what)
}

// requireSameNothing compares which references found nothing, and has each found again at its place in the plan.
func requireSameNothing(t *testing.T, doc string, p *plan.Plan, q *reference.Plan, step int, item []byte, s sight) {
	t.Helper()
	var got []string
	for _, n := range s.resolver(p).Nothing(step, item, s.Result) {
		got = append(got, n.Reference)
		if text, plainKeys := valueAt(t, []byte(doc), n.At); plainKeys {
			require.Contains(t, text, n.Reference, "%s in %s", n.At, doc)
		}
		require.NotEmpty(t, n.Saw)
	}
	require.Equal(t, q.Nothing(step, item, reference.Sight(s)), got, "step %d of %s", step, doc)
}

// valueAt returns the text at a pointer, on into strings that hold JSON, its escapes undone; that of an object form is
// in it. The pointer is one into what the tool is given: behind a key with an escape nothing is found.
func valueAt(t *testing.T, doc []byte, pointer string) (found string, plainKeys bool) {
	t.Helper()
	read := func(text string) (v any) {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		require.NoError(t, d.Decode(&v), "%s", text)
		return v
	}
	v := read(string(doc))
	if pointer == "" {
		if form, is := v.(map[string]any); is {
			v = form["$ref"]
		}
		text, is := v.(string)
		require.True(t, is, "%s", doc)
		return text, true
	}
	token, rest, more := strings.Cut(pointer[1:], "/")
	if more {
		rest = "/" + rest
	}
	token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	if text, is := v.(string); is {
		v = read(text)
	}
	switch x := v.(type) {
	case map[string]any:
		if v = x[token]; v == nil {
			return "", false
		}
	case []any:
		i, err := strconv.Atoi(token)
		require.NoError(t, err)
		v = x[i]
	}
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return valueAt(t, raw, rest)
}

// accept reads a valid plan both ways.
func accept(t *testing.T, seed int64, doc string) (*plan.Plan, *reference.Plan) {
	t.Helper()
	p, report := plan.Parse([]byte(doc), nil)
	require.Empty(t, report.Problems, "seed %d: %s", seed, doc)
	q, err := reference.Parse([]byte(doc))
	require.NoError(t, err, "seed %d: %s", seed, doc)
	require.Len(t, p.Steps, len(q.Steps))
	for i, s := range q.Steps {
		require.Equal(t, s.ID, p.Steps[i].ID)
		require.Equal(t, s.Optional, p.Steps[i].Optional)
		require.ElementsMatch(t, s.Deps, p.Steps[i].Deps, "seed %d, step %d: %s", seed, i, doc)
		require.Equal(t, s.ForEach, p.Steps[i].ForEach != nil)
		if s.ForEach {
			require.Equal(t, s.As, p.Steps[i].ForEach.As)
		}
		a := p.Steps[i].Approval
		require.Equal(t, s.Approval != nil, a != nil)
		if a != nil {
			require.Equal(t, []bool{s.Approval.Timed, s.Approval.Approves, s.Approval.All}, []bool{a.Timeout > 0, a.ApproveOnTimeout, a.All})
		}
		require.Equal(t, s.Tool == "ask", p.Steps[i].Ask)
	}
	require.Equal(t, q.Outputs, p.Outputs)
	require.Equal(t, q.Second, p.Language == 2, "seed %d: %s", seed, doc)
	require.Equal(t, q.Approval != nil, p.Approval != nil, "seed %d: %s", seed, doc)
	return p, q
}

// open has tools that take any object and declare nothing of what they return.
type open map[string]reference.Contract

func (c open) Lookup(name string) (plan.Tool, bool) { _, ok := c[name]; return plan.Tool{}, ok }

func (c open) Names() []string { return slices.Sorted(maps.Keys(c)) }

// What a for_each step comes to is known without a declaration: no plan may refer to it in vain.
func TestGeneratedPlansAreValidForTheirTools(t *testing.T) {
	t.Parallel()
	for seed := range int64(5000) {
		c := reference.Generate(rand.New(rand.NewSource(seed)), reference.Options{ForEach: true, Stop: seed%2 == 0, Second: seed%3 > 0, Questions: seed%4 == 0})
		_, report := plan.Parse(c.Plan, open(c.Contracts))
		require.Empty(t, report.Problems, "seed %d: %s", seed, c.Plan)
	}
}

// Arguments and conditions of random plans, with the results that the plans really come to and with some of them missing.
func TestArgumentsAgree(t *testing.T) {
	t.Parallel()
	codes, forms, takings := map[string]int{}, map[string]int{}, map[string]int{}
	for seed, n := *firstSeed, 0; n < *cases; seed++ {
		c := reference.Generate(rand.New(rand.NewSource(seed)), reference.Options{ForEach: seed%2 == 0, Second: seed%3 > 0, Questions: seed%4 == 0})
		p, q := accept(t, seed, string(c.Plan))
		r, err := reference.RunAsking(c.Plan, c.Contracts, c.Call, c.Say)
		require.NoError(t, err)
		for form, count := range c.Forms {
			forms[form] += count
		}
		for step := range q.Steps {
			real := sightOf(q, r)
			some := real
			some.Result = func(dep int) ([]byte, bool) {
				result, ok := real.Result(dep)
				return result, ok && (dep+step+int(seed))%3 != 0
			}
			takings[requireSameTaking(t, string(c.Plan), p, q, step, real)]++
			takings[requireSameTaking(t, string(c.Plan), p, q, step, some)]++
			codes[requireSameArguments(t, seed, string(c.Plan), p, q, step, real)]++
			codes[requireSameArguments(t, seed, string(c.Plan), p, q, step, some)]++
			n += 2
		}
	}
	if *cases < 1000 {
		return // a replay
	}
	for _, code := range []string{"", "unresolved_ref", "invalid_arguments", "value", "value condition_failed", "value unresolved_ref"} {
		require.Greater(t, codes[code], *cases/500, "code %q", code)
	}
	for _, taking := range []string{"true", "false", "condition_failed", "none"} {
		require.Greater(t, takings[taking], *cases/500, taking)
	}
	for _, form := range slices.Concat(reference.Forms(), reference.EachForms(), reference.SecondForms()) {
		require.Greater(t, forms[form], *cases/500, form)
	}
	for _, form := range reference.QuestionForms() { // a fourth of the plans may ask, and most forms stand once in a plan
		require.Greater(t, forms[form], *cases/2000, form)
	}
}

// sightOf is what references see of a run that is over.
func sightOf(q *reference.Plan, r *reference.Result) sight {
	step := func(dep int) reference.Step { return r.Steps[q.Steps[dep].ID] }
	return sight{
		Result: func(dep int) ([]byte, bool) { return step(dep).Result, step(dep).Status == "succeeded" },
		Status: func(dep int) string { return step(dep).Status },
		Err: func(dep int) *reference.Err {
			if s := step(dep); s.Code != "" {
				return &reference.Err{Code: s.Code, Message: s.Message}
			}
			return nil
		},
	}
}

// Arguments of exactly 64 MiB are allowed, one byte more is not.
func TestTooLargeAgrees(t *testing.T) {
	t.Parallel()
	half := []byte(`"` + strings.Repeat("y", 32<<20-9) + `"`) // twice this and {"x":,"y":[]} lack one byte
	result := func(int) ([]byte, bool) { return half, true }
	for space, code := range map[string]string{" ": "", "  ": "too_large"} {
		arguments := `{"x":"$ref:a","y":["$ref:a"]` + space + `}`
		p, q := accept(t, 0, `{"steps":[{"id":"a","tool":"x"},{"id":"b","tool":"x","arguments":`+arguments+`}]}`)
		require.Equal(t, code, requireSameArguments(t, 0, "64 MiB", p, q, 1, of(result)))
	}
}

// A chain in which every step doubles what the one before gave is stopped before it explodes.
func TestDoublingIsStopped(t *testing.T) {
	t.Parallel()
	p, _ := accept(t, 0, `{"steps":[{"id":"a","tool":"x"},{"id":"b","tool":"x","arguments":{"x":"$ref:a","y":["$ref:a"]}}]}`)
	result := []byte(`"doubled"`)
	for range 60 {
		args, failure := p.Arguments(1, func(int) ([]byte, bool) { return result, true })
		if failure != nil {
			require.Equal(t, fault.TooLarge, failure.Code)
			return
		}
		result = args
	}
	t.Fatal("a chain that doubles was never stopped")
}

// crumbs are what random strings are made of: all that means something in a reference, and a little that doesn't.
var crumbs = []string{
	"$ref:", "$ref:a", "$ref:b", "${ref:", "${ref:a", "${ref:a}", "$$ref:a", "$", "{", "}", "a", "b", ".", ".x", ".0", ".01", "[0]", "[00]", "[", "]",
	`["k e.y"]`, `["\u0078"]`, `["\ud800"]`, `"\ud800"`, `["`, `"]`, `"`, `\"`, `\`, "||", " || ", "|", " ", "\t", "\n", "\v", "1", "1.0", "null", `"none"`, `"n e"`, "true", "-", ",", ";",
	":", "!", "?", ")", "'", "é", "\u00a0", "\u2028", "x", "@this", "*", "#", "é", ". ", "\x00", "\x7f", "<", "ref:", "{ref:a}", "[*]", "{{", "}}", "${", "[[", "]]", ">", "%", "#", "@", "$.", "steps.", "$REF ", "$Ref.", "5",
	"$error:", "$error:a", "${error:a.x}", "$$error:a", "$status:b", "${status:", "${input.", "${input.x}", "$$", "$input", "$last", "$index", "input", "index", "error:", "{status:",
}

func randomText(rng *rand.Rand) string {
	var b strings.Builder
	switch rng.Intn(5) {
	case 0, 1:
		b.WriteString("$ref:a")
	case 2:
		return foreignText(rng)
	}
	for range rng.Intn(7) {
		b.WriteString(crumbs[rng.Intn(len(crumbs))])
	}
	return b.String()
}

// foreignText is something like another language's reference.
func foreignText(rng *rand.Rand) string {
	of := func(from ...string) string { return from[rng.Intn(len(from))] }
	open := of("{{", "${{", "${", "{", "[[", "<", "%", "$", "$.", "#", "@", "$steps.", "ref:", "Ref:", "$ref.", "$REF ", "$rEf:", "$ref:", "(")
	shut := map[string]string{"{{": "}}", "${{": "}}", "${": "}", "{": "}", "[[": "]]", "<": ">", "%": "%", "$": "$"}[open]
	if rng.Intn(4) == 0 {
		shut = of("", "}", "}}", "$", "x")
	}
	inner := of("", "", "steps.", "$ref:", "steps.steps.") + of("a", "b", "c", "z", "5") + of("", ".x", "[0]", "[*].x", ".0", `["k e.y"]`, "..", " x", "||")
	return of("", "", " ", "\n", "see ") + open + of("", "", " ") + inner + of("", "", "\t") + shut + of("", "", " ", ".")
}

// requireSameVerdict returns one text to both as a value, a key and an object form, and compares what they say, and
// what they make of it.
func requireSameVerdict(t *testing.T, seed int64, text, result string) (accepted int) {
	t.Helper()
	quoted, err := json.Marshal(text)
	require.NoError(t, err)
	for _, arguments := range []string{`{"v":` + string(quoted) + `}`, `{` + string(quoted) + `:1}`, `{"v":{"$ref":` + string(quoted) + `}}`} {
		doc := `{"steps":[{"id":"a","tool":"x"},{"id":"b","tool":"x","arguments":` + arguments + `},{"id":"c","tool":"x"}]}`
		q, err := reference.Parse([]byte(doc))
		p, report := plan.Parse([]byte(doc), nil)
		if err != nil {
			require.NotEmpty(t, report.Problems, "seed %d: %s in %s", seed, err, doc)
			require.Equal(t, strings.Contains(err.Error(), "invalid_ref"), has(report, fault.InvalidRef), "seed %d: %s: %v", seed, doc, report.Problems)
			continue
		}
		require.Empty(t, report.Problems, "seed %d: %s", seed, doc)
		requireSameArguments(t, seed, doc, p, q, 1, of(func(int) ([]byte, bool) { return []byte(result), true }))
		requireSameArguments(t, seed, doc, p, q, 1, lost)
		accepted++
	}
	return accepted
}

// lost is a sight of steps that failed.
var lost = sight{
	Result: func(int) ([]byte, bool) { return nil, false }, Status: func(int) string { return "failed" },
	Err: func(int) *reference.Err { return &reference.Err{Code: "tool_failed", Message: "503 \"up\""} },
}

func has(r plan.Report, code fault.Code) bool {
	for _, p := range r.Problems {
		if p.Code == code {
			return true
		}
	}
	return false
}

const crumbResult = `{"x":{"0":1.0,"x":"t\"q"},"0":[7,{"x":null}],"k e.y":[ true ,"s"],"01":"s"}`

// Texts that are mostly no good references: both refuse the same ones.
func TestTextsAgree(t *testing.T) {
	t.Parallel()
	accepted := 0
	for seed := *firstSeed; seed < *firstSeed+int64(*cases); seed++ {
		rng := rand.New(rand.NewSource(seed))
		accepted += requireSameVerdict(t, seed, randomText(rng), crumbResult)
	}
	if *cases >= 1000 {
		require.Greater(t, accepted, *cases/10)
		require.Less(t, accepted, *cases*2)
	}
}

// Outputs of tools: valid ones with a byte changed, added or taken away here and there.
func TestOutputsAgree(t *testing.T) {
	t.Parallel()
	counts := map[bool]int{}
	for seed := *firstSeed; seed < *firstSeed+int64(*cases); seed++ {
		rng := rand.New(rand.NewSource(seed))
		c := reference.Generate(rng, reference.Options{Steps: 1})
		for _, s := range c.Scripts {
			body := spoil(rng, s.Reply.Body)
			text := s.Reply.Text || rng.Intn(4) == 0
			want, wantErr := reference.Convert(body, text)
			got, gotErr := plan.Output(body, text)
			require.Equal(t, wantErr == nil, gotErr == nil, "seed %d: %q: %v %v", seed, body, wantErr, gotErr)
			counts[wantErr == nil]++
			if wantErr != nil {
				require.Equal(t, wantErr.Code, string(gotErr.Code))
				continue
			}
			require.Equal(t, string(want), string(got), "seed %d: %q", seed, body)
		}
	}
	if *cases >= 1000 {
		require.Greater(t, counts[true], *cases/10)
		require.Greater(t, counts[false], *cases/100)
	}
}

func spoil(rng *rand.Rand, body []byte) []byte {
	out := append([]byte{}, body...)
	for range rng.Intn(3) {
		at := rng.Intn(len(out) + 1)
		odd := []string{"\xff", `"`, `\`, "{", "}", "[", "]", ",", ":", "0", " ", "\n", `\ud800`, `\udc00`, "\x00", "é", "1", "e"}
		insert := odd[rng.Intn(len(odd))]
		rest := append([]byte(insert), out[min(len(out), at+rng.Intn(2)):]...)
		out = append(out[:at:at], rest...)
	}
	return out
}

// FuzzTexts is TestTextsAgree with texts and results that the fuzzer makes up.
func FuzzTexts(f *testing.F) {
	for _, s := range []string{"$ref:a", "$ref:a.x || 1", `at ${ref:a["k e.y"]}.`, "$$ref:a", "$ref:a[0].x, $ref:a."} {
		f.Add(s, crumbResult)
	}
	f.Fuzz(func(t *testing.T, text, result string) {
		value, failure := reference.Convert([]byte(result), false)
		if failure != nil || len(text) > 900 || strings.ToValidUTF8(text, "") != text {
			return // a path over 1 KiB and bytes that are no text are refused for other reasons
		}
		requireSameVerdict(t, 0, text, string(value))
	})
}
