package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// opened reads the page at an address, as a browser does.
func opened(t *testing.T, url string) (runs []string) {
	t.Helper()
	for _, path := range []string{"/", "/app.js", "/app.css", "/runs/default.somewhere"} {
		answer, err := http.Get(url + path) //nolint:noctx // it is on loopback
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode, path)
		require.NotEmpty(t, body, path)
	}
	answer, err := http.Get(url + "/api/v1/runs") //nolint:noctx // it is on loopback
	require.NoError(t, err)
	var list struct{ Runs []struct{ Run string } }
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&list))
	require.NoError(t, answer.Body.Close())
	for _, r := range list.Runs {
		runs = append(runs, r.Run)
	}
	return runs
}

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// The page is served by dev, and by itself beside it: both show the runs that there are.
func TestThePageIsServed(t *testing.T) {
	t.Parallel()
	data := folder(t)
	p, url := developing(t, data, "--ui", "127.0.0.1:0")
	var up struct{ UI string }
	require.NoError(t, json.Unmarshal([]byte(p.out.String()), &up))
	require.Regexp(t, "^"+address.String()+"$", up.UI)
	require.Empty(t, opened(t, up.UI))
	_, stderr, code := execute(t, data, "", "run", "--run", "shown", examples+"weather.json")
	require.Zero(t, code, stderr)
	beside := start(t, folder(t), "", "ui", "--server", url, "--listen", "127.0.0.1:0")
	require.Eventually(t, func() bool { return address.MatchString(beside.errs.String()) }, patience, 10e6)
	for _, page := range []string{up.UI, address.FindString(beside.errs.String())} {
		require.Eventually(t, func() bool {
			runs := opened(t, page)
			return len(runs) == 1 && runs[0] == "shown"
		}, patience, 10e6)
	}

	tokens := filepath.Join(t.TempDir(), "tokens.json")
	require.NoError(t, os.WriteFile(tokens, []byte(`{"tokens":[]}`), 0o600))
	for said, args := range map[string][]string{
		"nobody is asked who calls": {"--listen", "0.0.0.0:0"},
		"it lets nobody in":         {"--auth", "token=" + tokens},
		"token=FILE or proxy=FILE":  {"--auth", tokens},
		"no such file":              {"--auth", "proxy=" + tokens + ".not"},
		"by no name that is known":  {"--listen", "0.0.0.0:0", "--auth", "proxy=" + secretFile(t)},
		"no such file or directory": {"--tenants", tokens + ".not"},
	} {
		_, stderr, code := execute(t, data, "", append([]string{"ui", "--server", url}, args...)...)
		require.Equal(t, 2, code, stderr)
		require.Contains(t, stderr, said)
	}
}

// secretFile returns a file for --auth proxy.
func secretFile(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "proxy.json")
	body := `{"sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}`
	require.NoError(t, os.WriteFile(name, []byte(body), 0o600))
	return name
}

func TestDevWithoutThePage(t *testing.T) {
	t.Parallel()
	p, _ := developing(t, folder(t), "--ui", "off")
	require.Contains(t, p.out.String(), `"ui":""`)
}
