package ui_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/ui"
)

// What is too large to be shown is saved whole, byte for byte as it was recorded, as a file that no browser opens.
func TestWhatIsLargeIsSavedWhole(t *testing.T) {
	t.Parallel()
	const hash = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b" // of "secret"
	w := newWorld(t, nil)
	long := `<script>alert(1)</script>é` + strings.Repeat("x", 300<<10)
	key := w.run("acme", `a"b/`+"\n", `{"steps":[{"id":"a","tool":"echo","arguments":{"n":12345678901234567890,"text":"`+strings.ReplaceAll(long, `"`, `\"`)+`"}},
		{"id":"b","tool":"echo","arguments":{"all":[`+strings.TrimSuffix(strings.Repeat(`"$ref:a.text",`, 16), ",")+`]}},
		{"id":"no","tool":"fail","arguments":{"message":"no","terminal":true}},{"id":"after","tool":"echo","arguments":{"of":"$ref:no"}}],"output_steps":["b"]}`)
	saved := func(path string) []byte {
		answer := w.request(http.MethodGet, "/api/v1/runs/"+key+"/steps/"+path, nil)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, answer.StatusCode, "%.300s", body)
		require.EqualValues(t, len(body), answer.ContentLength)
		require.Equal(t, "application/octet-stream", answer.Header.Get("Content-Type"))
		require.Equal(t, "nosniff", answer.Header.Get("X-Content-Type-Options"))
		require.Regexp(t, `^attachment; filename="a_b__-[\w-]+\.json"$`, answer.Header.Get("Content-Disposition"))
		return body
	}
	var one struct {
		N    json.Number
		Text string
	}
	for _, path := range []string{"a/blob", "a/blob?of=result", "a/blob?of=arguments"} {
		require.NoError(t, json.Unmarshal(saved(path), &one))
		require.Equal(t, long, one.Text)
		require.Equal(t, json.Number("12345678901234567890"), one.N, "no digit is lost on the way")
	}
	var all struct{ All []string }
	body := saved("b/blob")
	require.Greater(t, len(body), 4<<20, "more than is shown of anything")
	require.NoError(t, json.Unmarshal(body, &all))
	require.Len(t, all.All, 16)
	require.Equal(t, long, all.All[15])

	for path, status := range map[string]int{
		"after/blob": http.StatusNotFound, "nobody/blob": http.StatusNotFound, "a/blob?of=plan": http.StatusBadRequest,
	} {
		refused(w, w.request(http.MethodGet, "/api/v1/runs/"+key+"/steps/"+path, nil), status)
	}

	auth, err := ui.ParseTokens([]byte(`{"tokens":[{"sha256":"` + hash + `","name":"ann","role":"viewer","tenants":["globex"]}]}`))
	require.NoError(t, err)
	w.serve(func(c *ui.Config) { c.Auth = auth })
	refused(w, w.request(http.MethodGet, "/api/v1/runs/"+key+"/steps/a/blob", nil), http.StatusUnauthorized)
	w.token = "secret"
	e := refused(w, w.request(http.MethodGet, "/api/v1/runs/"+key+"/steps/a/blob", nil), http.StatusNotFound)
	require.Equal(t, fault.NotFound, e.Code, "another tenant's run is one that there isn't")
}
