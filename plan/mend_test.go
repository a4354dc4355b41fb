package plan_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// Hints once sent a model in a circle: each was refused, with a hint to write what had been refused before.
func TestWhatAHintSaysIsNotRefusedInTurn(t *testing.T) {
	t.Parallel()
	tools := toolbox{
		"search": {Input: schema(t, `{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`),
			Output: schema(t, `{"type":"object","properties":{"hits":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"score":{"type":"number"}},"required":["id"],"additionalProperties":false}}},"additionalProperties":false}`)},
		"fetch": {Input: schema(t, `{"type":"object","properties":{"document_id":{"type":"string"},"n":{"type":"integer"}},"required":["document_id"],"additionalProperties":false}`),
			Output: schema(t, `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`)},
	}
	const s = `{"id":"s","tool":"search","arguments":{"q":"x"}},`
	const each = s + `{"id":"f","tool":"fetch","for_each":{"in":"$ref:s.hits","as":"h"},"arguments":{"document_id":"$ref:h.id"}},`
	fetch := func(ref string) string {
		return steps(s + `{"id":"f","tool":"fetch","arguments":{"document_id":` + quoted(ref) + `}}`)
	}
	text := func(ref string) string {
		return steps(each + `{"id":"g","tool":"search","arguments":{"q":` + quoted(ref) + `}}`)
	}
	list := func(in, arg string) string {
		return steps(s + `{"id":"f","tool":"fetch","for_each":` + in + `,"arguments":{"document_id":` + quoted(arg) + `}}`)
	}
	const once = `, or run the step once for each: "for_each": {"in": `
	for name, c := range map[string]struct{ plan, hint string }{
		"a list for one":               {fetch("$ref:s.hits[*].id"), `write "$ref:s.hits[0].id" for one item` + once + `"$ref:s.hits[*].id"}, and "$ref:item" here`},
		"an item of what [*] collects": {fetch("$ref:s.hits[*].id[2]"), `write "$ref:s.hits[2].id"`},
		"a list of objects":            {fetch("$ref:s.hits"), `write "$ref:s.hits[0].id" for one item` + once + `"$ref:s.hits"}, and "$ref:item.id" here`},
		"parts of another type":        {fetch("$ref:s.hits[0].document_id"), `write "$ref:s.hits[0].id"`},
		"a number for a text":          {fetch("$ref:s.hits[0].score"), `write "${ref:s.hits[0].score}" for it as text`},
		"a part of a list":             {fetch("$ref:s.hits.score"), `write "$ref:s.hits[0].id"`},
		"a for_each's results":         {text("$ref:f.results[0].text"), `$ref:f is that array itself: write "$ref:f[0].data.text"`},
		"all of a for_each":            {text("$ref:f[*].text"), `what the tool returned is under data: write "$ref:f[0].data.text"`},
		"all data of a for_each":       {text("$ref:f[*].data.text"), `write "$ref:f[0].data.text" for one item` + once + `"$ref:f[*].data.text"}, and "$ref:item" here`},
		"a summary":                    {text("$ref:f.summary.ok"), `references see the entries alone, and each has a status: write "$ref:f[0].status"`},
		"another step's path":          {fetch("$ref:S.hits[0].document_id"), `did you mean "$ref:s.hits[0].id"?`},
		"another language's":           {fetch("{{s.hits[0].document_id}}"), `write "$ref:s.hits[0].id"; for the plain text`},
		"text behind it":               {fetch("$ref:s.hits[0].document_id;"), `where text follows, write ${ref:s.hits[0].id}; `},
		"items":                        {list(`{"items":"$ref:s.hits","as":"h"}`, "$ref:h.id"), `write "in": "$ref:s.hits"; "items" is not known`},
		"items that are none":          {list(`{"items":"$ref:s.hits[0].id"}`, "x"), `write "in": "$ref:s.hits[*].id"; "items" is not known`},
		"a list alone":                 {list(`"$ref:s"`, "x"), `write "for_each": {"in": "$ref:s.hits", "as": "item"}`},
		"a list of another form":       {list(`{"in":"s"}`, "x"), `write "$ref:s.hits"`},
		"var":                          {list(`{"in":"$ref:s.hits","var":"h"}`, "$ref:h.id"), `write "as": "h" in the for_each; "var" is not known`},
		"an integer within text":       {steps(s + `{"id":"f","tool":"fetch","arguments":{"document_id":"x","n":"no. ${ref:s.hits[0].score}"}}`), `write "$ref:s.hits[0].score" alone`},
		"a text within text":           {steps(s + `{"id":"f","tool":"fetch","arguments":{"document_id":"x","n":"no. ${ref:s.hits[0].id}"}}`), `let a step make what is taken here`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, r := plan.Parse([]byte(c.plan), tools)
			require.Len(t, r.Problems, 1, "%v", r.Problems)
			require.Empty(t, r.Warnings, "what is ignored and makes something go wrong stands in the problem")
			require.Contains(t, r.Problems[0].Hint, c.hint)
			obey(t, []byte(c.plan), tools, r)
		})
	}
}

// The references that a hint proposes, each as it stands in a plan, in JSON.
var (
	proposed  = regexp.MustCompile(`\{"\$ref": "(?:[^"\\]|\\.)*"\}|"(?:[^"\\]|\\.)*"|\$\{ref:[^}"]*\}`)
	onceEach  = regexp.MustCompile(`run the step once for each: "for_each": \{"in": ("(?:[^"\\]|\\.)*")\}, and ("(?:[^"\\]|\\.)*"|\{.*\}) here`)
	plainText = regexp.MustCompile(`for the plain text .*|\{"\$text".*`)
)

// obey does what each hint says, one at a time, and requires that the reference isn't refused for the same kind of
// reason. It returns how many it tried.
func obey(t *testing.T, body []byte, tools plan.Catalog, r plan.Report) (tried int) {
	t.Helper()
	for _, x := range slices.Concat(r.Problems, r.Warnings) {
		if !slices.Contains([]fault.Code{fault.ImpossibleRef, fault.InvalidRef, fault.UnknownRef, fault.InvalidArguments, fault.InvalidValue}, x.Code) || strings.Contains(x.Hint, ", as in ") {
			continue
		}
		hint := plainText.ReplaceAllString(x.Hint, "")
		if m := onceEach.FindStringSubmatch(hint); m != nil {
			doc := asMap(t, body)
			step, _, _ := strings.Cut(strings.TrimPrefix(x.Path, "/steps/"), "/")
			set(doc, "/steps/"+step+"/for_each", json.RawMessage(`{"in":`+m[1]+`}`))
			at := strings.TrimSuffix(x.Path, "/$ref")
			set(doc, at, json.RawMessage(m[2]))
			requireTaken(t, doc, tools, x, "/steps/"+step+"/for_each/in", at)
			hint = onceEach.ReplaceAllString(hint, "")
			tried++
		}
		for _, raw := range proposed.FindAllString(hint, -1) {
			if strings.HasPrefix(raw, "${ref:") {
				raw = strconv.Quote(raw)
			}
			if !strings.Contains(raw, "ref") || strings.Contains(raw, "<id>") || !json.Valid([]byte(raw)) || raw == `"$ref"` || strings.HasPrefix(raw, `"$ref:"`) {
				continue
			}
			doc, at := asMap(t, body), x.Path
			if strings.HasPrefix(raw, "{") {
				at = strings.TrimSuffix(at, "/$ref")
			}
			if strings.HasSuffix(at, "/for_each") {
				set(doc, at, json.RawMessage(`{"in":`+raw+`}`))
				at += "/in"
			} else {
				set(doc, at, json.RawMessage(raw))
			}
			requireTaken(t, doc, tools, x, at)
			tried++
		}
	}
	return tried
}

// requireTaken requires that nothing is wrong with the references at some places of a plan.
func requireTaken(t *testing.T, doc map[string]any, tools plan.Catalog, why fault.Problem, places ...string) {
	t.Helper()
	_, r := plan.Parse(jsonOf(doc), tools)
	for _, x := range slices.Concat(r.Problems, r.Warnings) {
		isRef := x.Code == fault.ImpossibleRef || x.Code == fault.InvalidRef || x.Code == fault.UnknownRef
		for _, at := range places {
			require.False(t, isRef && (x.Path == at || x.Path == at+"/$ref"), "%s\n%v\nhad said: %s", jsonOf(doc), x, why.Hint)
		}
	}
}

// set puts a value into a decoded plan.
func set(doc any, at string, value json.RawMessage) {
	var v any
	if json.Unmarshal(value, &v) != nil {
		panic(string(value))
	}
	keys := strings.Split(at[1:], "/")
	for i, key := range keys {
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		last := i == len(keys)-1
		switch in := doc.(type) {
		case map[string]any:
			if last {
				in[key] = v
			}
			doc = in[key]
		case []any:
			n, _ := strconv.Atoi(key)
			if last {
				in[n] = v
			}
			doc = in[n]
		}
	}
}

// Whatever schemas tools declare and however a reference is wrong: what a hint proposes in its place is not refused
// there.
func TestNoHintIsRefused(t *testing.T) {
	t.Parallel()
	r := planMaker{rand.New(rand.NewPCG(11, 12))}
	tried, plans := 0, 0
	for range 400 {
		tools := toolbox{}
		for _, name := range []string{"one", "two", "three"} {
			tools[name] = plan.Tool{Input: schema(t, r.input()), Output: schema(t, r.output(3))}
		}
		for range 10 {
			body := r.plan()
			_, report := plan.Parse(body, tools)
			n := obey(t, body, tools, report)
			if tried += n; n > 0 {
				plans++
			}
		}
	}
	t.Log(tried, "references of hints in", plans, "plans")
	require.Greater(t, tried, 2_000)
	require.Greater(t, plans, 1_000)
}

// The same for good plans that are broken the way models break them.
func TestNoHintToAModelIsRefused(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, g := range goodPlans(t) {
		for _, m := range mistakes {
			b := g.clone(t)
			if m.breaks(b) == "" {
				continue
			}
			if _, r := plan.Parse(b.body(), b.tools); r.Problems != nil {
				tried += obey(t, b.body(), b.tools, r)
			}
		}
	}
	t.Log(tried, "references of hints")
	require.Greater(t, tried, 500)
}

// planMaker makes schemas, and plans whose references are mostly wrong.
type planMaker struct{ *rand.Rand }

func (r planMaker) of(words ...string) string { return words[r.IntN(len(words))] }

// output is the schema of a result: objects and arrays of few names, and scalars.
func (r planMaker) output(depth int) string {
	switch n := r.IntN(6); {
	case n < 3 && depth > 0:
		var props []string
		for _, name := range []string{"id", "ids", "n", "list", "a b"}[r.IntN(3):][:1+r.IntN(3)] {
			props = append(props, quoted(name)+":"+r.output(depth-1))
		}
		return fmt.Sprintf(`{"type":"object","properties":{%s}%s}`, strings.Join(props, ","), r.of(``, `,"additionalProperties":false`, `,"additionalProperties":false`))
	case n < 5 && depth > 0:
		return `{"type":"array","items":` + r.output(depth-1) + `}`
	}
	return r.of(`{"type":"string"}`, `{"type":"number"}`, `{"type":"integer"}`, `{"type":["string","null"]}`, `{"enum":["up","down"]}`, `{}`)
}

// input is the schema of the arguments, of which x is what references go to.
func (r planMaker) input() string {
	x := r.of(`{"type":"string"}`, `{"type":"number"}`, `{"type":"array","items":{"type":"string"}}`, `{"type":"object"}`, `{"enum":["up"]}`, `{}`, r.output(2))
	return `{"type":"object","properties":{"x":` + x + `}}`
}

func (r planMaker) plan() []byte {
	list := r.of(`,"for_each":{"in":[1,2]}`, ``, ``, `,"for_each":{"in":"$ref:step_1.list"}`)
	in := r.of(``, ``, ``, fmt.Sprintf(`,"for_each":{"in":%s}`, r.ref()), fmt.Sprintf(`,"for_each":{%s:%s}`, r.of(`"items"`, `"over"`), r.ref()), `,"for_each":`+r.ref())
	x := `"x":` + r.ref()
	if r.IntN(8) == 0 {
		x = `"x":{"id":` + r.ref() + `}`
	}
	return []byte(steps(fmt.Sprintf(`{"id":"step_1","tool":%q},{"id":"step_2","tool":%q%s},{"id":"last","tool":%q%s,"arguments":{%s}}`,
		r.of("one", "two"), r.of("one", "two", "three"), list, r.of("one", "two", "three"), in, x)))
}

// ref is a reference in one of its forms, right or wrong, in JSON.
func (r planMaker) ref() string {
	ref := r.of("step_1", "step_2", "step_2", "stp_1", "Step_2", "item", "steps.step_1")
	for range r.IntN(4) {
		ref += r.of(".id", ".ids", ".n", ".list", ".results", ".data", ".summary", `["a b"]`, "[0]", "[*]", "[1]", ".length", ".status")
	}
	form := r.of("$ref:%s", "$ref:%s", "$ref:%s", "$ref:%s", "see ${ref:%s} there", "{{%s}}", "$%s$", "see {{%s}} there", "$ref:%s;", "$ref:%s || $ref:step_1", "%s")
	if r.IntN(6) == 0 {
		return `{"$ref":` + quoted(ref) + `}`
	}
	return quoted(fmt.Sprintf(form, ref))
}
