package plan_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// withText is a plan whose step b is given a text; a comes before it.
func withText(text string) []byte {
	raw, _ := json.Marshal(text)
	return []byte(steps(`{"id":"a","tool":"echo"},{"id":"b","tool":"echo","arguments":{"v":` + string(raw) + `}}`))
}

// What begins with the words of references that have no meaning yet, and is none of them.
var plainTexts = []string{
	"$error", "$errors:a", "$error: no luck", "$error:", "error:a", "Status: $status: ok", "${error:}", "${status: a}", "$Error:a", "${inputs.x}", "${input}", "${input[0]}", "${input",
	"$inputs", "$input ", " $input", "$input-x", "$input:", "$input, please", "see $input", "$input.a is it", "$input. Then", "$lastname", "$last_index", "$last!", "$last|x",
	"$index.html", "$index[0]", "$indexes", "$index.html || x", "the $index", "${index}", "${last.x}", "$Input", "input", "$input?x=1",
}

var reservedTexts = []string{
	"${input.x}", "see ${input.user name", "x$$${input.}", "$input", "$input.x", "$input[0].y", `$input["k e.y"]`, "$input.", "$input..x", "$input[x]", "$input.a,b",
	"$input || 1", "$input.a  ||  $ref:a", "$last", "$last.items[*].id", "$last || null", "$index", "$index||0", "$last.fm",
}

// References to how step a ended, and what is broken of them or of another step.
var (
	endedTexts       = []string{"$error:a", "failed: $error:a.message!", "${error:a}", "it is ${status:a}", "$$$error:a", "$error:a.code || \"none\"", "$status:a || $ref:a", "$error:a code"}
	brokenEndedTexts = []string{"$status:b", "$status:nobody", "x$$$$${status:-1}$$$$${error:a.}"}
)

// texts2 are all that language 1 took for text.
var texts2 = slices.Concat(reservedTexts, endedTexts, brokenEndedTexts)

func TestReferencesToHowAStepEnded(t *testing.T) {
	t.Parallel()
	for _, text := range endedTexts {
		p, r := plan.Parse(withText(text), nil)
		require.Empty(t, r.Problems, text)
		require.Equal(t, 2, p.Language, text)
		require.True(t, p.Regarded(0), text)
		require.Equal(t, []string{plan.Language2}, p.Needs())
	}
	for _, text := range brokenEndedTexts {
		p, r := plan.Parse(withText(text), nil)
		require.Nil(t, p, text)
		require.NotEmpty(t, r.Problems, text)
	}
}

func TestReservedReferences(t *testing.T) {
	t.Parallel()
	for _, text := range reservedTexts {
		p, r := plan.Parse(withText(text), corpusTools(t))
		require.Nil(t, p, text)
		for _, x := range r.Problems {
			require.Equal(t, fault.InvalidRef, x.Code, "%s: %v", text, r.Problems)
			require.Equal(t, "/steps/1/arguments/v", x.Path)
			require.Contains(t, x.Message, "has no meaning here", text)
			require.Contains(t, x.Hint, "for the plain text write", text)
		}
	}
	for _, text := range plainTexts {
		p, r := plan.Parse(withText(text), nil)
		require.Empty(t, r.Problems, text)
		require.Equal(t, decoded(t, mustJSON(t, map[string]string{"v": text})), decoded(t, argumentsOf(t, p)), text)
	}
}

// Who follows a hint is given the text that was refused.
func TestHintsOfReservedReferences(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"${input.x}", "$input", "$input.x", "$last || null", "$index"} {
		_, r := plan.Parse(withText(text), nil)
		require.Len(t, r.Problems, 1, text)
		_, quoted, found := strings.Cut(r.Problems[0].Hint, "for the plain text write ")
		require.True(t, found, r.Problems[0].Hint)
		var escaped string
		require.NoError(t, json.Unmarshal([]byte(quoted), &escaped), quoted)
		p, r := plan.Parse(withText(escaped), nil)
		require.Empty(t, r.Problems, text)
		require.Equal(t, string(mustJSON(t, map[string]string{"v": text})), string(argumentsOf(t, p)))
	}
}

// Each has an escape, and escapes have theirs.
func TestEscapesOfReservedReferences(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"$$error:a": "$error:a", "$$$$error:a": "$$error:a", "see $${status:a}, $$status:b": "see ${status:a}, $status:b", "$${input.x}": "${input.x}",
		"$$input": "$input", "$$$input": "$$input", "$$$$last.x": "$$$last.x", "$$index": "$index", "$$input.x || $$ref:a": "$input.x || $ref:a",
		"$$error: x": "$$error: x", "$$inputs": "$$inputs", "$$index.html": "$$index.html", "see $$input": "see $$input",
	} {
		p, r := plan.Parse(withText(text), nil)
		require.Empty(t, r.Problems, text)
		require.Equal(t, want, decoded(t, argumentsOf(t, p)).(map[string]any)["v"], text)
	}
	p, r := plan.Parse([]byte(steps(`{"id":"b","tool":"echo","arguments":{"$$error:a":1,"$$$$status:a x $${input.":2,"$last":{"$index":3},"$$input":4}}`)), nil)
	require.Empty(t, r.Problems)
	require.Equal(t, `{"$error:a":1,"$$status:a x ${input.":2,"$last":{"$index":3},"$$input":4}`, string(argumentsOf(t, p)))
	_, r = plan.Parse([]byte(steps(`{"id":"b","tool":"echo","arguments":{"$error:a":1}}`)), nil)
	require.Equal(t, []string{"invalid_ref"}, codes(r.Problems), "no key can hold a reference")
	for _, text := range append(texts2, plainTexts...) {
		requireEscapes(t, mustJSON(t, map[string]any{"v": []string{text, "$" + text}, "$error:" + text: text}))
	}
}

// What Escape writes for them is read the same by a Stepjet for which they had no meaning.
func TestEscapedTextOfLanguage2IsThatOfLanguage1(t *testing.T) {
	t.Parallel()
	for _, text := range texts2 {
		args, err := plan.Escape(mustJSON(t, map[string]any{"v": text}))
		require.NoError(t, err)
		require.JSONEq(t, string(mustJSON(t, map[string]any{"v": map[string]string{"$text": text}})), string(args), text)
	}
}

func TestReservedInALanguageOfBefore(t *testing.T) {
	t.Parallel()
	before := plan.Limits{Language1: true}
	for _, text := range append(texts2, plainTexts...) {
		if strings.Contains(text, "$ref:") || strings.Contains(text, "$$$$") { // a reference, and escapes
			continue
		}
		p, r := plan.ParseLimited(withText(text), nil, before)
		require.Empty(t, r.Problems, text)
		require.Equal(t, string(mustJSON(t, map[string]string{"v": text})), string(argumentsOf(t, p)), text)
		require.NotNil(t, plan.Accepted(withText(text), nil))
	}
	body := []byte(`{"output":{"x":1},"open":true,"steps":[{"id":"b","tool":"echo","plan":"think","output":"r","value":3,"agent":"me","arguments":{"$error:a":"$input"}}]}`)
	p, r := plan.ParseLimited(body, nil, before)
	require.Empty(t, r.Problems)
	require.Len(t, r.Warnings, 6)
	require.Equal(t, `{"$error:a":"$input"}`, string(argumentsOf(t, p)))
	_, r = plan.Parse(body, nil)
	require.NotEmpty(t, r.Problems)
	require.NotNil(t, plan.Accepted(body, nil))
	require.Nil(t, plan.Accepted([]byte(`{"steps":[{"id":"b"}]}`), nil))
}

// An argument that stands beside the arguments under a reserved name is named by both problems.
func TestAReservedFieldThatIsAnArgument(t *testing.T) {
	t.Parallel()
	tools := catalog{"render": schema(t, `{"type":"object","properties":{"template":{}},"required":["template"]}`)}
	_, r := plan.Parse([]byte(steps(`{"id":"a","tool":"render","template":{"x":1}}`)), tools)
	require.Equal(t, []string{"unknown_field /steps/0/template", "invalid_arguments /steps/0/arguments"}, found(r.Problems))
	require.Contains(t, r.Problems[1].Hint, `write "arguments": {"template": {"x":1}}`)
}

// Where the words of reserved references are those of steps, another language's reference is what was meant.
func TestAStepCalledInput(t *testing.T) {
	t.Parallel()
	_, r := plan.Parse([]byte(steps(`{"id":"input","tool":"echo"},{"id":"b","tool":"echo","arguments":{"v":"$input.x"}}`)), nil)
	require.Len(t, r.Problems, 1)
	require.Contains(t, r.Problems[0].Hint, `write "$ref:input.x"`)
}

// A list that is a reserved reference is refused for that alone.
func TestReservedLists(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"$input.items", "$last"} {
		_, r := plan.Parse([]byte(steps(fmt.Sprintf(`{"id":"a","tool":"echo"},{"id":"b","tool":"echo","for_each":{"in":%q}}`, in))), nil)
		require.Equal(t, []string{"invalid_ref /steps/1/for_each/in"}, found(r.Problems), in)
		require.Contains(t, r.Problems[0].Message, "has no meaning here")
	}
}

func TestAPlanNeedsNothing(t *testing.T) {
	t.Parallel()
	p, _ := plan.Parse([]byte(diamond), nil)
	require.Empty(t, p.Needs())
}

// mustJSON writes JSON as people do, without escapes for HTML.
func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(v))
	return []byte(strings.TrimSpace(b.String()))
}

// argumentsOf returns what a plan's last step is given, which refers to nothing.
func argumentsOf(t *testing.T, p *plan.Plan) []byte {
	t.Helper()
	out, err := p.Arguments(len(p.Steps)-1, func(int) ([]byte, bool) { panic("there is nothing to refer to") })
	require.Nil(t, err)
	return out
}
