package tool_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/tool"
)

func inputOf(t *testing.T, schema string) *tool.Schema {
	t.Helper()
	d := parse(t, `{"name":"a","x-orchestration":{"batch":{"argument":"items","max_items":5}},"inputSchema":`+schema+`}`)
	s, err := d.Input()
	require.NoError(t, err)
	return s
}

func TestInputOfABatchTakesBothForms(t *testing.T) {
	t.Parallel()
	const contact = `{"type":"object","properties":{"email":{"type":"string"},"age":{"type":"integer"}},"required":["email"],"additionalProperties":false}`
	for name, schema := range map[string]string{
		"in place":       `{"type":"object","properties":{"items":{"type":"array","items":` + contact + `},"note":{"type":"string"}},"required":["items"]}`,
		"by reference":   `{"type":"object","$defs":{"c":` + contact + `},"properties":{"items":{"type":"array","items":{"$ref":"#/$defs/c"}},"note":{"type":"string"}}}`,
		"array referred": `{"type":"object","$defs":{"all":{"type":"array","items":` + contact + `}},"properties":{"items":{"$ref":"#/$defs/all"},"note":{"type":"string"}}}`,
		"draft 7":        `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"items":{"type":"array","items":` + contact + `},"note":{"type":"string"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := inputOf(t, schema)
			require.False(t, s.AcceptsAnyObject())
			for _, valid := range []string{
				`{"email":"a@b"}`, ` {"age":7, "email":"a@b"} `, `{"items":[]}`, `{"items":[{"email":"a@b"},{"email":"c"}],"note":"x"}`,
				`{"note":"n","items":[{"email":"a\"b","age":1e0}]}`,
			} {
				require.Empty(t, s.Check([]byte(valid), nil), valid)
			}
			for bad, at := range map[string]string{
				`{}`: "", `{"email":7}`: "/email", `{"email":"a","note":"x"}`: "/note", `{"items":[{"email":7}]}`: "/items/0/email",
				`{"items":{}}`: "/items", `[]`: "", `7`: "",
			} {
				found := s.Check([]byte(bad), nil)
				require.NotEmpty(t, found, bad)
				require.Equal(t, at, found[0].Pointer, bad)
			}
			// Holes work in both forms.
			require.Empty(t, s.Check([]byte(`{"email":null}`), []tool.Hole{{Pointer: "/email"}}))
			require.Empty(t, s.Check([]byte(`{"email":"x","age":null}`), []tool.Hole{{Pointer: "/age"}}))
			require.NotEmpty(t, s.Check([]byte(`{"age":null}`), []tool.Hole{{Pointer: "/age"}}), "email is missing whatever age becomes")
			require.Empty(t, s.Check([]byte(`{"items":null}`), []tool.Hole{{Pointer: "/items"}}))
			require.NotEmpty(t, s.Check([]byte(`{"items":""}`), []tool.Hole{{Pointer: "/items", Text: true}}), "text is no array")
			require.Empty(t, s.Check([]byte(`null`), []tool.Hole{{Pointer: ""}}), "nothing is known of the whole")
		})
	}
}

// Without the array's name arguments are those of one item. So a slip in it would have the tool called for one item
// that has nothing of what an item needs, and its answer taken for that of all.
func TestAMisspeltArrayOfABatchIsNoItem(t *testing.T) {
	t.Parallel()
	const optional = `{"type":"object","properties":{"contacts":{"type":"array","items":{"type":"object","properties":{"email":{"type":"string"},"content":{"type":"array"}}}}}}`
	const required = `{"type":"object","properties":{"contacts":{"type":"array","items":{"type":"object"}},"workspace":{"type":"string"}},"required":["contacts","workspace"]}`
	of := func(schema string) *tool.Schema {
		d := parse(t, `{"name":"a","x-orchestration":{"batch":{"argument":"contacts","max_items":5}},"inputSchema":`+schema+`}`)
		s, err := d.Input()
		require.NoError(t, err)
		return s
	}
	for value, key := range map[string]string{
		`{"contact":[{"email":"a"}]}`: "contact", `{"workspace":"x","contcats":[]}`: "contcats", `{"contact_list":[]}`: "contact_list", `{"Contacts":null}`: "Contacts",
	} {
		found := of(optional).Check([]byte(value), []tool.Hole{{Pointer: "/Contacts"}})
		require.Len(t, found, 1, value)
		require.Equal(t, "/"+key, found[0].Pointer)
		require.Contains(t, found[0].Message, `one item has no property "`+key+`", and without the array "contacts"`)
		require.Equal(t, `did you mean "contacts"?`, found[0].Hint)
		found = of(required).Check([]byte(`{"contcats":[],"workspace":"x"}`), nil)
		require.Len(t, found, 1)
		require.Equal(t, `did you mean "contacts" where "contcats" stands?`, found[0].Hint)
	}
	for _, single := range []string{`{"email":"a"}`, `{"contact":"a"}`, `{"content":[1]}`, `{"numbers":[1]}`, `{"contact_type":null}`, `{}`} {
		require.Empty(t, of(optional).Check([]byte(single), []tool.Hole{{Pointer: "/contact_type"}}), single)
	}
	branches := of(`{"type":"object","properties":{"contacts":{"type":"array","items":{"anyOf":[{"properties":{"contact":{"type":"array"}}}]}}}}`)
	require.Empty(t, branches.Check([]byte(`{"contact":[]}`), nil), "an item may have such a property")
}

func TestInputWithoutASingleCall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ schema, says string }{
		"more is required": {`{"type":"object","properties":{"items":{"type":"array"},"list":{"type":"string"}},"required":["list","items"]}`,
			`the array "items" is missing: the tool also needs "list" beside it, so it can't be called for one item alone; pass {"items": […], "list": …}`},
		"items are strings": {`{"type":"object","properties":{"items":{"type":"array","items":{"type":"string"}}}}`,
			`the array "items" is missing: its items are no objects, so the tool can't be called for one item alone; pass {"items": […]}`},
		"items are numbers, by reference": {`{"type":"object","$defs":{"n":{"type":"number"}},"properties":{"items":{"type":"array","items":{"$ref":"#/$defs/n"}}}}`,
			`its items are no objects`},
	} {
		t.Run(name, func(t *testing.T) {
			s := inputOf(t, c.schema)
			found := s.Check([]byte(`{"x":1}`), nil)
			require.Len(t, found, 1)
			require.Contains(t, found[0].Message, c.says)
			require.Empty(t, found[0].Pointer)
			require.Empty(t, s.Check([]byte(`{"items":[],"list":"l"}`), nil))
		})
	}
}

func TestInputThatDescribesTheSingleCall(t *testing.T) {
	t.Parallel()
	s := inputOf(t, `{"type":"object","properties":{"email":{"type":"string"}},"required":["email"]}`)
	require.Empty(t, s.Check([]byte(`{"email":"x"}`), nil))
	require.NotEmpty(t, s.Check([]byte(`{}`), nil))
	require.NotEmpty(t, s.Check([]byte(`{"items":[]}`), nil), "it is used for everything")

	open := inputOf(t, `{"type":"object","properties":{"items":{"type":"array"}}}`)
	require.Empty(t, open.Check([]byte(`{"anything":1}`), nil), "items of no schema are any objects")
	require.NotEmpty(t, open.Check([]byte(`{"items":1}`), nil))
	require.True(t, inputOf(t, `{"type":"object"}`).AcceptsAnyObject())
}

// Where checking may take long, both forms share one budget.
func TestInputIsBounded(t *testing.T) {
	t.Parallel()
	s := inputOf(t, `{"type":"object","$defs":{"x":{"allOf":[{"$ref":"#/$defs/y"},{"$ref":"#/$defs/y"}]},"y":{"type":"object"}},
		"properties":{"items":{"type":"array","items":{"$ref":"#/$defs/x"}}}}`)
	require.Empty(t, s.Check([]byte(`{"a":1}`), nil))
	require.Empty(t, s.Check([]byte(`{"items":[{"a":1}]}`), nil))
	require.NotEmpty(t, s.Check([]byte(`{"items":[1]}`), nil))
}

func TestOutput(t *testing.T) {
	t.Parallel()
	s, err := parse(t, `{"name":"a"}`).Output()
	require.NoError(t, err)
	require.Nil(t, s)
	s, err = parse(t, `{"name":"a","outputSchema":{"type":"object","required":["id"]}}`).Output()
	require.NoError(t, err)
	require.NotEmpty(t, s.Check([]byte(`{}`), nil))
	require.Empty(t, s.Check([]byte(`{"id":1}`), nil))
}

// A batch tool's common case costs no more than the schema itself, and finding the form.
func BenchmarkInputOfABatch(b *testing.B) {
	d, err := tool.ParseDefinition([]byte(`{"name":"a","x-orchestration":{"batch":{"argument":"items","max_items":5}},"inputSchema":
		{"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":{"email":{"type":"string"}}}}}}}`))
	if err != nil {
		b.Fatal(err)
	}
	s, _ := d.Input()
	for b.Loop() {
		if s.Check([]byte(`{"email":"a@b"}`), nil) != nil {
			b.Fatal("refused")
		}
	}
}
