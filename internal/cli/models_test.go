package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/modelscript"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/worker"
)

const modelKey = "sk-test-0123456789abcdef"

// halves is a model that divides by what it was given and adds something beside, and goes around a division that failed.
func halves(t *testing.T) *modelscript.Server {
	s := modelscript.Start(0,
		modelscript.Turn{Thinking: "Twelve by nothing?", Text: "I divide, and add one beside.", Calls: []modelscript.Call{
			{ID: "call_a", Tool: "divide", Arguments: `{"a": 12, "b": 0}`}, {ID: "call_b", Tool: "add", Arguments: `{"a": 0, "b": 1}`}}},
		modelscript.Turn{Text: "By one, then.", Calls: []modelscript.Call{
			{ID: "call_c", Tool: "divide", Arguments: `{"a": 12, "b": 1}`}, {ID: "call_d", Tool: "multiply", Arguments: `{"a": 3, "b": 4}`},
			{ID: "call_e", Tool: "add", Arguments: `{"a": 2, "b": 2}`}}},
		modelscript.Turn{Text: "It is 12."},
	)
	t.Cleanup(s.Close)
	return s
}

// environment leads a provider's name to a server.
func environment(provider string, s *modelscript.Server) []string {
	switch provider {
	case "openai":
		return []string{"OPENAI_BASE_URL=" + s.URL + "/v1", "OPENAI_API_KEY=" + modelKey}
	case "anthropic":
		return []string{"ANTHROPIC_BASE_URL=" + s.URL, "ANTHROPIC_API_KEY=" + modelKey}
	}
	return []string{"OLLAMA_HOST=" + s.URL}
}

// ledgerOf returns the records of a ledger by their subjects, each with its headers and body.
func ledgerOf(t *testing.T, url string) map[string]*nats.Msg {
	t.Helper()
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), subjects.LedgerStream(0))
	require.NoError(t, err)
	all := map[string]*nats.Msg{}
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		m, err := stream.GetMsg(t.Context(), seq)
		require.NoError(t, err)
		all[m.Subject] = &nats.Msg{Header: m.Header, Data: m.Data}
	}
	return all
}

// The same agent on a model of OpenAI's form and on one of Anthropic's, and on one of Ollama without a key, with the server,
// the orchestrator and the tools in one process and the model's worker in the one of the command: two calls at once of which
// one fails, three that go around it, an answer. The records are the same, but for what is about the provider.
func TestTheSameAgentOnEveryModel(t *testing.T) {
	t.Parallel()
	var first map[string]*nats.Msg
	for _, provider := range []string{"openai", "anthropic", "ollama"} {
		s, data := halves(t), folder(t)
		_, url := developing(t, data)
		p := startIn(t, environment(provider, s), data, "", "agents", "run", "halver", "--apply", agentFiles+"modelled.json", "--model", provider+":m",
			"--run", "same", "--input", `{"by": 0}`, "-o", "json")
		require.Zero(t, p.end(t), "%s: %v", provider, &p.errs)
		out := decode(t, p.out.String())
		require.Equal(t, outcome.Succeeded, out.Status)
		got, _ := out.Results.Get("agent")
		require.JSONEq(t, `"It is 12."`, string(got))
		require.Contains(t, p.errs.String(), "3 rounds, 3 calls of the planner, 5 calls that it asked for, 3000 tokens in, 60 out")
		records := ledgerOf(t, url)
		_, all, code := execute(t, data, "", "get", "same", "-o", "json")
		require.Zero(t, code)
		for subject, m := range records {
			require.NotContains(t, subject+string(m.Data)+all+p.errs.String()+p.out.String(), modelKey)
		}
		askedForRounds(t, provider, s)
		if provider == "anthropic" { // which has thought, and wants that back as it was
			require.Contains(t, string(s.Asked()[2].Body), `{"type":"thinking","thinking":"Twelve by nothing?","signature":"c2ln"}`)
		}
		if first == nil {
			first = records
			continue
		}
		require.ElementsMatch(t, slices.Collect(maps.Keys(first)), slices.Collect(maps.Keys(records)))
		for subject, want := range first {
			require.Equal(t, comparable(t, want), comparable(t, records[subject]), "%s: %s", provider, subject)
		}
	}
}

// comparable is a record without what is not the agent's: when and by whom it was written and in which order with others of
// the same moment; and of a planner's what its provider counted and wants back.
func comparable(t *testing.T, m *nats.Msg) string {
	t.Helper()
	for _, name := range []string{"Nats-Sequence", "Nats-Time-Stamp", "Stepjet-Client", "Stepjet-Started", "Stepjet-Ended", "Stepjet-Worker"} {
		m.Header.Del(name)
	}
	body := m.Data
	if strings.Contains(m.Header.Get("Nats-Subject"), "/=plan.") {
		var answer map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(body, &answer))
		require.Contains(t, answer, "usage")
		delete(answer, "usage")
		delete(answer, "provider_state")
		body, _ = json.Marshal(answer)
	}
	return fmt.Sprint(m.Header, string(body))
}

// askedForRounds looks at what a model was asked: by its form, with its key, each request with the bytes of the one before.
func askedForRounds(t *testing.T, provider string, s *modelscript.Server) {
	t.Helper()
	asked := s.Asked()
	require.Len(t, asked, 3, "one request for each round")
	var before []byte
	for _, a := range asked {
		require.Equal(t, map[string]string{"openai": "Bearer " + modelKey}[provider], a.Header.Get("Authorization"), provider)
		require.Equal(t, map[string]string{"anthropic": modelKey}[provider], a.Header.Get("X-Api-Key"), provider)
		body := bytes.ReplaceAll(a.Body, []byte(`,"cache_control":{"type":"ephemeral"}`), nil)
		require.True(t, bytes.HasPrefix(body, before), "%s\n%s", before, body)
		tail := bytes.LastIndex(body, []byte("Facts:"))
		require.Positive(t, tail, "%s", body)
		before = body[:bytes.LastIndexByte(body[:tail], ',')]
		before = before[:bytes.LastIndexByte(before, '}')+1] // to the end of what the next request has as well
		require.Greater(t, len(before), 500)
	}
}

// What can't be asked is said before anything is sent, with what to do; a model that others host already is not hosted again.
func TestNobodyPlans(t *testing.T) {
	t.Parallel()
	data := folder(t)
	_, url := developing(t, data)
	agents := []string{"agents", "run", "halver", "--apply", agentFiles + "modelled.json", "--input", `{"by": 0}`}
	for _, x := range []struct {
		env, args []string
		says      []string
		code      int
	}{
		{args: []string{"--model", "openai:m"}, code: exitInvalid,
			says: []string{"openai:m needs a key, and the environment variable OPENAI_API_KEY is not set", "hint: set it; or ask a model that needs none, ollama:MODEL"}},
		{args: []string{"--model", "gpt"}, code: exitInvalid, says: []string{`"gpt" names no model`, "models file"}},
		{args: []string{"--models", "testdata/none.json"}, code: exitInvalid, says: []string{"reading the models file"}},
		{args: []string{"--models", "x", "--model", "y"}, code: exitInvalid, says: []string{"leave one of them out"}},
		{args: nil, code: exitInvalid, says: []string{"thinker"}}, // the agent can't be registered: nobody knows its planner
	} {
		p := startIn(t, x.env, data, "", append(agents, x.args...)...)
		require.Equal(t, x.code, p.end(t), "%v: %v", x.args, &p.errs)
		for _, text := range x.says {
			require.Contains(t, p.errs.String(), text)
		}
		require.Empty(t, p.out.String())
	}
	s := halves(t)
	p := startIn(t, environment("ollama", s), data, "", append(agents, "--model", "ollama:m")...)
	require.Zero(t, p.end(t), "%v", &p.errs)
	_, stderr, code := execute(t, data, "", "agents", "run", "halver", "--input", `{"by": 0}`)
	require.Equal(t, exitFailed, code, "it is known, and nobody hosts its planner any more")
	require.Contains(t, stderr, "not_ready: no worker hosts thinker, the planner of the agent halver")
	require.Contains(t, stderr, "hint: have a language model plan: --model ollama:qwen3:4b here")
	require.Contains(t, stderr, "OPENAI_API_KEY")

	nc, err := nats.Connect(url)
	require.NoError(t, err)
	defer nc.Close()
	w, err := worker.New(nc, worker.Config{Name: "other"})
	require.NoError(t, err)
	worker.Handle(w, "thinker", func(context.Context, map[string]any) (string, error) { return "Twelve.", nil })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	<-w.Ready()
	p = startIn(t, environment("ollama", s), data, "", append(agents, "--model", "ollama:m")...)
	require.Equal(t, exitInvalid, p.end(t))
	require.Contains(t, p.errs.String(), "ollama:m would not be asked: other workers host what plans for halver")
	stdout, stderr, code := execute(t, data, "", "agents", "run", "halver", "--input", `{"by": 0}`, "-o", "json")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, `"agent":"Twelve."`)
	cancel()
	require.NoError(t, <-done)
	require.Len(t, s.Asked(), 3)
}

// Who interrupts a command that hosts what plans is told that the run waits for it, and goes on by the same command.
func TestAPlannerGoesWithItsCommand(t *testing.T) {
	t.Parallel()
	data := folder(t)
	developing(t, data)
	asked, release := make(chan struct{}, 10), make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-release
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(silent.Close)
	agents := []string{"agents", "run", "halver", "--apply", agentFiles + "modelled.json", "--input", `{"by": 0}`, "--model", "ollama:m", "--run", "r"}
	p := startIn(t, []string{"OLLAMA_HOST=" + silent.URL}, data, "", agents...)
	select {
	case <-asked:
	case <-time.After(patience):
		t.Fatal("nobody asked the model: ", &p.errs)
	}
	require.NoError(t, p.Process.Signal(os.Interrupt))
	close(release)
	require.Equal(t, 130, p.end(t), "%v", &p.errs)
	require.Contains(t, p.errs.String(), "what plans went with this command, so the run waits; the same command with --run r goes on with it")
	require.Contains(t, p.errs.String(), "stepjet get r")
	require.NotContains(t, p.errs.String(), "the run goes on")
	p = startIn(t, environment("ollama", halves(t)), data, "", agents...)
	require.Zero(t, p.end(t), "%v", &p.errs)
	require.Contains(t, p.out.String(), "It is 12.")
}

// Without a server all that a run of an agent needs is in one process, its model's worker, too; stepjet dev hosts a model for
// all commands, of a word or a file.
func TestModelsAreHosted(t *testing.T) {
	t.Parallel()
	s, data := halves(t), folder(t)
	run := func(args ...string) *process {
		p := startIn(t, environment("anthropic", s), data, "", append([]string{"agents", "run", "halver", "--input", `{"by": 0}`, "-o", "json"}, args...)...)
		require.Zero(t, p.end(t), "%v", &p.errs)
		require.Contains(t, p.out.String(), `"agent":"It is 12."`)
		require.NotContains(t, p.errs.String()+p.out.String(), modelKey)
		return p
	}
	run("--apply", agentFiles+"modelled.json", "--model", "anthropic:m")
	file := filepath.Join(t.TempDir(), "models.json")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `{"tools": [{"name": "thinker", "model": {"provider": "openai", "base_url": "%s/v1",
		"models": {"large": {"id": "m", "input_usd": 1, "output_usd": 10}}}}]}`, s.URL), 0o600))
	p := run("--models", file)
	require.Contains(t, p.errs.String(), "3000 tokens in, 60 out, $0.0036")
	dev := startIn(t, []string{"STEPJET_MODELS=" + file}, data, "", "dev", "-o", "json", "--listen", "127.0.0.1:0")
	require.Eventually(t, func() bool { return strings.Contains(dev.out.String(), "nats://") }, patience, 10*time.Millisecond, "%v", &dev.errs)
	run()
	require.Len(t, s.Asked(), 9)
	p = startIn(t, nil, folder(t), "", "dev", "--model", "anthropic:m")
	require.Equal(t, exitInvalid, p.end(t))
	require.Contains(t, p.errs.String(), "ANTHROPIC_API_KEY is not set")
}
