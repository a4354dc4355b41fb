package streamed_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/internal/streamed"
	"github.com/stepjet/stepjet/plan"
)

// cut hands a text to a reader in pieces that cut says the length of.
func cut(text string, length func() int) (parts []streamed.Part, r *streamed.Reader, err error) {
	r = streamed.New(0)
	for text != "" {
		n := min(length(), len(text))
		more, err := r.Write([]byte(text[:n]))
		parts, text = append(parts, more...), text[n:]
		if err != nil {
			return parts, r, err
		}
	}
	return parts, r, r.End()
}

func one() int { return 1 }

// written puts parts together to a plan.
func written(parts []streamed.Part) string {
	var fields, steps []string
	for _, p := range parts {
		switch p.Kind {
		case streamed.Field:
			fields = append(fields, fmt.Sprintf("%q:%s", p.Key, p.Value))
		case streamed.OneStep:
			steps = append(steps, string(p.Value))
		case streamed.StepsEnd:
			fields = append(fields, `"steps":[`+strings.Join(steps, ",")+"]")
		case streamed.StepsOpen, streamed.PlanEnd: // nothing is written of them
		}
	}
	return "{" + strings.Join(fields, ",") + "}"
}

const shopping = `{"timeout": "90s", "thought": "ünï €ö 😀 \ud83d\ude00 \"}]\\",
 "steps": [ {"id":"a","tool":"x","arguments":{"n":[1,-2.5e+10,true,null,"}"]}} , {"id":"b","value":"$ref:a"}, 12 ], "output" : 12.50 , "concurrency":3}`

// TestTextAround: what stands around the plan is left out, be it JSON or not.
func TestTextAround(t *testing.T) {
	t.Parallel()
	for _, around := range [][2]string{
		{"", ""}, {" \n", "\n"}, {"```json\n", "\n```"}, {"\ufeff```\n", "\n```\nThat is {all} of it: {\"n\": 1} {\"a\"}. {\"b\": "},
		{`Given {"city": "Oslo"} and {x}, {"a": [} {"b{` + "\n" + `I {"write" `, " done"},
	} {
		parts, r, err := cut(around[0]+shopping+around[1], one)
		require.NoError(t, err, "%v", around)
		require.Equal(t, shopping, string(r.Plan()))
		require.JSONEq(t, shopping, written(parts))
		var kinds []streamed.Kind
		for _, p := range parts {
			kinds = append(kinds, p.Kind)
		}
		require.Equal(t, []streamed.Kind{
			streamed.Field, streamed.Field, streamed.StepsOpen, streamed.OneStep, streamed.OneStep, streamed.OneStep, streamed.StepsEnd,
			streamed.Field, streamed.Field, streamed.PlanEnd,
		}, kinds)
	}
}

// TestAnyCut: whatever the cut, the parts are the same, and a part comes with its last byte.
func TestAnyCut(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewSource(7))
	for range 300 {
		body := string(reference.Generate(rng, reference.Options{ForEach: true, Second: true}).Plan)
		whole, _, err := cut(body, func() int { return len(body) })
		require.NoError(t, err, body)
		single, r, err := cut(body, one)
		require.NoError(t, err, body)
		some, _, err := cut(body, func() int { return 1 + rng.Intn(40) })
		require.NoError(t, err, body)
		require.Equal(t, whole, single, body)
		require.Equal(t, whole, some, body)
		require.Equal(t, strings.TrimSpace(body), string(r.Plan()))
		require.Equal(t, shapeOf(t, body), shapeOf(t, written(whole)))
	}
}

// shapeOf is a plan with the order of its fields left out, and nothing else.
func shapeOf(t *testing.T, body string) (fields map[string]json.RawMessage) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(body), &fields), body)
	var steps []json.RawMessage
	require.NoError(t, json.Unmarshal(fields["steps"], &steps))
	fields["steps"] = nil
	for i, s := range steps {
		fields[fmt.Sprint(i)] = s
	}
	return fields
}

// TestAStepComesWithItsBrace and not before, and what is no plan is told of by nobody.
func TestAStepComesWithItsBrace(t *testing.T) {
	t.Parallel()
	r := streamed.New(0)
	for _, part := range []struct {
		text string
		kind []streamed.Kind
	}{
		{`{"timeout": "9`, nil}, {`0s", "ste`, nil}, {`ps": [{"id"`, []streamed.Kind{streamed.Field, streamed.StepsOpen}}, {`: "}"`, nil},
		{`}`, []streamed.Kind{streamed.OneStep}}, {`, 1`, nil}, {`2`, nil}, {` `, []streamed.Kind{streamed.OneStep}}, {`]`, []streamed.Kind{streamed.StepsEnd}},
		{`, "output": "$ref:a"`, []streamed.Kind{streamed.Field}}, {`}`, []streamed.Kind{streamed.PlanEnd}}, {` {"a": 1} `, nil},
	} {
		parts, err := r.Write([]byte(part.text))
		require.NoError(t, err)
		var kinds []streamed.Kind
		for _, p := range parts {
			kinds = append(kinds, p.Kind)
		}
		require.Equal(t, part.kind, kinds, part.text)
	}
}

// TestBadText is refused at the byte where it can't become a plan any more, whatever comes behind.
func TestBadText(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`[`, plan.MaxDepth-2)
	for _, bad := range []struct {
		text string
		code fault.Code
		end  bool // it shows at the end alone
	}{
		{`{"steps":[{"id":"a"]`, fault.MalformedJSON, false},
		{`{"steps":[{"id":"a"}}`, fault.MalformedJSON, false},
		{`{"steps":[{"id" "a"}`, fault.MalformedJSON, false},
		{`{"steps":[{"id":"a"} {`, fault.MalformedJSON, false},
		{`{"steps":[{"id":"a"},]`, fault.MalformedJSON, false},
		{`{"steps":[,`, fault.MalformedJSON, false},
		{`{"steps":[{"id":'`, fault.MalformedJSON, false},
		{`{"steps":[{"id":"a` + "\n", fault.MalformedJSON, false},
		{`{"steps":[{"id": I`, fault.MalformedJSON, false},
		{`{"steps":[{"n":01}`, fault.MalformedJSON, false},
		{`{"steps":[nul,`, fault.MalformedJSON, false},
		{`{"steps":[{"n":"\x"}`, fault.MalformedJSON, false},
		{`{"steps":[],}`, fault.MalformedJSON, false},
		{`{"steps":[],1`, fault.MalformedJSON, false},
		{`{"steps" [`, fault.MalformedJSON, false},
		{`{"steps":[{"a":` + deep, fault.MalformedJSON, false},
		{`{"steps":[{"a":1,"a":2}`, fault.DuplicateKey, false},
		{`{"steps":[],"steps"`, fault.DuplicateKey, false},
		{`{"steps":[],"st\u0065ps"`, fault.DuplicateKey, false},
		{`{"steps":[{"a":"` + "\xff" + `"}`, fault.InvalidUTF8, false},
		{`{"steps":[{"a":"\ud83d"}`, fault.InvalidUTF8, false},
		{`{"steps":[]} no: {"steps"`, fault.MalformedJSON, false},
		{`{"steps":[` + strings.Repeat(`1,`, plan.MaxSteps) + `1,`, fault.LimitExceeded, false},
		{`{"steps":[{"a":"` + strings.Repeat(`x`, plan.MaxBytes+1-len(`{"steps":[{"a":"`)), fault.LimitExceeded, false},
		{`{"steps":[{"id":"a"`, fault.MalformedJSON, true},
		{`{"steps":[{"id":"a"}]`, fault.MalformedJSON, true},
		{`{"steps":[{"id":"a"}],"output`, fault.MalformedJSON, true},
		{`{"timeout":"9`, fault.MalformedJSON, true},
		{`no plan at all`, fault.MalformedJSON, true},
		{``, fault.MalformedJSON, true},
	} {
		_, r, err := cut(bad.text, one)
		require.Equal(t, bad.code, fault.CodeOf(err), "%.60s: %v", bad.text, err)
		require.NotEmpty(t, fault.As(err).Hint, "%.60s", bad.text)
		require.LessOrEqual(t, len(r.Plan()), plan.MaxBytes+1, "%.60s", bad.text)
		if bad.end {
			continue
		}
		_, again := r.Write([]byte(`{"steps":[{"id":"a"}]}`))
		require.Equal(t, err, again, "it failed for good")
		r = streamed.New(0)
		_, before := r.Write([]byte(bad.text[:len(bad.text)-1]))
		require.NoError(t, before, "%.60s: not earlier", bad.text)
	}
}

// TestRandomText comes to the same in any cut, and what is read as a plan is one.
func TestRandomText(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewSource(3))
	words := []string{`{`, `}`, `[`, `]`, `"`, `\`, `,`, `:`, `"steps"`, `"steps":[`, `{"steps":[`, `"a"`, `"a":`, `1`, `-`, `true`, ` `, "\n", `é`, "\xc3", `{"id":"a"}`, `,"output":"x"`, "]}"}
	plans := 0
	for range 20_000 {
		var b strings.Builder
		for range rng.Intn(12) {
			b.WriteString(words[rng.Intn(len(words))])
		}
		text := b.String()
		whole, _, err := cut(text, func() int { return len(text) })
		single, r, again := cut(text, one)
		require.Equal(t, fault.CodeOf(err), fault.CodeOf(again), "%q", text)
		if err != nil {
			continue
		}
		require.Equal(t, whole, single, "%q", text)
		require.True(t, json.Valid(r.Plan()) || strings.Contains(text, "\xc3"), "%q", text)
		if len(whole) > 0 {
			plans++
		}
	}
	require.Greater(t, plans, 50)
}

// holds writes steps and returns which began with which.
func holds(last string, steps ...string) (began [][]string) {
	h := streamed.NewHold(func(s *streamed.Step) bool { return last != "" && strings.Contains(strings.Join(s.Tools, " "), last) })
	ids := func(list []*streamed.Step) (ids []string) {
		for _, s := range list {
			ids = append(ids, s.ID)
		}
		return ids
	}
	for _, s := range steps {
		began = append(began, ids(h.Add(json.RawMessage(s))))
	}
	return append(began, ids(h.End()))
}

// TestHold: a step begins with the last that it refers to, in whatever form.
func TestHold(t *testing.T) {
	t.Parallel()
	for _, form := range []string{
		`"arguments":{"x":["$ref:b.n"]}`, `"arguments":{"x":"see ${ref:b[0].n}!"}`, `"arguments":{"x":{"$ref":"b.n"}}`, `"arguments":{"x":"$ref:a.z || $ref:b"}`,
		`"arguments":"{\"x\":\"$ref:b\"}"`, `"arguments":"{\"x\":\"\\u0024ref:b\"}"`, `"arguments":{"\u0024ref":"b"}`, `"arguments":{"x":"\u0024ref:b"}`, `"depends_on":["a","b"]`,
		`"if":"$ref:b.n > 2"`, `"if":"$status:b == 'failed'"`, `"arguments":{"why":"${error:b.message}"}`, `"for_each":{"in":"$ref:b","as":"x"}`,
		`"value":{"$calc":"1 + $ref:b"}`, `"approval":{"ask":"$ref:b?"}`, `"repeat":{"until":"$ref:b.n == $last"}`,
	} {
		require.Equal(t, [][]string{{"a"}, nil, {"x", "b"}, nil}, holds("", `{"id":"a","tool":"t"}`, `{"id":"x",`+form+`}`, `{"id":"b","tool":"t"}`), form)
	}
	for _, form := range []string{
		`"tool":"t"`, `"arguments":{"x":"$ref:x"}`, `"plan":{"steps":[{"id":"b","tool":"t"},{"id":"c","value":"$ref:b"}]}`, `"arguments":{"b":"b"}`,
		`"arguments":{"x":"$ref:b.n"},"for_each":{"in":[1],"as":"b"}`, `"arguments":{"x":"$ref:item.n"},"for_each":{"in":[1]}`,
	} {
		require.Equal(t, [][]string{{"x"}, {"b"}, nil}, holds("", `{"id":"x",`+form+`}`, `{"id":"b","tool":"t"}`), form)
	}
	require.Equal(t, [][]string{nil, nil, {"a", "b", "c"}, nil}, holds("", `{"id":"a","value":"$ref:b"}`, `{"id":"b","value":"$ref:c"}`, `{"id":"c","value":1}`))
}

// TestHeldToTheEnd: what refers to itself through others, to nobody or may begin last goes at the end, behind what it
// refers to.
func TestHeldToTheEnd(t *testing.T) {
	t.Parallel()
	require.Equal(t, [][]string{nil, nil, {"d"}, nil, {"a", "b", "x"}}, holds("",
		`{"id":"a","value":"$ref:b"}`, `{"id":"b","value":"$ref:a"}`, `{"id":"d","value":1}`, `{"id":"x","value":"$ref:nobody"}`))
	require.Equal(t, [][]string{nil, nil, {"c"}, nil, {"drop", "after", "lost"}}, holds("delete",
		`{"id":"lost","value":"$ref:nobody"}`, `{"id":"after","value":"$ref:drop"}`, `{"id":"c","tool":"create"}`,
		`{"id":"drop","tool":"delete","arguments":{"x":"$ref:c"}}`))
}

// TestFields: before the steps most is submitted as it is, behind them nothing may change what was said.
func TestFields(t *testing.T) {
	t.Parallel()
	field := func(text string) streamed.Part {
		key, value, _ := strings.Cut(text, ":")
		return streamed.Part{Kind: streamed.Field, Key: key, Value: json.RawMessage(value)}
	}
	for text, whole := range map[string]bool{
		`timeout:"90s"`: false, `concurrency:3`: false, `on_missing:"error"`: false, `on_failure:"continue"`: false, `thought:"hm"`: false, `approval:null`: false,
		`open:true`: false, `open:false`: false, `output:"$ref:z"`: false, `output_steps:["z"]`: false, `output_steps:[]`: false,
		`on_failure:"stop"`: true, `schedule:"waves"`: true, `approval:true`: true, `open_for:"1s"`: true, `output_steps:"z"`: true, `on_error:"stop"`: true, `timeout:5`: true,
		`version:1`: true, `calls:[]`: true, `template:"x"`: true, `tasks:[]`: false,
	} {
		require.Equal(t, whole, streamed.NewOptions([]streamed.Part{field(text)}).Whole, text)
	}
	for text, late := range map[string]bool{
		`timeout:"90s"`: false, `concurrency:3`: false, `on_missing:"error"`: false, `on_failure:"continue"`: true, `thought:"hm"`: true, `approval:null`: true,
		`on_failure:"stop"`: false, `schedule:"waves"`: false, `schedule:"dataflow"`: true, `approval:true`: false, `open:true`: false, `open:false`: true, `open_for:"1s"`: false,
		`timeout:5`: false, `on_error:"stop"`: false, `output:1`: false, `output_steps:["a"]`: false, `output_steps:null`: true,
	} {
		require.Equal(t, late, streamed.Late(field(text)), text)
	}
	o := streamed.NewOptions([]streamed.Part{field(`timeout:"9s"`), field(`output:"$ref:z"`), field(`thought:{"a":1}`)})
	require.Equal(t, `{"timeout":"9s","thought":{"a":1},"open":true,"open_for":"1m0s","steps":[{"id":"a"},{"id":"b"}]}`,
		string(o.Begun(time.Minute, []json.RawMessage{[]byte(`{"id":"a"}`), []byte(`{"id":"b"}`)})))
	require.JSONEq(t, `"$ref:z"`, string(o.Output))
	require.False(t, o.Returns(field(`output_steps:["a"]`)), "there is one already")
	o = streamed.NewOptions([]streamed.Part{field(`open:true`), field(`open_for:"5m"`)})
	require.False(t, o.Whole)
	require.Equal(t, `{"open_for":"5m","open":true,"steps":[1]}`, string(o.Begun(time.Minute, []json.RawMessage{[]byte(`1`)})))
}
