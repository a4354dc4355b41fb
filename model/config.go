package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// The forms of API that are spoken.
const (
	OpenAI    = "openai"    // POST <base_url>/chat/completions
	Anthropic = "anthropic" // POST <base_url>/v1/messages
)

// Defaults and bounds of a configuration.
const (
	DefaultConcurrency     = 16
	DefaultMaxOutputTokens = 8192
	DefaultIdleMS          = 60_000

	maxOutputTokens = 1 << 20
	maxFallbacks    = 8
)

// Config is what a model tool asks, and how.
type Config struct {
	// Provider is the form of API; Endpoint says where it is and by which key. Models may have others of their own.
	Endpoint
	// Models are those that a request may name.
	Models map[string]Entry `json:"models"`
	// Default is the model of a request that names none; empty: the only one.
	Default string `json:"default,omitempty"`
	// MaxConcurrency is the most calls at a time, over all workers: 1 to 65536; 0: 16.
	MaxConcurrency int `json:"max_concurrency,omitempty"`
	// IdleMS is how long a stream may be silent, in milliseconds; 0: 60,000.
	IdleMS int64 `json:"idle_ms,omitempty"`
	// Any says that the default model answers requests that name another, too.
	Any bool `json:"-"`
}

// Endpoint is where a provider's API is.
type Endpoint struct {
	// Provider is OpenAI or Anthropic.
	Provider string `json:"provider,omitempty"`
	// BaseURL is where the API begins; empty: the provider's own. It serves every endpoint of the same form.
	BaseURL string `json:"base_url,omitempty"`
	// KeyEnv names the environment variable that holds the key, KeyFile a file; none: no key is sent.
	KeyEnv  string `json:"key_env,omitempty"`
	KeyFile string `json:"key_file,omitempty"`
}

// Entry is one model.
type Entry struct {
	Endpoint
	// ID is what the provider calls it.
	ID string `json:"id"`
	// Prices are in US dollars for a million tokens; nil: not known.
	InputUSD      *float64 `json:"input_usd,omitempty"`
	OutputUSD     *float64 `json:"output_usd,omitempty"`
	CachedUSD     *float64 `json:"cached_usd,omitempty"`
	CacheWriteUSD *float64 `json:"cache_write_usd,omitempty"`
	// RPM and TPM are the requests and tokens a minute that all workers together may use; 0: any.
	RPM int64 `json:"rpm,omitempty"`
	TPM int64 `json:"tpm,omitempty"`
	// Fallback are the models that are asked, in this order, where this one can't answer now.
	Fallback []string `json:"fallback,omitempty"`
	// MaxOutputTokens bounds an answer where the request says nothing else; 0: 8192.
	MaxOutputTokens int `json:"max_output_tokens,omitempty"`
	// Extra are members of the provider's request as they stand, such as temperature or thinking.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
}

// Model is a model of a configuration, with everything that a request needs to know of it.
type Model struct {
	Endpoint
	Name, ID        string
	Price           *Price
	RPM, TPM        int64
	Fallback        []string
	MaxOutputTokens int
	Extra           map[string]json.RawMessage
}

// ownMembers are those of a provider's request that Extra can't set: they are made of the request.
var ownMembers = []string{
	"model", "messages", "system", "tools", "tool_choice", "stream", "stream_options", "max_tokens",
	"max_completion_tokens", "response_format", "prompt_cache_key", "cache_control", "n",
}

// Problems are what is wrong with a configuration, each with its place.
type Problems []string

// Error lists them, one a line.
func (p Problems) Error() string { return strings.Join(p, "\n") }

// ParseConfig reads and checks a configuration; at is its place in a file, for errors. Errors have code invalid_config,
// and name all that is wrong.
func ParseConfig(raw []byte, at string) (*Config, error) {
	var c Config
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return nil, fault.New(fault.InvalidConfig, "%s: %v", at, err).
			WithHint("docs/models.md lists the fields of a model tool")
	}
	if p := c.problems(at); len(p) > 0 {
		return nil, &fault.Error{Code: fault.InvalidConfig, Message: p.Error(), Cause: p}
	}
	return &c, nil
}

func (c *Config) problems(at string) (all Problems) {
	wrong := func(path, format string, args ...any) { all = append(all, at+path+": "+fmt.Sprintf(format, args...)) }
	if len(c.Models) == 0 {
		wrong("/models", "there is none")
	}
	if c.Default != "" && !c.has(c.Default) {
		wrong("/default", "%q is none of the models: %s", c.Default, c.Names())
	}
	if c.MaxConcurrency < 0 || c.MaxConcurrency > 1<<16 {
		wrong("/max_concurrency", "%d is not 1 to 65536", c.MaxConcurrency)
	}
	if c.IdleMS < 0 {
		wrong("/idle_ms", "%d is negative", c.IdleMS)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		e := c.Models[name]
		path := "/models/" + name
		c.endpoint(e).check(func(field, format string, args ...any) { wrong(path+field, format, args...) })
		c.checkEntry(e, func(field, format string, args ...any) { wrong(path+field, format, args...) })
		if !validName(name) {
			wrong(path, "a name is 1 to 64 of A-Z a-z 0-9 _ -")
		}
	}
	return all
}

func (c *Config) checkEntry(e Entry, wrong func(field, format string, args ...any)) {
	if e.ID == "" {
		wrong("/id", "it is missing: what the provider calls the model")
	}
	for _, p := range []*float64{e.InputUSD, e.OutputUSD, e.CachedUSD, e.CacheWriteUSD} {
		if p != nil && *p < 0 {
			wrong("", "a price is negative")
		}
	}
	if (e.InputUSD == nil) != (e.OutputUSD == nil) {
		wrong("", "input_usd and output_usd go together")
	}
	if e.RPM < 0 || e.TPM < 0 {
		wrong("", "rpm and tpm are not negative")
	}
	if e.MaxOutputTokens < 0 || e.MaxOutputTokens > maxOutputTokens {
		wrong("/max_output_tokens", "%d is not 1 to %d", e.MaxOutputTokens, maxOutputTokens)
	}
	if len(e.Fallback) > maxFallbacks {
		wrong("/fallback", "%d models: %d at most", len(e.Fallback), maxFallbacks)
	}
	for _, f := range e.Fallback {
		if !c.has(f) {
			wrong("/fallback", "%q is none of the models: %s", f, c.Names())
		}
	}
	for _, k := range ownMembers {
		if _, there := e.Extra[k]; there {
			wrong("/extra/"+k, "it is made of the request and can't be set")
		}
	}
}

func (e Endpoint) check(wrong func(field, format string, args ...any)) {
	if e.Provider != OpenAI && e.Provider != Anthropic {
		wrong("/provider", "%q is none: %q, or %q for any API of the other's form", e.Provider, Anthropic, OpenAI)
	}
	if e.KeyEnv != "" && e.KeyFile != "" {
		wrong("/key_file", "key_env says where the key is already")
	}
	if e.BaseURL == "" {
		return
	}
	u, err := url.Parse(e.BaseURL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		wrong("/base_url", "it is no http or https URL")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		wrong("/base_url", "it may have no user, query or fragment: a key belongs into key_env")
	}
}

// endpoint returns where a model is asked: what it leaves open stands in the configuration. Another provider or address
// has its own key, or none: the key of one is never sent to another.
func (c *Config) endpoint(e Entry) Endpoint {
	own := e.Endpoint
	if own.Provider == "" && own.BaseURL == "" && own.KeyEnv == "" && own.KeyFile == "" {
		return c.Endpoint
	}
	if own.Provider == "" {
		own.Provider = c.Provider
	}
	return own
}

func (c *Config) has(name string) bool { _, there := c.Models[name]; return there }

// Names returns the names of the models, sorted, for messages.
func (c *Config) Names() string { return strings.Join(slices.Sorted(maps.Keys(c.Models)), ", ") }

// Model returns a model by its name; empty: the default, or the only one. Errors have code invalid_arguments.
func (c *Config) Model(name string) (Model, error) {
	if name == "" || c.Any && !c.has(name) {
		name = cmp.Or(c.Default, c.only())
	}
	if !c.has(name) {
		return Model{}, fault.New(fault.InvalidArguments, "%q is none of this tool's models", name).
			WithHint("model is one of %s", c.Names())
	}
	return c.model(name), nil
}

func (c *Config) model(name string) Model {
	e := c.Models[name]
	m := Model{
		Endpoint: c.endpoint(e), Name: name, ID: e.ID, RPM: e.RPM, TPM: e.TPM, Fallback: e.Fallback,
		MaxOutputTokens: e.MaxOutputTokens, Extra: e.Extra,
	}
	if m.MaxOutputTokens == 0 {
		m.MaxOutputTokens = DefaultMaxOutputTokens
	}
	if e.InputUSD != nil && e.OutputUSD != nil {
		m.Price = &Price{Input: *e.InputUSD, Output: *e.OutputUSD, Cached: e.CachedUSD, CacheWrite: e.CacheWriteUSD}
	}
	return m
}

func validName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}
