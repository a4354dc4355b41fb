package server

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
)

// ContextRules say what of a call becomes out-of-band context of its run. A claim wins over a header, and both over what
// the caller says itself.
type ContextRules struct {
	// Keys are those that the caller may set, in "_meta".
	Keys []string
	// Claims are keys by the claim of the token that they come from.
	Claims map[string]string
	// Headers are those of the HTTP request.
	Headers []ContextHeader
}

// ContextHeader is a header of the HTTP request that becomes a value of the context.
type ContextHeader struct {
	Header, Key string
	// Secret values are shown nowhere and may be sealed.
	Secret bool
}

func (r ContextRules) validate() error {
	keys := slices.Clone(r.Keys)
	for _, key := range r.Claims {
		keys = append(keys, key)
	}
	for _, h := range r.Headers {
		keys = append(keys, h.Key)
	}
	values := map[string]string{}
	for _, key := range keys {
		values[key] = ""
	}
	if _, err := client.NewContext(values); err != nil {
		return fault.Wrap(fault.InvalidConfig, err, "reading the keys of the context")
	}
	return nil
}

// of returns the context of a call. Errors: InvalidValue and LimitExceeded, for what the caller set.
func (r ContextRules) of(meta map[string]any, who Principal, header http.Header) (client.RunContext, error) {
	values := map[string]string{}
	var secrets []string
	for _, key := range r.Keys {
		switch v := meta[key].(type) {
		case nil:
		case string:
			values[key] = v
		default:
			return client.RunContext{}, fault.New(fault.InvalidValue, "_meta %q is no text", key)
		}
	}
	for _, h := range r.Headers {
		if v := header.Get(h.Header); v != "" {
			values[h.Key] = v
			if h.Secret {
				secrets = append(secrets, h.Key)
			}
		}
	}
	for claim, key := range r.Claims {
		if v, there := who.Claims[claim]; there {
			values[key] = v
		}
	}
	if len(values) == 0 {
		return client.RunContext{}, nil
	}
	all, err := client.NewContext(values, secrets...)
	if err != nil {
		return client.RunContext{}, fmt.Errorf("the context of the call: %w", err)
	}
	return client.RunContext{All: all}, nil
}

// traceHeader returns the trace context that a call came with: of its "_meta", else of its HTTP request.
func traceHeader(meta map[string]any, header http.Header) map[string][]string {
	h := map[string][]string{}
	for _, key := range []string{"traceparent", "tracestate"} {
		if v, ok := meta[key].(string); ok {
			h[key] = []string{v}
		} else if v := header.Get(key); v != "" {
			h[key] = []string{v}
		}
	}
	return h
}
