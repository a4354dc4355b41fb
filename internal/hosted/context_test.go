//go:build unix

package hosted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

func contextOf(t *testing.T, values map[string]string, secrets ...string) wire.Context {
	t.Helper()
	c, err := wire.NewContext(values, secrets...)
	require.NoError(t, err)
	return c
}

func TestExecGetsTheContextItAsksFor(t *testing.T) {
	t.Parallel()
	c := contextOf(t, map[string]string{"tenantId": "t 1", "api.key": "s3cr3t\x00x", "other": "hidden"}, "api.key")
	for more, want := range map[string]string{
		`,"context":["tenantId","api.key","absent"]`: "STEPJET_CONTEXT_API_KEY=s3cr3tx\nSTEPJET_CONTEXT_TENANTID=t 1",
		``:              "",
		`,"context":[]`: "",
	} {
		out, err := invoke(context.Background(), shell(t, `env | grep STEPJET_CONTEXT_ | sort`, more), `{}`, worker.Info{Key: "k", Context: c})
		require.NoError(t, err)
		require.Equal(t, want, string(out.Body))
	}
}

// A secret that the limit of the message cuts through is not shown either.
func TestExecShowsNoPartOfASecret(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("k3y", 100)
	f := shell(t, `i=0; while [ $i -lt 40 ]; do printf '%s' "$STEPJET_CONTEXT_KEY" >&2; i=$((i+1)); done; exit 1`, `,"context":["key"]`)
	c := contextOf(t, map[string]string{"key": secret}, "key")
	_, err := invoke(context.Background(), f, `{}`, worker.Info{Key: "k", Context: c})
	e := wire.NewRedactor(c).Error(fault.As(err)) // as the worker does
	require.NotContains(t, e.Message, "k3yk")
	require.Contains(t, e.Message, wire.Redacted)
}

func TestHTTPHeadersFromTheContext(t *testing.T) {
	t.Setenv("STEPJETTEST_ID", "id${context:user}")
	var got http.Header
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	f := webTool(t, s, "/", `,"headers":{"authorization":"Bearer ${context:token}","X-User":"${context:user}","X-Env":"${env:STEPJETTEST_ID}","X-Plain":"${x} ${context:${context:"}`)
	c := contextOf(t, map[string]string{"token": "s3cr3t", "user": "ann", "other": "hidden"}, "token")
	_, err := invoke(context.Background(), f, `{}`, worker.Info{Context: c})
	require.NoError(t, err)
	require.Equal(t, "Bearer s3cr3t", got.Get("Authorization"))
	require.Equal(t, "ann", got.Get("X-User"))
	require.Equal(t, "id${context:user}", got.Get("X-Env"), "what the environment holds is no template")
	require.Equal(t, "${x} ${context:", got.Get("X-Plain"))
	require.NotContains(t, fmt.Sprint(got), "hidden")

	_, err = invoke(context.Background(), f, `{}`, worker.Info{Context: contextOf(t, map[string]string{"token": "t"})})
	require.NoError(t, err)
	require.NotContains(t, got, "X-User", "nothing but a key that isn't there")
	got = nil
	_, err = invoke(context.Background(), f, `{}`, worker.Info{})
	require.Equal(t, fault.ToolTerminal, fault.CodeOf(err))
	require.ErrorContains(t, err, `no key "token"`)
	_, err = invoke(context.Background(), f, `{}`, worker.Info{Context: contextOf(t, map[string]string{"token": "s3cr3t\r\nX: y"})})
	require.Equal(t, fault.ToolTerminal, fault.CodeOf(err))
	require.NotContains(t, err.Error(), "s3cr3t")
	require.Nil(t, got, "nothing was sent")
}

func TestHTTPContextStaysWithItsHost(t *testing.T) {
	t.Parallel()
	var got http.Header
	other := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	first := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) })
	f := webTool(t, first, "/", `,"headers":{"X-Token":"${context:token}"}`)
	_, err := invoke(context.Background(), f, `{}`, worker.Info{Context: contextOf(t, map[string]string{"token": "s3cr3t"})})
	require.Error(t, err, "the other host is not public")
	require.Nil(t, got)
	var r reader
	q := &request{}
	entry, _ := r.problems.Object("", json.RawMessage(`{"headers":{"X-Token":"${context:token}","X-A":"b"}}`), "headers")
	r.headers(entry, q)
	require.Contains(t, q.own(), "X-Token")
	require.Contains(t, q.own(), "X-A")
	require.Equal(t, []string{"token"}, r.uses)
}

func TestHTTPShowsNoPartOfASecret(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("k3y", 100)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(400)
		_, _ = io.WriteString(w, strings.Repeat(r.Header.Get("X-Key"), 40))
	})
	f := webTool(t, s, "/", `,"headers":{"X-Key":"${context:key}"}`)
	c := contextOf(t, map[string]string{"key": secret}, "key")
	_, err := invoke(context.Background(), f, `{}`, worker.Info{Context: c})
	require.NotContains(t, wire.NewRedactor(c).Error(fault.As(err)).Message, "k3yk")
}

func TestProblemsOfContext(t *testing.T) {
	t.Parallel()
	for file, want := range map[string][]string{
		`"exec":{"argv":["ls"],"contxt":["a"]}`:                                                             {`/tools/0/exec/contxt`, `did you mean "context"`},
		`"exec":{"argv":["ls"],"context":"a"}`:                                                              {`/tools/0/exec/context`, `array of strings`},
		`"exec":{"argv":["ls"],"context":["a b"]}`:                                                          {`/tools/0/exec/context/0`, `"a b" is no context key`},
		`"exec":{"argv":["ls"],"context":["a.b","x","A-B"]}`:                                                {`/tools/0/exec/context/2`, `STEPJET_CONTEXT_A_B, as "a.b" does`},
		`"http":{"url":"https://example.com","headers":{"X":"${contex:token}"}}`:                            {`/tools/0/http/headers/X`, `did you mean ${context:…}`},
		`"http":{"url":"https://example.com","headers":{"X":"${contexts:token}"}}`:                          {`did you mean ${context:…}`},
		`"http":{"url":"https://example.com","headers":{"X":"${context:}"}}`:                                {`/tools/0/http/headers/X`, `${context:`},
		`"http":{"url":"https://example.com","headers":{"X":"${context:a b}"}}`:                             {`/tools/0/http/headers/X`},
		`"http":{"url":"https://example.com","headers":{"X":"${context:` + strings.Repeat("k", 65) + `}"}}`: {`is no context key`},
		`"http":{"url":"https://example.com","headers":{"Idempotency-Key":"${context:a}"}}`:                 {`set by Stepjet`},
	} {
		_, err := Parse([]byte(`{"tools":[{"name":"x",`+file+`}]}`), t.TempDir())
		var problems Problems
		require.True(t, errors.As(err, &problems), file)
		require.Len(t, problems, 1, file)
		for _, part := range want {
			require.Contains(t, err.Error(), part, file)
		}
	}
}
