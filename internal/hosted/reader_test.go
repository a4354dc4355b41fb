package hosted

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/builtin"
)

func names(f *File) []string {
	var out []string
	for _, d := range f.Definitions() {
		out = append(out, d.Name)
	}
	return out
}

func TestTheExampleIsValid(t *testing.T) {
	t.Parallel()
	f, err := Load(filepath.Join("..", "..", "deploy", "tools.json"))
	require.NoError(t, err)
	t.Cleanup(f.Close)
	require.Subset(t, names(f), []string{"add", "text_upper", "json_get", "echo", "wait", "json_query", "get_forecast"})
	require.NotContains(t, names(f), "sleep")
}

func TestBuiltinEntries(t *testing.T) {
	t.Parallel()
	require.Len(t, Builtin().Definitions(), len(builtin.All()))
	require.Equal(t, names(Builtin()), names(parse(t, `{"builtin":"all"}`)))
	require.Len(t, parse(t, `{"builtin":"nestful"}`).Definitions(), 17)
	f := parse(t, `{"builtin":"add"}`, `{"builtin":"add","name":"plus","description":"Sum.","tenants":["acme"],"x-orchestration":{"mode":"sequential-only"}}`)
	require.Equal(t, []string{"add", "plus"}, names(f))
	original, _ := builtin.Lookup("add")
	require.Equal(t, original.Definition.Digest(), f.Definitions()[0].Digest())
	require.Nil(t, original.Definition.Orchestration)
	plus := f.Definitions()[1]
	require.Equal(t, "Sum.", plus.Description)
	require.Equal(t, []string{"acme"}, plus.Tenants)
	require.JSONEq(t, string(original.Definition.InputSchema), string(plus.InputSchema))
	c, err := plus.Contract()
	require.NoError(t, err)
	require.Equal(t, 1, c.Limit)
}

// Each case gives the places and a part of each problem, in order.
func TestProblems(t *testing.T) {
	t.Setenv("STEPJET_TEST_TOKEN", "secret")
	exec := func(s string) string {
		return `{"tools":[{"name":"x",` + schemaOf("a", "n:number", "o:object") + `,"exec":{` + s + `}}]}`
	}
	http := func(s string) string {
		return `{"tools":[{"name":"x",` + schemaOf("a", "n:number", "o:object") + `,"http":{` + s + `}}]}`
	}
	for _, c := range []struct {
		name, file string
		want       []string
	}{
		{"empty", ``, []string{" not valid JSON"}},
		{"cut", "{\"tools\":[\n  {]", []string{" line 2, column"}},
		{"trailing", `{"tools":[{"builtin":"add"}]} x`, []string{" at line 1"}},
		{"two documents", `{"tools":[{"builtin":"add"}]} {}`, []string{" something follows"}},
		{"deep", strings.Repeat("[", 100), []string{" deeper than 64"}},
		{"not UTF-8", "{\"tools\":\"\xff\"}", []string{" UTF-8"}},
		{"array", `[]`, []string{" must be an object, not an array"}},
		{"none", `{}`, []string{" is missing"}},
		{"null", `{"tools":null}`, []string{"/tools must be an array, not null"}},
		{"no tools", `{"tools":[]}`, []string{"/tools no tools"}},
		{"near miss", `{"tool":[]}`, []string{`/tool did you mean "tools"`, " is missing"}},
		{"twice", `{"tools":[{"builtin":"add","builtin":"add"}]}`, []string{"/tools/0/builtin twice"}},
		{"same name", `{"tools":[{"builtin":"arithmetic"},{"builtin":"add"}]}`, []string{`/tools/1 "add" is there already, at /tools/0`}},
		{"unknown builtin", `{"tools":[{"builtin":"arithmatic"},{"builtin":"text_uper"},{"builtin":"magic"}]}`,
			[]string{`/tools/0/builtin did you mean "arithmetic"`, `/tools/1/builtin did you mean "text_upper"`, "/tools/2/builtin there are all, arithmetic, text, json, demo, nestful"}},
		{"changed group", `{"tools":[{"builtin":"text","name":"x"}]}`, []string{"/tools/0/name takes no name"}},
		{"changed schema", `{"tools":[{"builtin":"add","inputSchema":{}}]}`, []string{"/tools/0/inputSchema keeps its own"}},
		{"no kind", `{"tools":[{"name":"x"}]}`, []string{"/tools/0 0 of them"}},
		{"two kinds", `{"tools":[{"name":"x","exec":{"argv":["ls"]},"http":{"url":"https://example.com"}}]}`, []string{"/tools/0 2 of them"}},
		{"unknown field", `{"tools":[{"name":"x","input_schema":{},"exe":{},"exec":{"argv":["ls"],"timeout":1}}]}`,
			[]string{`/tools/0/exe did you mean "exec"`, `/tools/0/input_schema did you mean "inputSchema"`, "/tools/0/exec/timeout there are argv"}},
		{"bad name", `{"tools":[{"name":"a b","exec":{"argv":["ls"]}}]}`, []string{"/tools/0/name a b"}},
		{"contract", `{"tools":[{"name":"x","x-orchestration":{"mode":"whatever"},"exec":{"argv":["ls"]}}]}`, []string{"/tools/0/x-orchestration/mode whatever"}},
		{"schema", `{"tools":[{"name":"x","inputSchema":{"type":5},"exec":{"argv":["ls"]}}]}`, []string{"/tools/0/inputSchema/type has to be the name of a type"}},
		{"everything at once", `{"tools":[5,{"name":"a b","exec":{"argv":[],"stdin":"argument","timeout_ms":0}},{"name":"y","http":{"method":"PACH"}}]}`,
			[]string{"/tools/0 the number 5", "/tools/1/name a b", "/tools/1/exec/timeout_ms between 1", `/tools/1/exec/stdin did you mean "arguments"`, "/tools/1/exec/argv name a program",
				`/tools/2/http/method did you mean "PATCH"`, `/tools/2/http "url" is missing`}},

		{"argv type", exec(`"argv":"ls"`), []string{"/tools/0/exec/argv an array of strings", "/tools/0/exec/argv name a program"}},
		{"program is an argument", exec(`"argv":["{{a}}"]`), []string{"/tools/0/exec/argv/0 program itself"}},
		{"undeclared", exec(`"argv":["ls","{{b}}"]`), []string{`/tools/0/exec/argv/1 no property "b"`}},
		{"no schema", `{"tools":[{"name":"x","exec":{"argv":["ls","{{b}}"]}}]}`, []string{`/tools/0/exec/argv/1 add it`}},
		{"object", exec(`"argv":["ls","{{o}}"]`), []string{"/tools/0/exec/argv/1 no string, number or boolean"}},
		{"optional", `{"tools":[{"name":"x","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}},"exec":{"argv":["ls","{{a}}"]}}]}`, []string{"/tools/0/exec/argv/1 may be absent"}},
		{"broken template", exec(`"argv":["ls","{{.Names}}"]`), []string{"/tools/0/exec/argv/1 write {{{{"}},
		{"NUL", exec(`"argv":["ls","a\u0000"],"env":["A=\u0000"]`), []string{"/tools/0/exec/argv/1 NUL", "/tools/0/exec/env/0 names no variable"}},
		{"dash", exec(`"argv":["ls","{{a}}"],"allow_dash":["n"]`), []string{"/tools/0/exec/allow_dash no placeholder {{n}}"}},
		{"environment", exec(`"argv":["ls"],"env":["NATS_CREDS","nats_url","STEPJET_TEST_TOKEN","=x","SURELY_NOT_SET"]`),
			[]string{"/tools/0/exec/env/0 not passed on", "/tools/0/exec/env/1 not passed on", "/tools/0/exec/env/2 not passed on", "/tools/0/exec/env/3 names no variable", "/tools/0/exec/env/4 has no variable"}},
		{"limits", exec(`"argv":["ls"],"output_limit_bytes":67108865,"timeout_ms":300001`), []string{"/tools/0/exec/output_limit_bytes between 1 and 67108864", "/tools/0/exec/timeout_ms longer than the 5m0s"}},

		{"no URL", http(`"url":"https://exa mple.com/"`), []string{"/tools/0/http/url no URL"}},
		{"scheme", http(`"url":"ftp://example.com"`), []string{"/tools/0/http/url begin with http"}},
		{"host argument", http(`"url":"https://{a}.example.com/"`), []string{"/tools/0/http/url host and port"}},
		{"port argument", http(`"url":"https://example.com:{n}/"`), []string{"/tools/0/http/url host and port"}},
		{"query argument", http(`"url":"https://example.com/?a={a}"`), []string{"/tools/0/http/url belong into the field"}},
		{"fragment", http(`"url":"https://example.com/#x"`), []string{"/tools/0/http/url fragment"}},
		{"credentials", http(`"url":"https://u:p@example.com/"`), []string{"/tools/0/http/url credentials"}},
		{"no host", http(`"url":"https:///x"`), []string{"/tools/0/http/url names no host"}},
		{"dots", http(`"url":"https://example.com/a/../b"`), []string{"/tools/0/http/url between slashes"}},
		{"private", http(`"url":"http://[::ffff:169.254.169.254]/latest"`), []string{"/tools/0/http/url not a public address"}},
		{"undeclared in path", http(`"url":"https://example.com/{aa}"`), []string{`/tools/0/http/url no property "aa"`}},
		{"template in path", http(`"url":"https://example.com/{a"`), []string{"/tools/0/http/url not followed"}},
		{"query", http(`"url":"https://example.com/","query":{"q":"{b}","r":"{","s":"{o}"}`), []string{"/tools/0/http/query/q no property", "/tools/0/http/query/r not followed", "/tools/0/http/query/s no string"}},
		{"headers", http(`"url":"https://example.com/","headers":{"host":"x","Idempotency-Key":"x","a b":"x","X-N":"a\r\nb","X-S":"${env:NATS_URL}","X-T":"${env:SURELY_NOT_SET}","X-U":"${env:"}`),
			[]string{"/tools/0/http/headers/Idempotency-Key set by Stepjet", "/tools/0/http/headers/X-N control", "/tools/0/http/headers/X-S not sent", "/tools/0/http/headers/X-T no variable",
				"/tools/0/http/headers/X-U not followed", "/tools/0/http/headers/a|b no name", "/tools/0/http/headers/host set by Stepjet"}},
		{"body", http(`"url":"https://example.com/","body":"arguments"`), []string{"/tools/0/http/body a GET has no body"}},
		{"types", http(`"url":5,"allow_private":"yes","headers":[]`), []string{"/tools/0/http/headers an object of strings", "/tools/0/http/allow_private true or false", "/tools/0/http/url a string"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse([]byte(c.file), "/")
			var problems Problems
			require.True(t, errors.As(err, &problems), "%v", err)
			var got []string
			for _, p := range problems {
				got = append(got, p.Path+" "+p.Message+" ("+p.Hint+")")
			}
			require.Len(t, got, len(c.want), "%s", strings.Join(got, "\n"))
			for i, want := range c.want {
				place, part, _ := strings.Cut(want, " ")
				require.Equal(t, strings.ReplaceAll(place, "|", " "), problems[i].Path, got[i])
				require.Contains(t, got[i], part)
			}
		})
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tools.json")
	_, err := Load(path)
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
	require.ErrorContains(t, err, path)
	require.NoError(t, os.WriteFile(path, []byte(`{"tools":[{"builtin":"nothing"}]}`), 0o600))
	_, err = Load(path)
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, "/tools/0/builtin: there are no built-in tools")
	require.NoError(t, os.Truncate(path, MaxFile+1))
	_, err = Load(path)
	require.ErrorContains(t, err, "is over")
	_, err = Load(filepath.Dir(path))
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	f := parse(t, `{"name":"x","exec":{"argv":["surely-no-such-program"]}}`, `{"name":"y","exec":{"argv":["./neither"]}}`)
	require.Len(t, f.Warnings(), 2)
	require.Contains(t, f.Warnings()[0], "surely-no-such-program")

	f = parse(t, `{"name":"x","exec":{"argv":["true"]},"outputSchema":{"type":"any"}}`)
	require.Len(t, f.Definitions(), 1)
	require.Len(t, f.Warnings(), 1)
	require.Contains(t, f.Warnings()[0], `/tools/0/outputSchema/type: "any" is no type`)
}

func TestAllFlawsOfAllToolsAreSaidAtOnce(t *testing.T) {
	t.Parallel()
	const file = `{"tools":[
		{"name":"x","exec":{"argv":["true"]},"inputSchema":{"properties":{"a":{"type":"any"},"b":{"required":true}}},"x-orchestration":{"mode":"quick"}},
		{"builtin":"add","x-orchestration":{"max_concurrency":-1}},
		{"name":"z z","http":{"url":"ftp://x"},"inputSchema":{"properties":null}}]}`
	for range 20 {
		_, err := Parse([]byte(file), t.TempDir())
		var problems Problems
		require.ErrorAs(t, err, &problems)
		places := []string{}
		for _, p := range problems {
			places = append(places, p.Path)
		}
		require.Equal(t, []string{"/tools/0/x-orchestration/mode", "/tools/0/inputSchema/properties/a/type", "/tools/0/inputSchema/properties/b/required",
			"/tools/1/x-orchestration/max_concurrency", "/tools/2/name", "/tools/2/inputSchema/properties", "/tools/2/http/url"}, places)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"tools":[{"builtin":"add"}]}`)
	f.Add(`{"tools":[{"name":"x","exec":{"argv":["ls","{{a}}"]}}]}`)
	f.Add(`{"tools":[{"name":"x","http":{"url":"http://a:1/{b}?c","query":{"q":"{d}"},"headers":{"a":"${env:X}"}}}]}`)
	f.Fuzz(func(t *testing.T, s string) {
		file, err := Parse([]byte(s), "/")
		if err == nil {
			file.Close()
			require.NotEmpty(t, file.Definitions())
			return
		}
		var problems Problems
		require.True(t, errors.As(err, &problems))
		require.NotEmpty(t, problems)
	})
}
