package model

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/jsonmend"
)

// read plays an answer of Chat Completions, a piece of text an event, and returns it with the number of events that
// were read.
func read(t *testing.T, request string, finish string, pieces ...string) (*Answer, int) {
	t.Helper()
	r := NewReader(Prepare(parsed(t, request), modelOf(OpenAI), false))
	n := 0
	for _, p := range append(pieces, "") {
		end := "null"
		if n == len(pieces) {
			end = `"` + finish + `"`
		}
		done, f := r.Event("", []byte(`{"choices":[{"index":0,"delta":{"content":`+string(encode(p))+`},"finish_reason":`+end+`}]}`))
		require.Nil(t, f)
		n++
		if done {
			break
		}
	}
	a, f := r.Closed()
	require.Nil(t, f)
	return a, n
}

func TestAnswersOfEachMode(t *testing.T) {
	t.Parallel()
	const cut = `,"problems":[{"at":"","message":"the answer ended at its longest length and is not whole","hint":"answer with less at a time, or raise max_output_tokens"}]`
	const none = `,"problems":[{"at":"","message":"the answer is not the JSON that was asked for","hint":"answer with one JSON object and nothing else"}]`
	for _, c := range []struct{ mode, finish, text, want string }{
		{"text", "stop", `{"a":1}`, `{"text":"{\"a\":1}"`},
		{"text", "length", `Once`, `{"text":"Once","truncated":true`},
		{"plan", "stop", ` {"steps": [], "output": 7} `, `{"steps":[],"output":7`},
		{"plan", "stop", "```json\n{\"steps\":[]}\n```", `{"steps":[]`},
		{"plan", "stop", "Here {you} are:\n```\n{\"steps\":[]}\n```", `{"steps":[]`},
		{"plan", "stop", `I refuse {"steps":[]}`, `{"text":"I refuse {\"steps\":[]}"` + flawed(jsonmend.Amid)},
		{"plan", "stop", `{"steps":[]} {"steps":[1]}`, `{"text":"{\"steps\":[]} {\"steps\":[1]}"` + flawed(jsonmend.Several)},
		{"plan", "stop", `{"steps":[{"a":"b`, `{"text":"{\"steps\":[{\"a\":\"b"` + flawed(jsonmend.CutOff)},
		{"plan", "stop", `[1`, `{"text":"[1"` + flawed(jsonmend.CutOff)},
		{"plan", "stop", `{steps: [{'id': 'a', "tool": "t", arguments: {},},],}`, `{"steps":[{"id":"a","tool":"t","arguments":{}}],"repaired":true`},
		{"plan", "stop", `Paris.`, `{"text":"Paris."`},
		{"plan", "stop", `{"answer":1}`, `{"text":"{\"answer\":1}"` + none},
		{"plan", "length", `{"steps":[{"id":"a"`, `{"text":"{\"steps\":[{\"id\":\"a\"","truncated":true` + cut},
		{"plan", "stop", `{"steps":[],"usage":{"cost_usd":-9},"problems":[],"steps":[1]}`, `{"steps":[]`},
		{"calls", "stop", `{"calls":[],"output":null}`, `{"calls":[],"output":null`},
		{"commands", "stop", `{"tool_command":{"tool_name":"t"}}`, `{"tool_command":{"tool_name":"t"}`},
		{"commands", "stop", `{"next_action":"execute","execution_commands":[]}`, `{"next_action":"execute","execution_commands":[]`},
		{"tools", "stop", "", `{`},
	} {
		a, _ := read(t, `{"input":1,"mode":"`+c.mode+`"}`, c.finish, c.text)
		want := c.want + `,"usage":{"model":"large"}}`
		require.Equal(t, strings.Replace(want, "{,", "{", 1), string(a.JSON()), c.text)
		require.True(t, json.Valid(a.JSON()))
	}
	a, _ := read(t, `{"input":1,"outputSchema":{"type":"object"}}`, "stop", "{\"title\": \"x\",}")
	require.Equal(t, `{"output":{"title":"x"},"repaired":true,"usage":{"model":"large"}}`, string(a.JSON()))
	a, _ = read(t, `{"input":1,"outputSchema":{"type":"object"}}`, "stop", "no")
	require.Equal(t, `{"text":"no"`+none+`,"usage":{"model":"large"}}`, string(a.JSON()))
}

// A model that is told of tools in words may call them as it was trained to, though nothing is offered natively.
func TestNativeCallsInOtherModes(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"plan", "calls", "commands"} {
		for form, events := range map[string][]string{
			OpenAI: {`{"choices":[{"delta":{"content":"I look.","tool_calls":[{"index":0,"id":"a","function":{"name":"get","arguments":"{\"q\":1}"}}]},"finish_reason":"tool_calls"}]}`},
			Anthropic: {`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"I look."}}`,
				`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"get","input":{}}}`,
				`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"q\":1}"}}`,
				`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`},
		} {
			r := NewReader(Prepare(parsed(t, `{"input":1,"mode":"`+mode+`","tools":[{"name":"get"}]}`), modelOf(form), false))
			for _, e := range events {
				_, f := r.Event("", []byte(e))
				require.Nil(t, f)
			}
			a, f := r.Closed()
			require.Nil(t, f)
			require.Equal(t, `{"text":"I look.","steps":[{"id":"a","tool":"get","arguments":{"q":1}}],"usage":{"model":"large"}}`, string(a.JSON()), mode+form)
		}
	}
}

// What a provider counts is told as far as it can be read; the answer is not thrown away for it.
func TestNumbersOfUsage(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]int64{"12": 12, "12.0": 12, "7.5": 8, "1.2e1": 12, `"12"`: 12, "-3": 0, "null": 0, `"many"`: 0, "{}": 0, "1e400": 0, "1e300": maxCount} {
		for form, events := range map[string][]string{
			OpenAI: {`{"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}`, `{"choices":[],"usage":{"prompt_tokens":` + written + `,"completion_tokens":2}}`},
			Anthropic: {`{"type":"message_start","message":{"usage":{"input_tokens":` + written + `}}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"ok"}}`,
				`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`},
		} {
			r := NewReader(Prepare(parsed(t, `{"input":1}`), modelOf(form), false))
			for _, e := range events {
				_, f := r.Event("", []byte(e))
				require.Nil(t, f)
			}
			a, f := r.Closed()
			require.Nil(t, f)
			require.Equal(t, "ok", a.Text)
			require.Equal(t, [2]int64{want, 2}, [2]int64{a.Usage.InputTokens, a.Usage.OutputTokens}, written+form)
		}
	}
}

// answered plays native calls of Chat Completions, each with an id, a name and arguments, and returns the steps.
func answered(t *testing.T, request string, calls ...[3]string) (early, steps string) {
	t.Helper()
	r := NewReader(Prepare(parsed(t, request), modelOf(OpenAI), false))
	r.HandOver(func(string) {}, func(s json.RawMessage) { early += string(s) })
	for i, c := range calls {
		_, f := r.Event("", []byte(`{"choices":[{"delta":{"tool_calls":[{"index":`+string(encode(i))+`,"id":"`+c[0]+`","function":{"name":"`+c[1]+`","arguments":`+string(encode(c[2]))+`}}]}}]}`))
		require.Nil(t, f)
	}
	_, f := r.Event("", []byte(`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`))
	require.Nil(t, f)
	a, f := r.Closed()
	require.Nil(t, f)
	return early, string(encode(a.Steps))
}

// A model does not choose the ids of its native calls: one that has the id of a call which had begun, and is another, gets its own.
func TestIdsOfWhatHadBegun(t *testing.T) {
	t.Parallel()
	const request = `{"input":1,"mode":"tools","tools":[{"name":"put"}],"began":[{"id":"call_0","tool":"put","arguments":{"w":0,"v":1},"status":"succeeded"},` +
		`{"id":"put","tool":"put","arguments":{"w":1}},{"id":"long","tool":"put","arguments":{"text":"{\"w","from":0,"to":3,"bytes":9000}}]}`
	early, steps := answered(t, request, [3]string{"call_0", "put", `{"w":2}`}, [3]string{"call_0", "put", `{"v":1,"w":0}`}, [3]string{"", "put", `{"w":3}`}, [3]string{"long", "put", `{"w":4}`})
	require.Equal(t, `[{"id":"call_0_2","tool":"put","arguments":{"w":2}},{"id":"call_0_3","tool":"put","arguments":{"v":1,"w":0}},`+
		`{"id":"put_2","tool":"put","arguments":{"w":3}},{"id":"long","tool":"put","arguments":{"w":4}}]`, steps)
	require.Equal(t, `{"id":"call_0_2","tool":"put","arguments":{"w":2}}{"id":"call_0_3","tool":"put","arguments":{"v":1,"w":0}}{"id":"put_2","tool":"put","arguments":{"w":3}}`, early)
	_, steps = answered(t, request, [3]string{"call_0", "put", `{"v":1,"w":0}`}, [3]string{"call_0", "put", `{"w":2}`})
	require.Equal(t, `[{"id":"call_0","tool":"put","arguments":{"v":1,"w":0}},{"id":"call_0_2","tool":"put","arguments":{"w":2}}]`, steps)
}

// A native call says among its arguments that it is to be made once more, unless its tool takes such an argument.
func TestANativeCallSaysAgain(t *testing.T) {
	t.Parallel()
	const request = `{"input":1,"mode":"tools","tools":[{"name":"pay"},{"name":"own","inputSchema":{"type":"object","properties":{"_again":{}}}}]}`
	_, steps := answered(t, request, [3]string{"a", "pay", `{"b":1,"_again":true,"a":2}`}, [3]string{"b", "own", `{"_again":true}`}, [3]string{"c", "pay", `{"_again":"yes"}`})
	require.Equal(t, `[{"id":"a","tool":"pay","arguments":{"b":1,"a":2},"again":true},{"id":"b","tool":"own","arguments":{"_again":true}},{"id":"c","tool":"pay","arguments":{"_again":"yes"}}]`, steps)
}

// Calls of an answer that was cut off are none: what is missing may be what mattered.
func TestCallsThatWereCutOff(t *testing.T) {
	t.Parallel()
	r := NewReader(Prepare(parsed(t, request(ModeTools, 0, nil)), modelOf(OpenAI), false))
	_, f := r.Event("", []byte(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"pay","arguments":"{\"amount\": 1"}}]},"finish_reason":"length"}]}`))
	require.Nil(t, f)
	a, f := r.Closed()
	require.Nil(t, f)
	require.Empty(t, a.Steps)
	require.Len(t, a.Problems, 1)
}

// Endpoints differ in how they send calls.
func TestCallsOfOtherEndpoints(t *testing.T) {
	t.Parallel()
	r := NewReader(Prepare(parsed(t, request(ModeTools, 0, nil)), modelOf(OpenAI), false))
	for _, data := range []string{
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"add","arguments":{"a":1}}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_2","function":{"name":"add","arguments":"{\"a\":2}"}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":3,"function":{"name":"add"}},{"index":4,"id":"functions.add:4","function":{"name":"add","arguments":""}}]}}]}`,
		`{"choices":[{"delta":{"reasoning_content":"h"}},{"index":1,"delta":{"content":"another answer"}}]}`,
		`{"choices":[{"delta":{"reasoning_content":"m","reasoning_details":[{"data":"x"}]},"finish_reason":"tool_calls"}]}`,
		`[DONE]`,
	} {
		_, f := r.Event("", []byte(data))
		require.Nil(t, f, data)
	}
	a, f := r.Closed()
	require.Nil(t, f)
	require.Equal(t, `{"steps":[{"id":"call_1","tool":"add","arguments":{"a":1}},{"id":"call_2","tool":"add","arguments":{"a":2}},`+
		`{"id":"add","tool":"add","arguments":{}},{"id":"add_2","tool":"add","arguments":{}}],"usage":{"model":"large"},`+
		`"provider_state":{"provider":"openai","model":"id-1","items":[{"role":"assistant","content":"","reasoning_content":"hm","reasoning_details":[{"data":"x"}],`+
		`"tool_calls":[{"id":"call_1","type":"function","function":{"name":"add","arguments":"{\"a\":1}"}},{"id":"call_2","type":"function","function":{"name":"add","arguments":"{\"a\":2}"}},`+
		`{"id":"","type":"function","function":{"name":"add","arguments":""}},{"id":"functions.add:4","type":"function","function":{"name":"add","arguments":""}}]}]}}`, string(a.JSON()))
}

// A stream of commands is read as far as it decides: next_action of the object itself, in no string and no deeper.
func TestAResponseIsSureEarly(t *testing.T) {
	t.Parallel()
	sure := []string{
		`{"next_action":"response"`, ` { "execution_commands" : [ ] , "next_action" : "response"`, "```json\n{\"next_action\":\"response\"",
		`{"a":"\"next_action\":\"execute\"","next\u005faction":"response"`, `{"a":{"next_action":"execute"},"next_action":"res\u0070onse"`,
	}
	for _, text := range sure {
		for _, size := range []int{1, 3, len(text)} {
			var pieces []string
			for at := 0; at < len(text); at += size {
				pieces = append(pieces, text[at:min(at+size, len(text))])
			}
			n := len(pieces)
			a, read := read(t, `{"input":1,"mode":"commands"}`, "stop", append(pieces, strings.Repeat("x", 100), `"}`)...)
			require.Equal(t, n, read, text)
			require.Equal(t, `{"next_action":"response","usage":{"model":"large"}}`, string(a.JSON()))
		}
	}
	for _, text := range []string{
		`{"next_action":"execute","x":"response"`, `{"x":{"next_action":"response"}`, `{"x":"next_action","response":1`, `["next_action","response"`,
		`{"x":"\"next_action\":\"response\""`, `An example: {"next_action":"response"}`, `{"next_action":"response`, `{"next_action":null,"y":"response"`,
		`{"x":["next_action"],"y":"response"`,
	} {
		e := &early{}
		require.False(t, e.write(text), text)
	}
}

// flawed are the problems of an answer with a flaw.
func flawed(f jsonmend.Flaw) string {
	message, hint := f.Told()
	return `,"problems":` + string(encode([]Problem{{Message: message, Hint: hint}}))
}

// What is mended is bounded: a text of brackets alone would use up the stack, and with it the process.
func TestRepairIsBounded(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		strings.Repeat("[", 4<<20), strings.Repeat(`{"a":`, 1<<20), "{" + strings.Repeat("[", jsonmend.MaxDepth), "{" + strings.Repeat("a,", jsonmend.MaxRepair),
		strings.Repeat("{", 100_000), strings.Repeat(`{"a":1}`, 100_000)[1:],
	} {
		require.NotEqual(t, jsonmend.None, jsonmend.Value(text, ofDialect).Flaw)
	}
	v := jsonmend.Value(`{steps:`+strings.Repeat("[", jsonmend.MaxDepth-1)+strings.Repeat("]", jsonmend.MaxDepth-1)+`}`, ofDialect)
	require.True(t, v.Repaired)
	require.True(t, json.Valid(v.Value))
}

func FuzzValue(f *testing.F) {
	for _, seed := range []string{`{"steps":[]}`, "```json\n{steps: 1}\n```", `x {"output":1} y`, "{'a':`b`", `{"next_action":`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if v := jsonmend.Value(text, ofDialect); v.Flaw == jsonmend.None {
			require.True(t, json.Valid(v.Value))
			a := &Answer{Object: object(v.Value)}
			require.True(t, json.Valid(a.JSON()), "%s", a.JSON())
		}
	})
}

func TestCost(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 0.000000001, Price{Input: 0.001}.Cost(Usage{InputTokens: 1}), 1e-15)
	tenth := 0.1
	require.InDelta(t, 3*0.9+0.1*0.1+5*15, Price{Input: 3, Output: 15, Cached: &tenth}.Cost(
		Usage{InputTokens: 1_000_000, CachedTokens: 100_000, OutputTokens: 5_000_000}), 1e-9)
}

// TestWhatIsWholeIsHandedOver before the answer is: in mode tools each call once the next begins, as the step that the answer has,
// in mode plan what was written; of a last answer, and in other modes, nothing.
func TestWhatIsWholeIsHandedOver(t *testing.T) {
	t.Parallel()
	plays := func(request string, p string, events ...[2]string) (text string, steps []string, a *Answer) {
		r := NewReader(Prepare(parsed(t, request), modelOf(p), false))
		r.HandOver(func(more string) { text += more }, func(step json.RawMessage) { steps = append(steps, string(step)) })
		for _, e := range events {
			_, f := r.Event(e[0], []byte(e[1]))
			require.Nil(t, f)
		}
		a, f := r.Closed()
		require.Nil(t, f)
		return text, steps, a
	}
	openAI := func(delta, finish string) [2]string {
		return [2]string{"", `{"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`}
	}
	calls := [][2]string{
		openAI(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"find","arguments":"{\"n\""}}]}`, "null"),
		openAI(`{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}`, "null"),
		openAI(`{"tool_calls":[{"index":1,"id":"c2","function":{"name":"find","arguments":"{\"n\":2}"}}]}`, "null"),
		openAI(`{}`, `"tool_calls"`),
	}
	_, steps, a := plays(`{"input":1,"mode":"tools","tools":[{"name":"find"}]}`, OpenAI, calls...)
	require.Equal(t, []string{string(encode(a.Steps[0]))}, steps)
	require.Len(t, a.Steps, 2)
	_, steps, _ = plays(`{"input":1,"mode":"tools","tools":[{"name":"find"}],"final":true}`, OpenAI, calls...)
	require.Empty(t, steps)
	_, steps, a = plays(`{"input":1,"mode":"tools","tools":[{"name":"find"}]}`, Anthropic,
		[2]string{"content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"find","input":{}}}`},
		[2]string{"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"n\":1}"}}`},
		[2]string{"content_block_stop", `{"type":"content_block_stop","index":0}`},
		[2]string{"content_block_start", `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t2","name":"find","input":{}}}`},
		[2]string{"content_block_delta", `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"n\":2}"}}`},
		[2]string{"content_block_stop", `{"type":"content_block_stop","index":1}`},
		[2]string{"message_delta", `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}`},
		[2]string{"message_stop", `{"type":"message_stop"}`})
	require.Equal(t, []string{string(encode(a.Steps[0]))}, steps)
	text, steps, _ := plays(`{"input":1,"mode":"plan"}`, OpenAI, openAI(`{"content":"{\"steps\":"}`, "null"), openAI(`{"content":"[]}"}`, "null"), openAI(`{}`, `"stop"`))
	require.Equal(t, `{"steps":[]}`, text)
	require.Empty(t, steps)
}
