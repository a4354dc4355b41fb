package model

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatAModelWritesIsTold as it comes, in the forms of both providers: its text, and its calls by name and arguments. What is a
// call to a provider alone, the answer by a schema, is told as the text that it is; thinking is not told.
func TestWhatAModelWritesIsTold(t *testing.T) {
	t.Parallel()
	told := func(p string, mode string, events ...string) string {
		r := NewReader(Prepare(parsed(t, `{"input":1,"mode":"`+mode+`","tools":[{"name":"find"},{"name":"pay"}]}`), modelOf(p), false))
		var all []string
		r.Tell(func(text string) { all = append(all, text) })
		for _, e := range events {
			name, data, named := strings.Cut(e, " ")
			if !named || strings.HasPrefix(e, "{") {
				name, data = "", e
			}
			_, f := r.Event(name, []byte(data))
			require.Nil(t, f, e)
		}
		return strings.Join(all, "|")
	}
	delta := func(d string) string { return `{"choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}` }
	require.Equal(t, "I |look.|\nfind |{\"q\"|:1}|\npay |{}", told(OpenAI, "tools",
		delta(`{"content":"I "}`), delta(`{"content":"look."}`), delta(`{"content":""}`),
		delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"find","arguments":""}}]}`),
		delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"q\""}}]}`), delta(`{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}`),
		delta(`{"tool_calls":[{"index":1,"id":"b","function":{"name":"pay","arguments":"{}"}}]}`)))
	block := func(i, b string) string {
		return `content_block_start {"type":"content_block_start","index":` + i + `,"content_block":` + b + `}`
	}
	more := func(i, d string) string {
		return `content_block_delta {"type":"content_block_delta","index":` + i + `,"delta":` + d + `}`
	}
	require.Equal(t, "I look.|\nfind |{\"q\"|:1}", told(Anthropic, "tools",
		block("0", `{"type":"thinking","thinking":""}`), more("0", `{"type":"thinking_delta","thinking":"hm"}`),
		block("1", `{"type":"text","text":""}`), more("1", `{"type":"text_delta","text":"I look."}`),
		block("2", `{"type":"tool_use","id":"a","name":"find","input":{}}`), more("2", `{"type":"input_json_delta","partial_json":""}`),
		more("2", `{"type":"input_json_delta","partial_json":"{\"q\""}`), more("2", `{"type":"input_json_delta","partial_json":":1}"}`)))
	require.Equal(t, `{"steps"|:[]}`, told(Anthropic, "plan",
		block("0", `{"type":"tool_use","id":"a","name":"`+answerName+`","input":{}}`),
		more("0", `{"type":"input_json_delta","partial_json":"{\"steps\""}`), more("0", `{"type":"input_json_delta","partial_json":":[]}"}`)))
}

// TestACallThatWasNotMadeIsToldAsItWasWritten: with its references, in the forms of both providers.
func TestACallThatWasNotMadeIsToldAsItWasWritten(t *testing.T) {
	t.Parallel()
	for p, want := range map[string]string{OpenAI: `"arguments":"{\"x\":\"$ref:b0\"}"`, Anthropic: `"input":{"x":"$ref:b0"}`} {
		body := string(Prepare(parsed(t, `{"input":1,"mode":"tools","tools":[{"name":"put"}],"rounds":[{"plan":[{"id":"p","tool":"put","arguments":{"x":"$ref:b0"}}],
			"records":[{"id":"p","tool":"put","status":"cancelled"}]}]}`), modelOf(p), false).Body)
		require.Contains(t, body, want, p)
	}
}
