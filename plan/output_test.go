package plan_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

func TestOutput(t *testing.T) {
	t.Parallel()
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct {
		body string
		text bool
		want string // or the code in angle brackets
	}{
		{``, false, `null`},
		{``, true, `""`},
		{`{"a":1.0}`, false, `{"a":1.0}`},
		{" 42\n", false, `42`},
		{"\r\n\t {\"a\" : 1} ", false, `{"a" : 1}`},
		{`"x"`, false, `"x"`},
		{`1e400`, false, `1e400`},
		{`-0.0e-5`, false, `-0.0e-5`},
		{`hello`, false, `"hello"`},
		{"two\nlines\t\"quoted\" \\ \x01", false, `"two\nlines\t\"quoted\" \\ \u0001"`},
		{` `, false, `" "`},
		{`42`, true, `"42"`},
		{`{"a":1}`, true, `"{\"a\":1}"`},
		{`{"a":1`, false, `"{\"a\":1"`},
		{`{"a":1} x`, false, `"{\"a\":1} x"`},
		{`01`, false, `"01"`},
		{`NaN`, false, `"NaN"`},
		{`é`, false, `"é"`},
		{"\xef\xbb\xbf{}", false, "\"\xef\xbb\xbf{}\""},
		{"\xff", false, `<tool_terminal>`},
		{"\xff", true, `<tool_terminal>`},
		{"{\"a\":\"\xc3\"}", false, `<tool_terminal>`},
		{`{"a":"\ud800"}`, false, `<tool_terminal>`},
		{`{"a":"\ud83d\ude00"}`, false, `{"a":"\ud83d\ude00"}`},
		{`{"\ud800":1}`, false, `<tool_terminal>`},
		{`{"a":1,"a":2}`, false, `<tool_terminal>`},
		{`[{"x":{"a":1,"\u0061":2}}]`, false, `<tool_terminal>`},
		{`{"a":1,"a":2`, false, `"{\"a\":1,\"a\":2"`}, // not JSON at all, so a string
		{`{"a":{"b":1},"b":{"a":1}}`, false, `{"a":{"b":1},"b":{"a":1}}`},
		{nested(64), false, nested(64)},
		{nested(65), false, `<tool_terminal>`},
		{nested(100_000), false, `<tool_terminal>`},
		{nested(400_000), false, `<tool_terminal>`},
		{strings.Repeat("[", 70), false, `"` + strings.Repeat("[", 70) + `"`},
		{strings.Repeat("[", 70) + "x", false, `"` + strings.Repeat("[", 70) + `x"`},
	} {
		out, err := plan.Output([]byte(c.body), c.text)
		if err != nil {
			require.Equal(t, c.want, "<"+string(err.Code)+">", clip(c.body))
			require.NotEmpty(t, err.Message)
			require.False(t, err.Retryable)
			continue
		}
		require.Equal(t, c.want, string(out), clip(c.body))
	}
}

func clip(s string) string { return s[:min(len(s), 80)] }

func TestOutputSharesTheBody(t *testing.T) {
	t.Parallel()
	body := []byte(` {"a":[1,2]} `)
	out, err := plan.Output(body, false)
	require.Nil(t, err)
	require.Same(t, &body[1], &out[0])
}

func TestOutputMessagesSayWhere(t *testing.T) {
	t.Parallel()
	_, err := plan.Output([]byte(`{"list":[1,{"k/1":1,"k/1":2}]}`), false)
	require.Contains(t, err.Message, `"/list/1/k~11"`)
	_, err = plan.Output([]byte(`{"list":[1,"\udc00"]}`), false)
	require.Contains(t, err.Message, `"/list/1"`)
}

func TestOutputTooLarge(t *testing.T) {
	t.Parallel()
	_, err := plan.Output(make([]byte, plan.MaxOutput+1), false)
	require.Equal(t, fault.TooLarge, err.Code)
	_, err = plan.Output(bytes.Repeat([]byte("\n"), plan.MaxOutput/2), true) // two bytes each
	require.Equal(t, fault.TooLarge, err.Code)
}

// Objects of many keys take the other way of finding those used twice.
func TestDuplicatesInLargeObjects(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 11, 12, 13, 100, 5000} {
		for _, form := range []string{`"k%d":1`, `"\u006b%d":1`} {
			var members []string
			for i := range n {
				members = append(members, fmt.Sprintf(form, i))
			}
			good := "{" + strings.Join(members, ",") + "}"
			_, err := plan.Output([]byte(good), false)
			require.Nil(t, err)
			for _, again := range []string{`"k0"`, fmt.Sprintf(`"k%d"`, n-1), fmt.Sprintf(`"\u006b%d"`, n/2)} {
				_, err = plan.Output([]byte("{"+strings.Join(members, ",")+","+again+":2}"), false)
				require.NotNil(t, err, "%d keys, %s again", n, again)
			}
		}
	}
}

// twinOutput is Output in a few slow lines on encoding/json.
func twinOutput(body []byte) (want string, terminal bool) {
	if !utf8.Valid(body) {
		return "", true
	}
	if len(body) == 0 {
		return "null", false
	}
	if !json.Valid(body) {
		b, _ := json.Marshal(string(body))
		return string(b), false
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	type object struct {
		keys   map[string]bool
		array  bool
		isName bool
	}
	var open []*object
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return string(bytes.TrimSpace(body)), loneSurrogate(body)
		}
		if d, ok := token.(json.Delim); ok && (d == '}' || d == ']') {
			open = open[:len(open)-1]
			continue
		}
		if n := len(open); n > 0 && !open[n-1].array {
			o := open[n-1]
			if o.isName = !o.isName; o.isName {
				name := token.(string)
				if o.keys[name] {
					return "", true
				}
				o.keys[name] = true
				continue
			}
		}
		if d, ok := token.(json.Delim); ok {
			if open = append(open, &object{map[string]bool{}, d == '[', false}); len(open) > 64 {
				return "", true
			}
		}
	}
}

// loneSurrogate reports whether JSON text has half a surrogate pair: encoding/json makes U+FFFD of it.
func loneSurrogate(body []byte) bool {
	s := strings.ReplaceAll(strings.ReplaceAll(string(body), "\uFFFD", ""), `\\`, "")
	low := strings.ToLower(s)
	if strings.Contains(low, `\ufffd`) {
		return strings.Contains(low, `\ud8`) // not worth telling apart: see FuzzOutput
	}
	var v any
	_ = json.Unmarshal([]byte(s), &v)
	b, _ := json.Marshal(v)
	return bytes.Contains(b, []byte("\uFFFD")) || bytes.Contains(b, []byte(`\ufffd`))
}

func FuzzOutput(f *testing.F) {
	for _, s := range []string{``, `{}`, `{"a":[1,-0.5e+3,true,false,null,"x\n\u00e9"]}`, `{"a":1,"a":2}`, `[[[[`, `"\ud83d\ude00"`, `"\ud83d"`, "\xff",
		strings.Repeat("[", 65) + strings.Repeat("]", 65), `{"aaaaaaaa":"$","bbbbbbbb":"\\"}`, "\"\x7f\"", `[1,]`, `{"a"}`, `tru`, `-`, `1.`, `1e`, "\"a\tb\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		out, err := plan.Output(body, false)
		want, terminal := twinOutput(body)
		if bytes.Contains(bytes.ToLower(body), []byte(`\ufffd`)) && bytes.Contains(bytes.ToLower(body), []byte(`\ud`)) {
			return // the twin can't tell
		}
		if terminal {
			require.NotNil(t, err)
			require.Equal(t, fault.ToolTerminal, err.Code)
			return
		}
		require.Nil(t, err)
		require.True(t, json.Valid(out))
		if json.Valid(body) {
			require.Equal(t, want, string(out))
			return
		}
		var a, b any
		require.NoError(t, json.Unmarshal([]byte(want), &a))
		require.NoError(t, json.Unmarshal(out, &b))
		require.Equal(t, a, b)
	})
}

func ExampleOutput() {
	for _, body := range []string{`{"temp": 21.0}`, `sunny`, ``} {
		out, err := plan.Output([]byte(body), false)
		fmt.Println(string(out), err == nil)
	}
	_, err := plan.Output([]byte(`{"a": 1, "a": 2}`), false)
	fmt.Println(err.Code)
	// Output:
	// {"temp": 21.0} true
	// "sunny" true
	// null true
	// tool_terminal
}

func TestTheSamePlanMeansTheSameBytes(t *testing.T) {
	t.Parallel()
	require.Equal(t, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", plan.Digest(nil))
	require.NotEqual(t, plan.Digest([]byte(`{"steps":[]}`)), plan.Digest([]byte(`{"steps": []}`)))
}
