package server_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/mcp/content"
	"github.com/stepjet/stepjet/mcp/selector"
	"github.com/stepjet/stepjet/mcp/server"
	"github.com/stepjet/stepjet/mcp/task"
	"github.com/stepjet/stepjet/worker"
)

// issuer gives out tokens, as an OAuth server does.
type issuer struct {
	t   *testing.T
	key *rsa.PrivateKey
	url string
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	i := &issuer{t: t, key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.url, "jwks_uri": i.url + "/keys", "authorization_endpoint": i.url + "/a", "token_endpoint": i.url + "/t"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		e := base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes())
		n := base64.RawURLEncoding.EncodeToString(key.N.Bytes())
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]any{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1", "n": n, "e": e}}})
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	i.url = s.URL
	return i
}

// token signs claims, those that are other than usual.
func (i *issuer) token(claims map[string]any) string {
	i.t.Helper()
	all := map[string]any{"iss": i.url, "aud": "https://mcp.example.com/mcp", "sub": "ada", "exp": time.Now().Add(time.Hour).Unix()}
	for k, v := range claims {
		all[k] = v
	}
	body, err := json.Marshal(all)
	require.NoError(i.t, err)
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","kid":"1"}`)) + "." + base64.RawURLEncoding.EncodeToString(body)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	require.NoError(i.t, err)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func sum(token string) string {
	h := sha256.Sum256([]byte(token))
	return hex.EncodeToString(h[:])
}

func bearer(token string, r request) request {
	r.header = append(r.header, "Authorization", "Bearer "+token)
	return r
}

// guarded is a world whose callers show tokens.
func guarded(t *testing.T, i *issuer, change ...func(*server.Config)) *world {
	t.Helper()
	w := newWorld(t, nil)
	auth, err := server.ParseAuth(fmt.Appendf(nil, `{"tokens": [
		{"sha256": %q, "tenant": "acme", "name": "ci", "scopes": ["plans:run", "plans:read"]},
		{"sha256": %q, "tenant": "acme", "name": "boss", "scopes": ["plans:run", "plans:read", "approvals:decide"]},
		{"sha256": %q, "tenant": "acme", "scopes": ["plans:read"]},
		{"sha256": %q, "tenant": "other", "scopes": ["plans:run", "plans:read"]},
		{"sha256": %q, "tenant": "acme", "scopes": ["plans:run"], "expires": "2020-01-01T00:00:00Z"}],
		"oauth": {"issuer": %q, "audience": "https://mcp.example.com/mcp"}}`,
		sum("t-ci"), sum("t-boss"), sum("t-read"), sum("t-other"), sum("t-old"), i.url))
	require.NoError(t, err)
	all, err := selector.Parse("*")
	require.NoError(t, err)
	return w.beside(t, func(c *server.Config) {
		c.Client = func(ctx context.Context, tenant string) (*client.Client, error) {
			cl, err := client.New(ctx, w.stack.Conn(), client.Config{Tenant: tenant})
			if err == nil {
				t.Cleanup(cl.Close)
			}
			return cl, err
		}
		c.Auth, c.Keys, c.Expose = auth, task.Keys{[]byte("0123456789abcdef")}, &all
		c.TaskAfter, c.Hold = 50*time.Millisecond, time.Second
		c.Context = server.ContextRules{
			Keys: []string{"locale", "user"}, Claims: map[string]string{"sub": "user"},
			Headers: []server.ContextHeader{{Header: "X-Up", Key: "token", Secret: true}},
		}
		for _, f := range change {
			f(c)
		}
	})
}

// answeredAtOnce has every call waited for, however long a busy machine takes: none becomes a task.
func answeredAtOnce(c *server.Config) { c.TaskAfter = time.Minute }

func TestTokensSayWhoCalls(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	w := guarded(t, i)
	run := map[string]any{"tenant": "acme", "scope": "plans:run plans:read"}
	for token, want := range map[string]int{
		"t-ci":       http.StatusOK,
		i.token(run): http.StatusOK,
		i.token(map[string]any{"tenant": "acme", "scp": []string{"plans:run"}}): http.StatusOK,
		"t-read": http.StatusForbidden,
		i.token(map[string]any{"tenant": "acme"}):     http.StatusForbidden,
		i.token(map[string]any{"scope": "plans:run"}): http.StatusForbidden,
		"t-old":   http.StatusUnauthorized,
		"unknown": http.StatusUnauthorized,
		i.token(map[string]any{"tenant": "acme", "scope": "plans:run", "exp": time.Now().Add(-time.Hour).Unix()}): http.StatusUnauthorized,
		i.token(map[string]any{"tenant": "acme", "scope": "plans:run", "aud": "other"}):                           http.StatusUnauthorized,
		i.token(run)[:100]: http.StatusUnauthorized,
	} {
		a := w.send(t, bearer(token, tools("greet", named{"Ada"})))
		assert.Equal(t, want, a.Status, "%s: %s", token, a.Body)
		if want == http.StatusUnauthorized {
			assert.Contains(t, a.Header.Get("WWW-Authenticate"), "https://mcp.example.com/.well-known/oauth-protected-resource/mcp")
		}
	}
	a := w.send(t, bearer("t-read", tools("greet", named{"Ada"})))
	assert.Contains(t, a.Header.Get("WWW-Authenticate"), `scope="plans:run"`)

	res, err := http.Get(strings.TrimSuffix(w.url, server.Path) + "/.well-known/oauth-protected-resource/mcp") //nolint:noctx // a test
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	var meta map[string]any
	require.NoError(t, json.NewDecoder(res.Body).Decode(&meta))
	assert.Equal(t, "https://mcp.example.com/mcp", meta["resource"])
	assert.Equal(t, []any{i.url}, meta["authorization_servers"])
}

func TestTasksAndNamesAreACallersOwn(t *testing.T) {
	t.Parallel()
	w := guarded(t, newIssuer(t))
	id := field[string](t, w.send(t, bearer("t-ci", tools("slow", struct{}{}))), "taskId")
	require.NotEmpty(t, id)
	for _, other := range []string{"t-boss", "t-other"} {
		a := w.send(t, bearer(other, ofTask("get", id)))
		require.NotNil(t, a.Error, a.Body)
		assert.Equal(t, int64(-32602), a.Error.Code)
	}
	named := tools("slow", struct{}{})
	named.params["_meta"] = map[string]any{content.KeyMeta: "order-1"}
	first := field[string](t, w.send(t, bearer("t-ci", named)), "taskId")
	again := field[string](t, w.send(t, bearer("t-ci", named)), "taskId")
	other := field[string](t, w.send(t, bearer("t-boss", named)), "taskId")
	assert.Equal(t, first, again)
	assert.NotEqual(t, first, other)
	for token, handle := range map[string]string{"t-boss": other, "t-ci": first} {
		w.send(t, bearer(token, ofTask("cancel", handle)))
	}
	w.send(t, bearer("t-ci", ofTask("cancel", id)))
}

func TestNoAgentApprovesOfItself(t *testing.T) {
	t.Parallel()
	w := guarded(t, newIssuer(t))
	r := tools("execute_tool_plan", json.RawMessage(approvedPlan))
	r.tasks, r.elicit = false, true
	a := w.send(t, bearer("t-ci", r))
	requests := field[map[string]any](t, a, "inputRequests")
	assert.Contains(t, requests, "more#1", a.Body)
	assert.NotContains(t, requests, "pay#1")

	a = w.send(t, bearer("t-boss", r))
	requests = field[map[string]any](t, a, "inputRequests")
	assert.NotEmpty(t, requests, a.Body)

	// An answer that was not asked for counts for nothing.
	r.params["requestState"] = field[string](t, w.send(t, bearer("t-ci", r)), "requestState")
	r.params["inputResponses"] = map[string]any{"pay#1": map[string]any{"action": "accept"}}
	a = w.send(t, bearer("t-ci", r))
	assert.Equal(t, "input_required", field[string](t, a, "resultType"), a.Body)
}

func TestContextComesFromWhereItMay(t *testing.T) {
	t.Parallel()
	w := guarded(t, newIssuer(t))
	seen := make(chan map[string]string, 1)
	w.stack.Host(func(k *worker.Worker) {
		worker.Handle(k, "who", func(ctx context.Context, _ struct{}) (string, error) {
			values := map[string]string{}
			info, _ := worker.InfoFrom(ctx)
			for _, key := range []string{"locale", "user", "token", "other"} {
				if v, there := info.Context.Get(key); there {
					values[key] = v
				}
			}
			seen <- values
			return "", nil
		})
	})
	r := tools("who", struct{}{})
	r.header = []string{"X-Up", "s3cret"}
	r.params["_meta"] = map[string]any{"locale": "de", "user": "somebody else", "other": "x"}
	require.Eventually(t, func() bool { return w.send(t, bearer("t-ci", r)).Error == nil }, 20*time.Second, 10*time.Millisecond)
	assert.Equal(t, map[string]string{"locale": "de", "user": "ci", "token": "s3cret"}, <-seen)

	r.params["_meta"] = map[string]any{"locale": 7}
	a := w.send(t, bearer("t-ci", r))
	require.NotNil(t, a.Error, a.Body)
	assert.Equal(t, int64(-32602), a.Error.Code)
}

func TestPagesOfElsewhereAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.Origins = []string{"https://app.example.com"} })
	for _, c := range []struct {
		header []string
		want   int
	}{
		{[]string{"Origin", "https://evil.example.com"}, http.StatusForbidden},
		{[]string{"Origin", "https://app.example.com"}, http.StatusOK},
		{[]string{"Host", "evil.example.com"}, http.StatusForbidden},
		{[]string{"Host", "localhost"}, http.StatusOK},
		{nil, http.StatusOK},
	} {
		r := tools("greet", named{"Ada"})
		r.header = c.header
		assert.Equal(t, c.want, w.send(t, r).Status, c.header)
	}
	a := w.send(t, tools("greet", named{strings.Repeat("x", 5<<20)}))
	assert.Equal(t, http.StatusRequestEntityTooLarge, a.Status)
	a = w.send(t, request{method: "prompts/list"})
	assert.Equal(t, http.StatusNotFound, a.Status)
	assert.Equal(t, int64(-32601), a.Error.Code)
}

func TestWithoutTokensOnlyThisMachineIsServed(t *testing.T) {
	t.Parallel()
	s, err := server.New(server.Config{Client: func(context.Context, string) (*client.Client, error) { return nil, nil }})
	require.NoError(t, err)
	defer s.Close()
	for _, address := range []string{":0", "0.0.0.0:0", "192.0.2.1:0"} {
		_, err := s.Listen(t.Context(), address)
		assert.Equal(t, fault.InvalidConfig, fault.CodeOf(err), address)
	}
	l, err := s.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

func TestWhatIsWrongWithTheFileOfTokens(t *testing.T) {
	t.Parallel()
	good := sum("x")
	for _, bad := range []string{
		`{}`, `[`, `{"tokens": [], "what": 1}`,
		`{"tokens": [{"sha256": "abc", "tenant": "a", "scopes": []}]}`,
		`{"tokens": [{"sha256": "` + good + `", "tenant": "a b", "scopes": []}]}`,
		`{"tokens": [{"sha256": "` + good + `", "tenant": "a", "scopes": ["all"]}]}`,
		`{"oauth": {"issuer": "x", "audience": "y"}}`,
	} {
		_, err := server.ParseAuth([]byte(bad))
		assert.Equal(t, fault.InvalidConfig, fault.CodeOf(err), bad)
	}
	auth, err := server.ParseAuth([]byte(`{"tokens": [{"sha256": "` + good + `", "tenant": "a", "scopes": []}]}`))
	require.NoError(t, err)
	_, err = server.New(server.Config{Client: func(context.Context, string) (*client.Client, error) { return nil, nil }, Auth: auth})
	assert.Equal(t, fault.InvalidConfig, fault.CodeOf(err), "there is no key")
}
