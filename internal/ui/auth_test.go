package ui_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/ui"
)

func hashed(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func tokens(t *testing.T, lines ...map[string]any) *ui.Auth {
	t.Helper()
	file, err := json.Marshal(map[string]any{"tokens": lines})
	require.NoError(t, err)
	a, err := ui.ParseTokens(file)
	require.NoError(t, err)
	return a
}

func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *ui.Config) {
		c.Auth = tokens(t,
			map[string]any{"sha256": hashed("ann"), "name": "ann", "role": "operator", "tenants": []string{"acme"}},
			map[string]any{"sha256": hashed("pat"), "name": "pat", "role": "approver", "tenants": []string{"acme"}},
			map[string]any{"sha256": hashed("vic"), "name": "vic", "role": "viewer", "tenants": []string{"acme"}},
			map[string]any{"sha256": hashed("all"), "name": "all", "role": "viewer", "tenants": []string{"*"}},
			map[string]any{"sha256": hashed("old"), "name": "old", "role": "viewer", "tenants": []string{"*"}, "expires": time.Now().Add(-time.Hour)})
	})
	key := w.run("acme", "r", `{"steps":[{"id":"a","tool":"fail","arguments":{"message":"no","terminal":true}}]}`)
	other := w.run("beta", "r", `{"steps":[{"id":"a","tool":"fail","arguments":{"message":"no","terminal":true}}]}`)
	looks := []string{"me", "runs", "runs/" + key, "runs/" + key + "/steps/a", "tools?tenant=acme", "figures?tenant=acme", "dead", "stream"}
	for _, token := range []string{"", "nobody", "old"} {
		w.token = token
		for _, path := range looks {
			refused(w, w.request(http.MethodGet, "/api/v1/"+path, nil), http.StatusUnauthorized)
		}
		refused(w, w.request(http.MethodPost, "/api/v1/runs?tenant=acme", []byte(`{}`)), http.StatusUnauthorized)
	}
	w.token = "all"
	w.settled(2)
	for _, token := range []string{"ann", "pat", "vic"} {
		w.token = token
		require.Equal(t, 1, get[list](w, "runs").Matched)
		require.Zero(t, get[list](w, "runs?tenant=beta").Matched)
		require.Equal(t, "r", get[sheet](w, "runs/"+key).Run)
		for _, path := range []string{"questions?tenant=beta", "questions?run=" + other, "runs/" + other + "/questions/a", "runs/" + other, "runs/" + other + "/steps/a", "stream?run=" + other, "tools?tenant=beta", "figures?tenant=beta", "dead?tenant=beta"} {
			refused(w, w.request(http.MethodGet, "/api/v1/"+path, nil), http.StatusNotFound)
		}
		for _, path := range []string{"runs?tenant=beta", "runs/" + other + "/cancel", "runs/" + other + "/retry", "runs/" + other + "/say"} {
			e := refused(w, w.request(http.MethodPost, "/api/v1/"+path, []byte(`{}`)), map[string]int{"ann": 404, "pat": 403, "vic": 403}[token])
			require.Equal(t, map[string]fault.Code{"ann": fault.NotFound, "pat": fault.Permission, "vic": fault.Permission}[token], e.Code)
		}
		require.Equal(t, []string{"acme"}, get[struct{ Tenants []string }](w, "me").Tenants)
	}
	w.token = "vic"
	refused(w, w.request(http.MethodPost, "/api/v1/runs?tenant=acme", []byte(`{}`)), http.StatusForbidden)
	refused(w, w.request(http.MethodPost, "/api/v1/dead/retry", fmt.Appendf(nil, `{"key":%q,"step":"a"}`, key)), http.StatusForbidden)
	post[any](w, "validate?tenant=acme", `{"steps":[]}`)
	w.token = "ann"
	refused(w, w.request(http.MethodPost, "/api/v1/dead/retry", fmt.Appendf(nil, `{"key":%q,"step":"a"}`, other)), http.StatusNotFound)
	require.Equal(t, "acme.r=2E2", post[begun](w, "runs/"+key+"/retry", "").Key)
	refused(w, w.request(http.MethodGet, "/api/v1/runs/"+key+"/cancel", nil), http.StatusNotFound) // reading changes nothing
}

func TestLoggingIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *ui.Config) {
		c.Auth = tokens(t, map[string]any{"sha256": hashed("ann"), "name": "ann", "role": "operator", "tenants": []string{"*"}})
	})
	refused(w, w.request(http.MethodPost, "/api/v1/login", []byte(`{"token":"bob"}`)), http.StatusUnauthorized)
	in := w.request(http.MethodPost, "/api/v1/login", []byte(`{"token":"ann"}`))
	require.Equal(t, http.StatusOK, in.StatusCode)
	c := in.Cookies()[0]
	require.True(t, c.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, c.SameSite)
	require.Equal(t, http.StatusOK, w.request(http.MethodGet, "/api/v1/me", nil, "Cookie", c.Name+"="+c.Value).StatusCode)
	secure := w.request(http.MethodPost, "/api/v1/login", []byte(`{"token":"ann"}`), "X-Forwarded-Proto", "https")
	require.True(t, secure.Cookies()[0].Secure)
	out := w.request(http.MethodPost, "/api/v1/logout", nil)
	require.Negative(t, out.Cookies()[0].MaxAge)
}

func TestAProxySaysWhoCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *ui.Config) {
		var err error
		c.Auth, err = ui.ParseProxy(fmt.Appendf(nil, `{"sha256":%q}`, hashed("secret")))
		require.NoError(t, err)
	})
	me := func(secret, role, tenants string) *http.Response {
		return w.request(http.MethodGet, "/api/v1/me", nil, "X-Stepjet-Secret", secret, "X-Stepjet-User", "ann", "X-Stepjet-Role", role, "X-Stepjet-Tenants", tenants)
	}
	who := read[struct {
		Name    string
		Tenants []string
	}](w, me("secret", "viewer", "acme, beta"))
	require.Equal(t, "ann", who.Name)
	require.Equal(t, []string{"acme", "beta"}, who.Tenants)
	for _, x := range [][3]string{{"", "viewer", "*"}, {"wrong", "viewer", "*"}, {"secret", "king", "*"}, {"secret", "viewer", ""}, {"secret", "viewer", "a b/c"}} {
		require.Equal(t, fault.Permission, refused(w, me(x[0], x[1], x[2]), http.StatusUnauthorized).Code)
	}
}

func TestFilesThatLetNobodyIn(t *testing.T) {
	t.Parallel()
	good := hashed("x")
	for _, file := range []string{
		``, `{}`, `{"tokens":[]}`, `{"tokens":[{"sha256":"12","name":"a","role":"viewer","tenants":["*"]}]}`,
		`{"tokens":[{"sha256":"` + good + `","name":"a","role":"king","tenants":["*"]}]}`,
		`{"tokens":[{"sha256":"` + good + `","name":"a","role":"viewer"}]}`,
		`{"tokens":[{"sha256":"` + good + `","name":"a","role":"viewer,king","tenants":["*"]}]}`,
		`{"tokens":[{"sha256":"` + good + `","name":"a","role":"","tenants":["*"]}]}`,
		`{"tokens":[{"sha256":"` + good + `","name":"a","role":"viewer","tenants":["a/b"]}]}`,
		`{"tokens":[{"sha256":"` + good + `","role":"viewer","tenants":["*"]}]}`,
		`{"tokens":[{"sha256":"` + good + `","name":"a","role":"viewer","tenants":["*"],"admin":true}]}`,
	} {
		_, err := ui.ParseTokens([]byte(file))
		require.Equal(t, fault.InvalidConfig, fault.CodeOf(err), file)
	}
	for _, file := range []string{``, `{}`, `{"sha256":"x"}`, `{"secret":"x"}`} {
		_, err := ui.ParseProxy([]byte(file))
		require.Equal(t, fault.InvalidConfig, fault.CodeOf(err), file)
	}
}

// A page of elsewhere reaches nothing: not by a name that was pointed here, and not by requests from its own site.
func TestForeignPagesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *ui.Config) { c.Hosts = []string{"stepjet.example.com"} })
	for host, status := range map[string]int{
		"evil.example.com": 421, "127.0.0.1.evil.example.com": 421, "localhost.evil.example.com:80": 421, "": 421, "10.0.0.1": 421,
		"localhost": 200, "localhost:99": 200, "127.0.0.1": 200, "[::1]:80": 200, "stepjet.example.com": 200, "STEPJET.example.com:443": 200,
	} {
		if host == "" {
			continue // the client fills it in
		}
		for _, path := range []string{"/", "/api/v1/runs"} {
			require.Equal(t, status, w.request(http.MethodGet, path, nil, "Host", host).StatusCode, "%s %s", host, path)
		}
	}
	for _, header := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example.com"}, {"Origin", "null"},
	} {
		for _, path := range []string{"runs", "runs/default.r/cancel", "runs/default.r/retry", "runs/default.r/approve", "runs/default.r/answer", "runs/default.r/say", "dead/retry", "validate", "login", "logout"} {
			answer := w.request(http.MethodPost, "/api/v1/"+path, []byte(`{}`), header...)
			require.Equal(t, http.StatusForbidden, answer.StatusCode, "%v %s", header, path)
		}
	}
	own := w.request(http.MethodPost, "/api/v1/validate", []byte(`{"steps":[]}`), "Sec-Fetch-Site", "same-origin")
	require.Equal(t, http.StatusOK, own.StatusCode)
}

func TestElsewhereSomebodyIsAsked(t *testing.T) {
	t.Parallel()
	all := tokens(t, map[string]any{"sha256": hashed("x"), "name": "x", "role": "viewer", "tenants": []string{"*"}})
	for name, c := range map[string]struct {
		address string
		auth    *ui.Auth
		hosts   []string
		ok      bool
	}{
		"loopback":       {"127.0.0.1:0", nil, nil, true},
		"everywhere":     {":0", nil, nil, false},
		"without tokens": {"0.0.0.0:0", nil, []string{"stepjet.example.com"}, false},
		"without names":  {"0.0.0.0:0", all, nil, false},
		"with tokens":    {"0.0.0.0:0", all, []string{"stepjet.example.com"}, true},
		"no address":     {"nowhere", nil, nil, false},
	} {
		w := newWorld(t, func(cfg *ui.Config) { cfg.Auth, cfg.Hosts = c.auth, c.hosts })
		l, err := w.server.Listen(w.ctx(), c.address)
		if c.ok {
			require.NoError(t, err, name)
			require.NoError(t, l.Close())
		} else {
			require.Equal(t, fault.InvalidConfig, fault.CodeOf(err), name)
		}
	}
}
