package catalog_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/catalog"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/builtin"
	"github.com/stepjet/stepjet/tool"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *update {
		require.NoError(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "go test ./catalog -update writes it")
	require.Equal(t, string(want), string(got), "go test ./catalog -update, and look at the difference")
}

func definitions(t testing.TB, file string) []*tool.Definition {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	list, err := tool.ParseDefinitions(raw)
	require.NoError(t, err)
	return list
}

func plainly(o catalog.Options) string {
	if o.Strict {
		return "-strict"
	}
	return ""
}

func TestGoldenForms(t *testing.T) {
	t.Parallel()
	tools := definitions(t, "testdata/tools.json")
	for _, f := range catalog.Forms() {
		for _, o := range []catalog.Options{{}, {Strict: true}} {
			b, err := catalog.Export(f, tools, o)
			require.NoError(t, err)
			golden(t, string(f)+plainly(o)+".json", b)
			b, err = catalog.Meta(f, tools, o)
			require.NoError(t, err)
			golden(t, "meta-"+string(f)+plainly(o)+".json", b)
		}
	}
	golden(t, "guide.txt", []byte(catalog.Guide(tools)+"\n"))
}

// What is exported plainly can be read again, and has the contract that it had.
func TestExportsComeBackWithTheirContracts(t *testing.T) {
	t.Parallel()
	tools := definitions(t, "testdata/tools.json")
	for _, f := range catalog.Forms() {
		b, err := catalog.Export(f, tools, catalog.Options{})
		require.NoError(t, err)
		back, err := tool.ParseDefinitions(b)
		require.NoError(t, err, f)
		require.Len(t, back, len(tools))
		byName := map[string]*tool.Definition{}
		for _, d := range back {
			byName[d.Name] = d
		}
		for _, d := range tools {
			got := byName[catalog.Name(f, d.Name)]
			require.NotNil(t, got, "%s: %s", f, d.Name)
			require.Equal(t, d.Orchestration, got.Orchestration, "%s: %s", f, d.Name)
			if f == catalog.MCP {
				require.Equal(t, d.Annotations, got.Annotations)
			} else if got.Name != d.Name {
				require.Contains(t, got.Description, "Its name in plans: "+d.Name)
			}
		}
	}
}

func TestNamesAreStableAndDiffer(t *testing.T) {
	t.Parallel()
	allowed := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	seen := map[string]string{}
	for _, name := range []string{
		"get_weather", "a-b", "a.b", "a:b", "a/b", "a_b", "a.b.c", "a/b.c", strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("x", 128),
		strings.Repeat("x", 127) + "y", strings.Repeat(".", 128),
	} {
		got := catalog.Name(catalog.OpenAI, name)
		require.Regexp(t, allowed, got)
		require.Equal(t, got, catalog.Name(catalog.Anthropic, name))
		require.Equal(t, name, catalog.Name(catalog.MCP, name))
		require.Empty(t, seen[got], "%s and %s", seen[got], name)
		seen[got] = name
		if allowed.MatchString(name) {
			require.Equal(t, name, got)
		}
	}
	require.Equal(t, "docs_search_8a3cf6e4", catalog.Name(catalog.OpenAI, "docs/search"), "it never changes: models and logs remember it")
	taken := []*tool.Definition{{Name: "docs/search"}, {Name: catalog.Name(catalog.OpenAI, "docs/search")}}
	_, err := catalog.Export(catalog.OpenAI, taken, catalog.Options{})
	require.Equal(t, fault.InvalidTool, fault.CodeOf(err))
	_, err = catalog.Export("yaml", taken, catalog.Options{})
	require.Equal(t, fault.InvalidValue, fault.CodeOf(err))
	_, err = catalog.Meta("yaml", taken, catalog.Options{})
	require.Equal(t, fault.InvalidValue, fault.CodeOf(err))
}

// OpenAI refuses a request with a description of a function beyond 1,024 characters.
func TestDescriptionsStayWithinOpenAIsBound(t *testing.T) {
	t.Parallel()
	long := []*tool.Definition{{Name: "a.b", Description: strings.Repeat("ä", 5000), Orchestration: &tool.Orchestration{Mode: tool.SequentialOnly}}}
	for _, f := range []catalog.Form{catalog.OpenAI, catalog.OpenAIResponses} {
		for _, write := range []func() ([]byte, error){
			func() ([]byte, error) { return catalog.Export(f, long, catalog.Options{}) },
			func() ([]byte, error) {
				b, err := catalog.Meta(f, long, catalog.Options{})
				return fmt.Appendf(nil, "[%s]", b), err
			},
		} {
			b, err := write()
			require.NoError(t, err)
			var list []struct {
				Description string
				Function    struct{ Description string }
			}
			require.NoError(t, json.Unmarshal(b, &list))
			text := list[0].Description + list[0].Function.Description
			require.NotEmpty(t, text)
			require.LessOrEqual(t, utf8.RuneCountInString(text), 1024)
			if strings.HasPrefix(text, "ä") {
				require.Contains(t, text, "runs one call at a time")
				require.Contains(t, text, "a.b")
			}
		}
	}
}

// In a strict schema every object is closed and has all its properties.
func TestStrictSchemasAreStrict(t *testing.T) {
	t.Parallel()
	var own []*tool.Definition
	for _, t := range builtin.All() {
		own = append(own, t.Definition)
	}
	for file, tools := range map[string][]*tool.Definition{"testdata/tools.json": definitions(t, "testdata/tools.json"), "built-in": own} {
		b, err := catalog.Export(catalog.OpenAI, tools, catalog.Options{Strict: true})
		require.NoError(t, err)
		var list []struct {
			Function struct {
				Name       string
				Strict     bool
				Parameters any
			}
		}
		require.NoError(t, json.Unmarshal(b, &list))
		n := 0
		for _, x := range list {
			if x.Function.Strict {
				n++
				requireStrict(t, x.Function.Name, x.Function.Parameters)
			}
		}
		require.NotZero(t, n, file)
		t.Logf("%s: %d of %d tools can be strict", file, n, len(list))
	}
	meta, err := catalog.PlanSchema(nil, catalog.Options{Strict: true})
	require.NoError(t, err)
	var schema any
	require.NoError(t, json.Unmarshal(meta, &schema))
	requireStrict(t, "execute_tool_plan", schema)
}

func requireStrict(t *testing.T, at string, v any) {
	t.Helper()
	if list, ok := v.([]any); ok {
		for i := range list {
			requireStrict(t, fmt.Sprint(at, "/", i), list[i])
		}
	}
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	if properties, ok := m["properties"].(map[string]any); ok {
		require.Equal(t, false, m["additionalProperties"], at)
		require.Len(t, m["required"], len(properties), at)
	} else {
		require.NotEqual(t, "object", m["type"], at)
	}
	for name, x := range m {
		requireStrict(t, at+"/"+name, x)
	}
}

// What the guide recommends is among the names that it and the schema allow.
func TestTheToolThatAsksCanBeCalled(t *testing.T) {
	t.Parallel()
	list := []*tool.Definition{{Name: "echo"}}
	require.Contains(t, catalog.Guide(list), "\n- ask(")
	s := planSchema(t, list, catalog.Options{})
	require.Empty(t, s.Check([]byte(`{"steps":[{"id":"a","tool":"ask","arguments":{"question":"x"}}]}`), nil))
	require.Empty(t, s.Check([]byte(`{"calls":[{"_tool":"ask","question":"x"}]}`), nil))
	require.NotEmpty(t, s.Check([]byte(`{"steps":[{"id":"a","tool":"ask_user"}]}`), nil))
}
