package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/front"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool/group"
)

// Auth says whose tokens are taken: those of an issuer (OAuth), and some that are known by their SHA-256.
type Auth struct {
	Tokens []StaticToken `json:"tokens,omitempty"`
	OAuth  *OAuth        `json:"oauth,omitempty"`

	provider provider
}

// StaticToken is a token that was given out by hand.
type StaticToken struct {
	// SHA256 is that of the token, in hex.
	SHA256 string `json:"sha256"`
	Tenant string `json:"tenant"`
	// Name tells its owner apart; empty: the first digits of SHA256.
	Name    string    `json:"name,omitempty"`
	Scopes  []string  `json:"scopes"`
	Expires time.Time `json:"expires,omitzero"`
}

// OAuth says which tokens of an issuer are taken: signed JWTs for an audience.
type OAuth struct {
	Issuer   string `json:"issuer"`
	Audience string `json:"audience"`
	// TenantClaim is the claim that names the tenant; empty: "tenant".
	TenantClaim string `json:"tenant_claim,omitempty"`
	// Resource is the URL under which clients know this server; empty: the audience.
	Resource string `json:"resource,omitempty"`
}

// ParseAuth reads the file that says whose tokens are taken. Errors: InvalidConfig.
func ParseAuth(file []byte) (*Auth, error) {
	var a Auth
	if err := front.ReadFile(file, &a); err != nil {
		return nil, err
	}
	if len(a.Tokens) == 0 && a.OAuth == nil {
		return nil, fault.New(fault.InvalidConfig, "it lets nobody in").WithHint(`"tokens": […] or "oauth": {…}`)
	}
	for i := range a.Tokens {
		if err := a.Tokens[i].validate(); err != nil {
			return nil, err
		}
	}
	if o := a.OAuth; o != nil {
		if o.TenantClaim == "" {
			o.TenantClaim = "tenant"
		}
		if o.Resource == "" {
			o.Resource = o.Audience
		}
		for what, text := range map[string]string{"issuer": o.Issuer, "resource": o.Resource} {
			if u, err := url.Parse(text); err != nil || u.Host == "" {
				return nil, fault.New(fault.InvalidConfig, "%q: the %s is a URL", text, what)
			}
		}
	}
	return &a, nil
}

func (t *StaticToken) validate() error {
	_, err := front.ParseDigest(t.SHA256)
	switch {
	case err != nil:
		return err
	case !subjects.ValidTenant(t.Tenant):
		return fault.New(fault.InvalidConfig, "%q is no tenant", t.Tenant)
	case slices.ContainsFunc(t.Scopes, func(s string) bool { return !slices.Contains(Scopes(), s) && !strings.HasPrefix(s, GroupScope) }):
		return fault.New(fault.InvalidConfig, "the scopes are %s, %sNAME", strings.Join(Scopes(), ", "), GroupScope)
	case misnamed(t.Scopes) != "":
		return fault.New(fault.InvalidConfig, "%q names no group, or one too many", misnamed(t.Scopes)).
			WithHint("up to %d scopes %sNAME, with names of A-Z a-z 0-9 _ -", group.MaxPermissions, GroupScope)
	}
	if t.Name == "" {
		t.Name = t.SHA256[:12]
	}
	return nil
}

// guard lets nobody pass without a token; everybody where there is no Auth.
func (a *Auth) guard(next http.Handler) http.Handler {
	if a == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth.RequireBearerToken(a.verify, &auth.RequireBearerTokenOptions{
			ResourceMetadataURL: a.metadataURL(), AllowMissingExpiration: true,
		})(next).ServeHTTP(w, r)
	})
}

// verify reads a token. What is wrong with one is said alike of all, so that nobody learns which it was.
func (a *Auth) verify(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	who, expires, err := a.static(token)
	if err != nil && a.OAuth != nil {
		who, expires, err = a.issued(ctx, token)
	}
	if err != nil {
		return nil, err
	}
	return &auth.TokenInfo{
		Scopes: who.Scopes, Expiration: expires, UserID: who.Tenant + "/" + who.Name,
		Extra: map[string]any{principalKey: who},
	}, nil
}

// static finds a token among those given out by hand.
func (a *Auth) static(token string) (who Principal, expires time.Time, err error) {
	for _, t := range a.Tokens {
		known, _ := front.ParseDigest(t.SHA256) // validate has read it
		if known.Of(token) && (t.Expires.IsZero() || time.Now().Before(t.Expires)) {
			return Principal{Tenant: t.Tenant, Name: t.Name, Scopes: t.Scopes, Claims: map[string]string{"sub": t.Name}}, t.Expires, nil
		}
	}
	return who, expires, auth.ErrInvalidToken
}

// provider holds the issuer's keys once they were read.
type provider struct {
	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier
}

// of returns what verifies the tokens of an issuer. One that can't be reached is tried again with the next token.
func (p *provider) of(ctx context.Context, o *OAuth) (*oidc.IDTokenVerifier, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.verifier == nil {
		issuer, err := oidc.NewProvider(context.WithoutCancel(ctx), o.Issuer)
		if err != nil {
			return nil, fmt.Errorf("the issuer of tokens can't be asked for its keys: %w", err)
		}
		p.verifier = issuer.Verifier(&oidc.Config{ClientID: o.Audience})
	}
	return p.verifier, nil
}

// issued reads a token of the issuer.
func (a *Auth) issued(ctx context.Context, token string) (who Principal, expires time.Time, err error) {
	verifier, err := a.provider.of(ctx, a.OAuth)
	if err != nil {
		return who, expires, err
	}
	verified, err := verifier.Verify(ctx, token)
	if err != nil {
		return who, expires, auth.ErrInvalidToken
	}
	var claims map[string]any
	if err := verified.Claims(&claims); err != nil || misnamed(scopesOf(claims)) != "" {
		return who, expires, auth.ErrInvalidToken
	}
	who = Principal{Name: verified.Subject, Scopes: scopesOf(claims), Claims: map[string]string{}}
	for name, value := range claims {
		if text, ok := value.(string); ok {
			who.Claims[name] = text
		}
	}
	who.Tenant = who.Claims[a.OAuth.TenantClaim]
	if !subjects.ValidTenant(who.Tenant) {
		who.Tenant, who.Scopes = "", nil // it is known who it is, and there is nothing for it here
	}
	return who, verified.Expiry, nil
}

// scopesOf reads "scope", a text with spaces, or "scp", a list.
func scopesOf(claims map[string]any) (all []string) {
	if text, ok := claims["scope"].(string); ok {
		return strings.Fields(text)
	}
	list, _ := claims["scp"].([]any)
	for _, s := range list {
		if text, ok := s.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

// metadataPath is where a server says which issuers' tokens it takes (RFC 9728).
const metadataPath = "/.well-known/oauth-protected-resource"

func (a *Auth) metadataURL() string {
	if a == nil || a.OAuth == nil {
		return ""
	}
	u, err := url.Parse(a.OAuth.Resource)
	if err != nil {
		return ""
	}
	u.Path = metadataPath + strings.TrimSuffix(u.Path, "/")
	return u.String()
}

// publish says where tokens come from.
func (a *Auth) publish(mux *http.ServeMux) {
	if a == nil || a.OAuth == nil {
		return
	}
	h := auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource: a.OAuth.Resource, AuthorizationServers: []string{a.OAuth.Issuer}, ScopesSupported: Scopes(),
		BearerMethodsSupported: []string{"header"},
	})
	mux.Handle(metadataPath, h)
	mux.Handle(metadataPath+"/", h)
}

// refuse answers a request whose token lacks a scope, or names no tenant.
func (a *Auth) refuse(w http.ResponseWriter, _ *http.Request, scope string) {
	challenge := fmt.Sprintf("Bearer error=%q, scope=%q", "insufficient_scope", scope)
	if at := a.metadataURL(); at != "" {
		challenge += fmt.Sprintf(", resource_metadata=%q", at)
	}
	w.Header().Set("WWW-Authenticate", challenge)
	http.Error(w, "the token lacks the scope "+scope, http.StatusForbidden)
}
