//go:build unix

// Package toolsfile_test holds docs/tools-file.md to its word: its examples are the files of this folder, which are
// loaded and called, and it names every field that a tools file may have.
package toolsfile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/hosted"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/stepjettest"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const page = "../../docs/tools-file.md"

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(raw)
}

// TestWhatThePageShowsIsAFile: a snippet that is no file is never loaded.
func TestWhatThePageShowsIsAFile(t *testing.T) {
	t.Parallel()
	text := read(t, page)
	var shown []string
	for _, m := range regexp.MustCompile("(?s)\n```json\n(.*?)```").FindAllStringSubmatch(text, -1) {
		shown = append(shown, m[1])
	}
	var files []string
	for _, f := range tools(t) {
		files = append(files, read(t, f))
	}
	require.ElementsMatch(t, files, shown)
	scripts, err := filepath.Glob("*.sh")
	require.NoError(t, err)
	for _, f := range scripts {
		require.Contains(t, text, "\n```sh\n"+read(t, f)+"```", f)
	}
}

// tools returns the tools files of this folder.
func tools(t *testing.T) (all []string) {
	t.Helper()
	files, err := filepath.Glob("*.json")
	require.NoError(t, err)
	for _, f := range files {
		if f != "plan.json" {
			all = append(all, f)
		}
	}
	return all
}

// TestThePageNamesEveryField asks the decoder, by a field that it can't know, which ones it knows.
func TestThePageNamesEveryField(t *testing.T) {
	t.Parallel()
	text := read(t, page)
	sections := map[string]string{"": text}
	for _, name := range []string{"exec", "http"} {
		_, after, found := strings.Cut(text, "\n## "+name+"\n")
		require.True(t, found, name)
		sections[name], _, _ = strings.Cut(after, "\n## ")
	}
	for _, c := range []struct{ section, file string }{
		{"", `{"Q":1,"tools":[{"builtin":"all"}]}`},
		{"", `{"tools":[{"Q":1,"builtin":"all"}]}`},
		{"exec", `{"tools":[{"name":"x","exec":{"Q":1,"argv":["/bin/sh"]}}]}`},
		{"http", `{"tools":[{"name":"x","http":{"Q":1,"url":"https://example.com"}}]}`},
	} {
		for _, field := range known(t, c.file) {
			require.Contains(t, sections[c.section], "`"+field+"`", "docs/tools-file.md has no %s", field)
			if c.section != "" {
				require.Contains(t, sections[c.section], "\n| `"+field+"` | ", "no row for %s of %s", field, c.section)
			}
		}
	}
	plain := strings.ReplaceAll(text, ",", "")
	for row, most := range map[string]int{"`max_concurrency` | 1 to %d ": tool.MaxLimit, "`max_attempts`: 1 to %d;": tool.MaxAttempts, "The file may have %d MiB": hosted.MaxFile >> 20} {
		require.Contains(t, plain, fmt.Sprintf(row, most))
	}
	for _, field := range contractFields() {
		require.Contains(t, sections[""], "`"+field+"`", "docs/tools-file.md has no %s", field)
	}
}

// known returns the fields that the decoder names where it refuses the field Q.
func known(t *testing.T, file string) []string {
	t.Helper()
	_, err := hosted.Parse([]byte(file), ".")
	var problems hosted.Problems
	require.True(t, errors.As(err, &problems), "%v", err)
	require.Len(t, problems, 1)
	list, found := strings.CutPrefix(problems[0].Hint, "there are ")
	require.True(t, found, problems[0].Hint)
	return strings.Split(list, ", ")
}

// contractFields returns the fields of a definition and of all that it holds.
func contractFields() (all []string) {
	of := func(v any) {
		typ := reflect.TypeOf(v)
		for i := range typ.NumField() {
			if name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
				all = append(all, name)
			}
		}
	}
	of(tool.Definition{})
	of(tool.Annotations{})
	of(tool.Orchestration{})
	of(tool.Retry{})
	of(tool.Batch{})
	of(tool.Dependency{})
	return append(all, "strategy", "initial_ms", "max_ms", "jitter") // tool.Backoff has a form of its own
}

// called is what the HTTP tools' server was asked.
type called struct{ path, lang, token, user, key string }

// api is the server that the HTTP tools of the examples ask.
func api(t *testing.T, heard chan<- called) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard <- called{r.URL.Path, r.URL.Query().Get("lang"), r.Header.Get("Authorization"), r.Header.Get("X-User"), r.Header.Get("Idempotency-Key")}
		var in struct {
			Contacts []json.RawMessage `json:"contacts"`
		}
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json") // text/plain would be a string
		if r.URL.Path != "/v1/contacts" {
			fmt.Fprintf(w, `{"path":%q,"body":%q}`, r.URL.Path, body)
			return
		}
		if err := json.Unmarshal(body, &in); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		var results []string
		for i := range in.Contacts {
			results = append(results, fmt.Sprintf(`{"index":%d,"status":"ok","data":{"contact_id":"c-%d"}}`, i, i+1))
		}
		fmt.Fprintf(w, `{"results":[%s],"summary":{"ok":%d,"error":0}}`, strings.Join(results, ","), len(results))
	}))
	t.Cleanup(s.Close)
	return s
}

// folder returns a copy of this folder, where programs may write, whose HTTP tools ask a server of the test's.
func folder(t *testing.T, host string) string {
	t.Helper()
	dir := t.TempDir()
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		text := strings.ReplaceAll(read(t, e.Name()), "127.0.0.1:8090", host)
		require.NoError(t, os.WriteFile(filepath.Join(dir, e.Name()), []byte(text), info.Mode()))
	}
	return dir
}

// host loads a tools file and runs a worker with it.
func host(t *testing.T, s *stepjettest.Stack, path string) {
	t.Helper()
	f, err := hosted.Load(path)
	require.NoError(t, err)
	t.Cleanup(f.Close)
	require.Empty(t, f.Warnings())
	s.Host(func(w *worker.Worker) { require.NoError(t, f.Register(w)) })
}

// TestTheExamplesRun calls each tool of each file in a plan, and looks at what came of it.
func TestTheExamplesRun(t *testing.T) {
	t.Setenv("CITY_TOKEN", "t0ken")
	heard := make(chan called, 10)
	dir := folder(t, strings.TrimPrefix(api(t, heard).URL, "http://"))
	s := stepjettest.New(t)
	for _, f := range tools(t) {
		host(t, s, filepath.Join(dir, f))
	}

	require.JSONEq(t, `{"result":5}`, result(t, s.Run(plan("add", `{"a":2,"b":3}`))))
	require.JSONEq(t, `{"result":"ab"}`, result(t, s.Run(plan("text_concat", `{"parts":["a","b"]}`))))
	require.JSONEq(t, `{"result":1}`, result(t, s.Run(plan("wait", `{"ms":1}`))))

	// The arguments of the page's own plan begin with a dash, and are data all the same.
	out := s.Run(read(t, "plan.json"))
	require.Equal(t, outcome.Succeeded, out.Status, "%s", out.JSON())
	note, _ := out.Results.Get("note")
	require.JSONEq(t, `"written, attempt 1"`, string(note))
	journal := strings.Fields(read(t, filepath.Join(dir, "journal.txt")))
	require.Equal(t, []string{"nobody", "info"}, journal[1:3])

	user, err := client.NewContext(map[string]string{"user": "ann", "user_token": "s3cret"}, "user_token")
	require.NoError(t, err)
	as := func(plan string) *outcome.Outcome {
		out, err := s.Client().Run(t.Context(), []byte(plan), client.SubmitOptions{Context: client.RunContext{All: user}})
		require.NoError(t, err)
		return out
	}
	result(t, as(plan("journal", `{"entry":"x","level":"warning"}`)))
	require.Contains(t, read(t, filepath.Join(dir, "journal.txt")), " ann warning {")

	require.JSONEq(t, `{"path":"/v1/cities/São Paulo/1","body":""}`, result(t, s.Run(plan("get_city", `{"city":"São Paulo/1"}`))))
	got := <-heard
	require.NotEmpty(t, got.key)
	got.key = ""
	require.Equal(t, called{path: "/v1/cities/São Paulo/1", token: "Bearer t0ken"}, got)
	result(t, s.Run(plan("get_city", `{"city":"Oslo","lang":"no"}`)))
	require.Equal(t, "no", (<-heard).lang)
	require.Contains(t, result(t, as(plan("order_taxi", `{"from":"a","to":"b"}`))), `{\"from\":\"a\",\"to\":\"b\"}`)
	got = <-heard
	require.Equal(t, "Bearer s3cret", got.token)
	require.Equal(t, "ann", got.user)
	require.Equal(t, outcome.Failed, s.Run(plan("order_taxi", `{"from":"a","to":"b"}`)).Status, "the run has no token")

	require.JSONEq(t, `{"contact_id":"c-1"}`, result(t, s.Run(plan("create_contacts", `{"email":"a@example.com"}`))))
	require.Empty(t, (<-heard).token)
}

// plan returns one with a single step, a.
func plan(tool, arguments string) string {
	return fmt.Sprintf(`{"steps":[{"id":"a","tool":%q,"arguments":%s}]}`, tool, arguments)
}

// result returns what step a returned.
func result(t *testing.T, out *outcome.Outcome) string {
	t.Helper()
	require.Equal(t, outcome.Succeeded, out.Status, "%s", out.JSON())
	r, there := out.Results.Get("a")
	require.True(t, there)
	return string(r)
}

// toolsIn writes a tools file of the test's own and hosts it.
func toolsIn(t *testing.T, s *stepjettest.Stack, tools ...string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tools.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"tools":[`+strings.Join(tools, ",")+`]}`), 0o600))
	f, err := hosted.Load(path)
	require.NoError(t, err)
	t.Cleanup(f.Close)
	s.Host(func(w *worker.Worker) { require.NoError(t, f.Register(w)) })
}

// TestAProgramGetsTheVariablesOfThePage, and none that the page does not name.
func TestAProgramGetsTheVariablesOfThePage(t *testing.T) {
	t.Setenv("OF_THE_WORKER", "secret")
	t.Setenv("NATS_NKEY", "secret")
	s := stepjettest.New(t)
	toolsIn(t, s, `{"name":"env","exec":{"argv":["env"],"env":["OWN=1"]}}`)
	var text string
	require.NoError(t, json.Unmarshal([]byte(result(t, s.Run(plan("env", `{}`)))), &text))
	_, after, _ := strings.Cut(read(t, page), "\n**Environment.**")
	section, _, _ := strings.Cut(after, "\n**Result.**")
	for line := range strings.Lines(text) {
		if name, _, _ := strings.Cut(line, "="); name != "OWN" {
			require.Contains(t, section, "`"+name+"`")
		}
	}
	require.Contains(t, text, "STEPJET_KEY=default/")
	require.NotContains(t, text, "secret")
}

// TestEveryErrorOfThePage brings about what each row of the table of errors says.
func TestEveryErrorOfThePage(t *testing.T) {
	t.Parallel()
	s := stepjettest.New(t)
	status := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var code int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &code)
		w.WriteHeader(code)
	}))
	t.Cleanup(status.Close)
	closed := httptest.NewServer(nil)
	closed.Close()
	_, after, _ := strings.Cut(read(t, page), "\n## Errors\n")
	rows := regexp.MustCompile("(?m)^\\| (.*) \\| `([a-z_]+)` \\| (yes|no)").FindAllStringSubmatch(after, -1)
	exec := func(more string) string { return `"exec":{` + more + `}` }
	get := func(url string) string { return `"http":{"allow_private":true,"url":"` + url + `"}` }
	sh := func(script string) string { return exec(`"argv":["/bin/sh","-c","` + script + `"]`) }
	const text = `"inputSchema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},`
	brings := [][]string{ // for each row, tools that end so
		{sh("exit 3"), sh("kill -9 $$")},
		{exec(`"argv":["./absent"]`)},
		{get(status.URL + "/408"), get(status.URL + "/425"), get(status.URL + "/429"), get(status.URL + "/500"), get(status.URL + "/503")},
		{get(status.URL + "/404"), `"http":{"url":"http://localhost:1/"}`},
		{get(closed.URL)},
		{exec(`"argv":["sleep","60"],"timeout_ms":50`)},
		{exec(`"argv":["echo","more"],"output_limit_bytes":2`)},
		{sh(`printf '\\377'`), sh(`printf '{\"a\":1,\"a\":2}'`)},
		{text + exec(`"argv":["echo","{{a}}"]`)},
		{`"http":{"allow_private":true,"url":"` + status.URL + `/200","headers":{"X-A":"for ${context:absent}"}}`},
	}
	require.Len(t, rows, len(brings))
	var tools []string
	for i, of := range brings {
		for j, tool := range of {
			tools = append(tools, fmt.Sprintf(`{"name":"t%d_%d","x-orchestration":{"retry":{"max_attempts":1}},%s}`, i, j, tool))
		}
	}
	toolsIn(t, s, tools...)
	for i, of := range brings {
		for j := range of {
			out := s.Run(plan(fmt.Sprintf("t%d_%d", i, j), `{"a":"-x"}`))
			require.Equal(t, outcome.Failed, out.Status, "%s: %s", rows[i][0], out.JSON())
			code := out.Errors[0].Code
			require.Equal(t, rows[i][2], string(code), "%s: %s", rows[i][0], out.JSON())
			require.Equal(t, rows[i][3] == "yes", code.Retryable(), rows[i][0])
		}
	}
}
