package content_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/mcp/content"
)

// shelf keeps bytes as a store of large values would.
type shelf map[string][]byte

func (s shelf) keep(data []byte) (json.RawMessage, error) {
	handle := json.RawMessage(`{"name":"` + string(rune('a'+len(s))) + `"}`)
	s[string(handle)] = data
	return handle, nil
}

func (s shelf) load(handle json.RawMessage) ([]byte, error) {
	if data, ok := s[string(handle)]; ok {
		return data, nil
	}
	return nil, errors.New("no " + string(handle))
}

func TestRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, raw, body string
		text            bool
	}{
		{"structured wins", `{"content":[{"type":"text","text":"x"}],"structuredContent":{"n":12345678901234567890.10}}`, `{"n":12345678901234567890.10}`, false},
		{"structured may be no object", `{"content":[],"structuredContent":[1, 2]}`, `[1, 2]`, false},
		{"null is none", `{"content":[{"type":"text","text":"x"}],"structuredContent":null}`, `x`, true},
		{"a text", `{"content":[{"type":"text","text":"a < b"}]}`, `a < b`, true},
		{"a text that is a number stays one", `{"content":[{"type":"text","text":"17"}]}`, `17`, true},
		{"an object in a text", `{"content":[{"type":"text","text":" {\"n\":1.50}"}]}`, ` {"n":1.50}`, false},
		{"an array in a text", `{"content":[{"type":"text","text":"[1]"}]}`, `[1]`, false},
		{"a text that begins like one", `{"content":[{"type":"text","text":"{oops"}]}`, `{oops`, true},
		{"a key twice is no value", `{"content":[{"type":"text","text":"{\"a\":1,\"a\":2}"}]}`, `{"a":1,"a":2}`, true},
		{"several", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b","x":1.0}]}`, `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b","x":1.0}]}`, false},
		{"nothing", `{"content":[]}`, `{"content":[]}`, false},
		{"absent", `{}`, `{"content":[]}`, false},
		{"a link", `{"content":[{"type":"resource_link","uri":"file:///x","name":"x"}]}`, `{"content":[{"type":"resource_link","uri":"file:///x","name":"x"}]}`, false},
		{"of tomorrow", `{"content":[{"type":"hologram","beam":1}]}`, `{"content":[{"type":"hologram","beam":1}]}`, false},
		{"an image", `{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"}]}`, `{"content":[{"type":"image","artifact":{"name":"a"},"mimeType":"image/png"}]}`, false},
		{"a text resource", `{"content":[{"type":"resource","resource":{"uri":"u","text":"t"}}]}`, `{"content":[{"type":"resource","resource":{"uri":"u","text":"t"}}]}`, false},
		{"a blob", `{"content":[{"type":"resource","resource":{"uri":"u","blob":"aGk="},"annotations":{"priority":0.50}}]}`, `{"content":[{"type":"resource","resource":{"uri":"u","artifact":{"name":"a"}},"annotations":{"priority":0.50}}]}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := content.Read(json.RawMessage(c.raw), shelf{}.keep)
			require.NoError(t, err)
			require.Equal(t, content.Result{Kind: content.Complete, Body: []byte(c.body), Text: c.text}, got)
		})
	}
}

func TestReadOfOtherKinds(t *testing.T) {
	t.Parallel()
	got, err := content.Read(json.RawMessage(`{"resultType":"task","taskId":"t1"}`), nil)
	require.NoError(t, err)
	require.Equal(t, content.Result{Kind: content.Task}, got)
	got, err = content.Read(json.RawMessage(`{"resultType":"input_required","inputRequests":{}}`), nil)
	require.NoError(t, err)
	require.Equal(t, content.InputRequired, got.Kind)
	got, err = content.Read(json.RawMessage(`{"resultType":"complete","content":[{"type":"text","text":"no"},{"type":"text","text":"room"}],"isError":true}`), nil)
	require.NoError(t, err)
	require.True(t, got.Failed)
	require.Equal(t, "no\nroom", got.Message)
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		``, `null`, `[]`, `"x"`, `{"content":{}}`, `{"content":[1]}`, `{"content":[1,2]}`,
		`{"content":[{"type":"image","data":"?"}]}`, `{"content":[{"type":"resource","resource":{"blob":1}}]}`,
	} {
		_, err := content.Read(json.RawMessage(raw), shelf{}.keep)
		require.Equal(t, fault.ToolTerminal, fault.CodeOf(err), raw)
	}
	full := errors.New("full")
	_, err := content.Read(json.RawMessage(`{"content":[{"type":"audio","data":"aGk="}]}`), func([]byte) (json.RawMessage, error) { return nil, full })
	require.ErrorIs(t, err, full)
}

// What came of MCP goes back to it as it came, bytes of images included.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	for _, items := range []string{
		`[]`,
		`[{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"audio","mimeType":"audio/wav","data":""}]`,
		`[{"type":"resource","resource":{"uri":"u","blob":"AAEC","mimeType":"x/y"}},{"type":"text","text":"n 1.50"}]`,
		`[{"type":"resource_link","uri":"u","size":10000000000000000000001}]`,
	} {
		s := shelf{}
		r, err := content.Read(json.RawMessage(`{"content":`+items+`}`), s.keep)
		require.NoError(t, err)
		a, err := content.Of(r.Body, s.load)
		require.NoError(t, err)
		require.Nil(t, a.Structured)
		got := []byte("[")
		for i, raw := range a.Content {
			if i > 0 {
				got = append(got, ',')
			}
			got = append(got, raw...)
		}
		require.Equal(t, items, string(got)+"]")
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ result, text, structured string }{
		{`{"n":1.50}`, `{"n":1.50}`, `{"n":1.50}`},
		{` [1]`, ` [1]`, ` [1]`},
		{`17`, `17`, `17`},
		{`null`, `null`, `null`},
		{`"a \"b\""`, `a "b"`, ``},
		{`{"content":"x"}`, `{"content":"x"}`, `{"content":"x"}`},
		{`{"content":[{"id":1}]}`, `{"content":[{"id":1}]}`, `{"content":[{"id":1}]}`},
		{`{"content":[],"more":1}`, `{"content":[],"more":1}`, `{"content":[],"more":1}`},
	} {
		a, err := content.Of([]byte(c.result), nil)
		require.NoError(t, err)
		require.Len(t, a.Content, 1)
		var text struct{ Type, Text string }
		require.NoError(t, json.Unmarshal(a.Content[0], &text))
		require.Equal(t, c.text, text.Text)
		require.Equal(t, "text", text.Type)
		require.Equal(t, c.structured, string(a.Structured))
	}
	_, err := content.Of([]byte(`{"content":[{"type":"image","artifact":{"name":"z"}}]}`), shelf{}.load)
	require.Error(t, err)
}

func FuzzThereAndBack(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"image","data":"aGk="}]}`))
	f.Add([]byte(`{"structuredContent":{"content":[{"type":"text"}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := shelf{}
		r, err := content.Read(raw, s.keep)
		if err != nil || r.Text || r.Kind != content.Complete {
			return
		}
		if !json.Valid(r.Body) {
			t.Fatalf("%s is no JSON", r.Body)
		}
		if _, err := content.Of(r.Body, func(json.RawMessage) ([]byte, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
	})
}
