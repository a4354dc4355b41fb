package ui

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/front"
	"github.com/stepjet/stepjet/subjects"
)

// Role says what a caller may do.
type Role string

// The roles. Each of them looks; one caller may have several.
const (
	Viewer   Role = "viewer"   // nothing besides
	Operator Role = "operator" // submits, cancels, tries again, and answers what plans ask by the tool "ask"
	Approver Role = "approver" // answers all that runs ask
)

var roles = []Role{Viewer, Operator, Approver}

// Principal is who calls.
type Principal struct {
	Name  string `json:"name"`
	Roles []Role `json:"roles"`
	// Tenants are those that it may see; nil: all.
	Tenants []string `json:"tenants"`
}

// may reports whether a principal has one of the roles; everybody looks.
func (p *Principal) may(one ...Role) bool {
	return slices.ContainsFunc(one, func(r Role) bool { return r == Viewer || slices.Contains(p.Roles, r) })
}

// sees reports whether a principal may see a tenant.
func (p *Principal) sees(tenant string) bool {
	return p.Tenants == nil || slices.Contains(p.Tenants, tenant)
}

// everybody is who calls where nobody is asked.
var everybody = Principal{Name: "local", Roles: []Role{Operator, Approver}}

// Auth says who may do what: the owners of tokens that are known by their SHA-256, or those whom a proxy names.
type Auth struct {
	tokens []token
	proxy  *front.Digest // of the secret that the proxy shows; nil: there is none
}

// token is one line of a file of tokens.
type token struct {
	SHA256  string    `json:"sha256"`
	Name    string    `json:"name"`
	Role    string    `json:"role"`    // several with commas
	Tenants []string  `json:"tenants"` // ["*"]: all
	Expires time.Time `json:"expires,omitzero"`

	digest front.Digest
}

// ParseTokens reads a file of tokens: {"tokens": [{"sha256", "name", "role", "tenants", "expires"?}]}. Errors:
// InvalidConfig.
func ParseTokens(file []byte) (*Auth, error) {
	var in struct {
		Tokens []token `json:"tokens"`
	}
	if err := front.ReadFile(file, &in); err != nil {
		return nil, err
	}
	if len(in.Tokens) == 0 {
		return nil, fault.New(fault.InvalidConfig, "it lets nobody in").
			WithHint(`{"tokens": [{"sha256": "…", "name": "ann", "role": "operator", "tenants": ["acme"]}]}`)
	}
	for i := range in.Tokens {
		t := &in.Tokens[i]
		var err error
		if t.digest, err = front.ParseDigest(t.SHA256); err != nil {
			return nil, err
		}
		if err := t.principal().validate(); err != nil {
			return nil, err
		}
	}
	return &Auth{tokens: in.Tokens}, nil
}

// ParseProxy reads the file that says which proxy is believed: {"sha256": that of a secret that it shows}. Errors:
// InvalidConfig.
func ParseProxy(file []byte) (*Auth, error) {
	var in struct {
		SHA256 string `json:"sha256"`
	}
	if err := front.ReadFile(file, &in); err != nil {
		return nil, err
	}
	secret, err := front.ParseDigest(in.SHA256)
	if err != nil {
		return nil, err
	}
	return &Auth{proxy: &secret}, nil
}

func (t *token) principal() *Principal {
	p := &Principal{Name: t.Name, Tenants: t.Tenants}
	for _, role := range separated(t.Role) {
		p.Roles = append(p.Roles, Role(role))
	}
	if slices.Contains(t.Tenants, "*") {
		p.Tenants = nil
	} else if p.Tenants == nil {
		p.Tenants = []string{}
	}
	return p
}

// separated takes a list apart that is written with commas.
func separated(list string) []string {
	return strings.FieldsFunc(list, func(c rune) bool { return c == ',' || c == ' ' })
}

func (p *Principal) validate() error {
	odd := slices.IndexFunc(p.Roles, func(r Role) bool { return !slices.Contains(roles, r) })
	switch {
	case p.Name == "":
		return fault.New(fault.InvalidConfig, "a name is missing: it says who cancelled a run")
	case len(p.Roles) == 0:
		return fault.New(fault.InvalidConfig, "%q has no role", p.Name).WithHint("viewer, operator, approver, or several with commas")
	case odd >= 0:
		return fault.New(fault.InvalidConfig, "%q is no role", string(p.Roles[odd])).
			WithHint("viewer, operator, approver, or several with commas")
	case p.Tenants != nil && len(p.Tenants) == 0:
		return fault.New(fault.InvalidConfig, "%q sees no tenant", p.Name).WithHint(`"tenants": ["acme"], or ["*"] for all`)
	}
	for _, t := range p.Tenants {
		if !subjects.ValidTenant(t) {
			return fault.New(fault.InvalidConfig, "%q is no tenant", t)
		}
	}
	return nil
}

// What a proxy says of who calls, beside the secret that shows that it is the proxy. It has to take these headers out of
// what it was sent itself.
const (
	headerSecret  = "X-Stepjet-Secret"
	headerUser    = "X-Stepjet-User"
	headerRole    = "X-Stepjet-Role"    // separated by commas
	headerTenants = "X-Stepjet-Tenants" // separated by commas
)

// cookie holds the token of a browser that has logged in.
const cookie = "stepjet"

// who returns who sent a request. Errors: Permission, in the same words whatever is wrong with a token.
func (a *Auth) who(r *http.Request) (*Principal, error) {
	switch {
	case a == nil:
		p := everybody
		return &p, nil
	case a.proxy != nil:
		return a.proxied(r)
	}
	shown, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if c, err := r.Cookie(cookie); !ok && err == nil {
		shown = c.Value
	}
	return a.token(shown)
}

func (a *Auth) token(shown string) (*Principal, error) {
	for i := range a.tokens {
		t := &a.tokens[i]
		if t.digest.Of(shown) && (t.Expires.IsZero() || time.Now().Before(t.Expires)) {
			return t.principal(), nil
		}
	}
	return nil, fault.New(fault.Permission, "a token is needed").
		WithHint("log in with a token of the file that --auth names, or send it as Authorization: Bearer")
}

func (a *Auth) proxied(r *http.Request) (*Principal, error) {
	if !a.proxy.Of(r.Header.Get(headerSecret)) {
		return nil, fault.New(fault.Permission, "the page is reached through its proxy alone").
			WithHint("the proxy shows its secret in " + headerSecret)
	}
	list := separated(r.Header.Get(headerTenants))
	p := (&token{Name: r.Header.Get(headerUser), Role: r.Header.Get(headerRole), Tenants: list}).principal()
	if err := p.validate(); err != nil {
		return nil, fault.Wrap(fault.Permission, err, "what the proxy says of who calls")
	}
	return p, nil
}

type principalKey struct{}

// guard lets those do something who have one of the roles.
func (a *Auth) guard(do endpoint, one ...Role) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := a.who(r)
		if err != nil {
			refuseAs(w, http.StatusUnauthorized, err)
			return
		}
		if !who.may(one...) {
			refuse(w, fault.New(fault.Permission, "%s is %s, and this takes %s", who.Name, listed(who.Roles, " and "), listed(one, " or ")))
			return
		}
		do.serve(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, who)))
	})
}

// listed writes roles as a sentence has them.
func listed(roles []Role, between string) string {
	var all []string
	for _, r := range roles {
		article := "an "
		if r == Viewer {
			article = "a "
		}
		all = append(all, article+string(r))
	}
	return strings.Join(all, between)
}

func principal(r *http.Request) *Principal {
	p, _ := r.Context().Value(principalKey{}).(*Principal) // guard has put it there
	return p
}

// login puts a token into a cookie that only this site's own pages send, and no script reads.
func (a *Auth) login(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Token string `json:"token"`
	}
	if err := readJSON(w, r, &in); err != nil {
		refuse(w, err)
		return
	}
	if a == nil || a.proxy != nil {
		refuse(w, fault.New(fault.NotFound, "nobody logs in here"))
		return
	}
	who, err := a.token(in.Token)
	if err != nil {
		refuseAs(w, http.StatusUnauthorized, err)
		return
	}
	http.SetCookie(w, session(r, in.Token, 0))
	write(w, r, who)
}

func (a *Auth) logout(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, session(r, "", -1))
	write(w, r, struct{}{})
}

func session(r *http.Request, value string, age int) *http.Cookie {
	secure := r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
	return &http.Cookie{
		Name: cookie, Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: secure,
		SameSite: http.SameSiteStrictMode,
	}
}
