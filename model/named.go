package model

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// provided is how a model is asked that is named in one word.
type provided struct {
	form    string // of its API
	address string // the environment variable that says where it is, if it is set
	local   string // where it is otherwise; empty: where the provider is
	below   string // where the API begins, from there
	port    string // of an address without one
	key     string // the environment variable that holds its key
}

var providers = map[string]provided{
	"ollama":    {form: OpenAI, address: "OLLAMA_HOST", local: "http://127.0.0.1:11434", below: "/v1", port: "11434"},
	"openai":    {form: OpenAI, address: "OPENAI_BASE_URL", key: "OPENAI_API_KEY"},
	"anthropic": {form: Anthropic, address: "ANTHROPIC_BASE_URL", key: "ANTHROPIC_API_KEY"},
}

// NamedForms are the words of which Named knows what they mean, for messages.
const NamedForms = "ollama:MODEL, openai:MODEL or anthropic:MODEL"

// Named returns the configuration of the one model that a word names, such as "ollama:qwen3:4b" or "openai:gpt-5-mini",
// which answers whatever model a request asks for. Its address and its key are those that the variables of its provider
// name; getenv reads them. Errors have code invalid_config.
func Named(word string, getenv func(string) (string, bool)) (*Config, error) {
	who, id, _ := strings.Cut(word, ":")
	p, known := providers[who]
	if !known || id == "" {
		return nil, fault.New(fault.InvalidConfig, "%q names no model; write %s", word, NamedForms).
			WithHint("others, of their own prices and rates too, stand in a models file; docs/models.md describes it")
	}
	e := Endpoint{Provider: p.form, BaseURL: p.local}
	if at, set := getenv(p.address); set && strings.TrimSpace(at) != "" {
		e.BaseURL = addressOf(strings.TrimSpace(at), p.port)
	}
	if p.below != "" {
		e.BaseURL = strings.TrimSuffix(e.BaseURL, "/") + p.below
	}
	if key, set := getenv(p.key); p.key != "" && set && strings.TrimSpace(key) != "" {
		e.KeyEnv = p.key
	} else if p.key != "" && e.BaseURL == "" {
		return nil, fault.New(fault.InvalidConfig, "%s needs a key, and the environment variable %s is not set", word, p.key).
			WithHint("set it; or ask a model that needs none, ollama:MODEL; or say in a models file which file has the key (key_file)")
	}
	name := plainName(id)
	c := &Config{Endpoint: e, Models: map[string]Entry{name: {ID: id}}, Default: name, Any: true}
	var wrong *fault.Error
	e.check(func(_, format string, args ...any) {
		wrong = fault.New(fault.InvalidConfig, "the environment variable "+p.address+": "+format, args...)
	})
	if wrong != nil {
		return nil, wrong.WithHint("it is where the API begins, such as http://127.0.0.1:8000/v1")
	}
	return c, nil
}

// addressOf makes a URL of an address that may have no scheme and no port.
func addressOf(at, port string) string {
	if port == "" {
		return at
	}
	if !strings.Contains(at, "://") {
		at = "http://" + at
	}
	if u, err := url.Parse(at); err == nil && u.Port() == "" && u.Hostname() != "" && u.Scheme == "http" {
		u.Host += ":" + port
		return u.String()
	}
	return at
}

// plainName makes a name of what a provider calls a model.
func plainName(id string) string {
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && validName(string(r)) {
			return r
		}
		return '-'
	}, id)
	return name[:min(len(name), 64)]
}

// only returns the name of the only model; empty where there are several.
func (c *Config) only() string {
	if len(c.Models) != 1 {
		return ""
	}
	return slices.Collect(maps.Keys(c.Models))[0]
}
