package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/internal/exampletest"
	"github.com/stepjet/stepjet/stepjettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripts are those of a folder, by their names.
func scripts(t *testing.T, folder string) (all []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "answers*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, found, folder)
	for _, path := range found {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "answers"), ".json")
		all = append(all, strings.TrimPrefix(name, "-"))
	}
	return all
}

// Every folder's agent sees, answers and comes to what its transcript and its outcome say, to the last byte.
func TestEveryAgent(t *testing.T) {
	t.Parallel()
	four := make(chan struct{}, 4) // at a time: each has a server of its own
	for _, folder := range names() {
		for _, script := range scripts(t, folder) {
			t.Run(folder+" "+script, func(t *testing.T) {
				t.Parallel()
				four <- struct{}{}
				defer func() { <-four }()
				plays(t, folder, script)
			})
		}
	}
}

func plays(t *testing.T, folder, script string) {
	e, err := read(folder, script)
	require.NoError(t, err)
	ctx := exampletest.Context(t)
	stack := stepjettest.New(t)
	s := &stage{example: e}
	end, err := s.open(ctx, stack.Conn(), "")
	require.NoError(t, err)
	out, err := s.play(ctx, folder)
	require.NoError(t, err)
	require.NoError(t, end())
	suffix := ""
	if script != "" {
		suffix = "-" + script
	}
	exampletest.CheckText(t, s.transcript(), filepath.Join(folder, "transcript"+suffix+".txt"))
	exampletest.Check(t, out, filepath.Join(folder, "outcome"+suffix+".json"))
}

// One flag puts a model in the script's place: here one of an endpoint in OpenAI's form, where Ollama would be.
func TestAModelTakesTheScriptsPlace(t *testing.T) {
	asked := make(chan string, 1)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- string(body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"It is 11.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(endpoint.Close)
	t.Setenv("OLLAMA_HOST", strings.TrimPrefix(endpoint.URL, "http://"))
	lines := exampletest.ByHand(t, func(ctx context.Context, url string, out io.Writer) error {
		return run(ctx, url, "calculator", "", "ollama:tiny", out)
	})
	body := <-asked
	require.Contains(t, body, "5 + 3 * 2")
	require.Contains(t, body, `"multiply"`)
	require.Contains(t, body, `"tiny"`)
	require.Equal(t, "ROUND 0", lines[0])
	require.Contains(t, lines[len(lines)-1], `"agent":"It is 11."`)
}

func TestWhatIsNoModelAndNoFolder(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"tiny", "ollama:", "elsewhere:tiny"} {
		_, err := hostModel(nil, name)
		require.ErrorContains(t, err, "names no model; write ollama:MODEL")
	}
	_, err := read("nobody", "")
	require.ErrorContains(t, err, "there are admin, admins, approved, assistant")
}

// Each folder has its line on the page.
func TestThePageNamesEveryFolder(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, folder := range names() {
		require.Contains(t, string(page), "("+folder+")")
	}
}
