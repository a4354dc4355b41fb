package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/stepjet/stepjet/fault"
)

// Kind says what kept a model from answering.
type Kind string

// The kinds of failure.
const (
	Limited     Kind = "limited"     // 429: too many requests or tokens
	Overloaded  Kind = "overloaded"  // 529, or said so
	Server      Kind = "server"      // any other 5xx
	Unreachable Kind = "unreachable" // no connection
	Late        Kind = "late"        // silent for too long
	Broken      Kind = "broken"      // the answer broke off, or could not be read
	Exhausted   Kind = "exhausted"   // the account has no credit left
	Invalid     Kind = "invalid"     // 400 and what is like it
	TooLong     Kind = "too_long"    // more than the model's context takes
	Refused     Kind = "refused"     // the model or a filter would not answer
	Forbidden   Kind = "forbidden"   // 401, 403
	Unknown     Kind = "unknown"     // 404: no such model
	TooLarge    Kind = "too_large"   // the answer is over the limit
)

// Failure is why a model has not answered.
type Failure struct {
	Kind     Kind
	Provider string
	Other    bool   // it is another's API of the provider's form
	Model    string // its name in the configuration
	Status   int    // of HTTP; 0 for none
	Message  string // the provider's, shortened, without the key
	// RetryAfter is when another attempt may be of use; 0: not said.
	RetryAfter time.Duration
}

// Passes reports whether another model may answer instead: the request is not at fault.
func (f *Failure) Passes() bool {
	switch f.Kind {
	case Limited, Overloaded, Server, Unreachable, Late, Broken, Exhausted:
		return true
	case Invalid, TooLong, Refused, Forbidden, Unknown, TooLarge:
	}
	return false
}

// defaultRetryAfter is the pause after 429 and 529 where the provider names none.
const defaultRetryAfter = 5 * time.Second

// Error says what happened.
func (f *Failure) Error() string { return f.Fault().Error() }

// of says whose API was asked.
func (f *Failure) of() string {
	if f.Other { // where it is is nothing that who asked need know
		return "an API of the form of " + f.Provider
	}
	return f.Provider
}

// by says which model has not answered.
func (f *Failure) by(m Model) *Failure {
	f.Provider, f.Other, f.Model = m.Provider, m.BaseURL != "", m.Name
	return f
}

// Fault returns the failure as a step's error.
func (f *Failure) Fault() *fault.Error {
	code := fault.ToolTerminal
	if f.Passes() && f.Kind != Exhausted {
		code = fault.ToolFailed
	}
	what, hint := sentences[f.Kind], hints[f.Kind]
	e := fault.New(code, "the model %q (%s) %s", f.Model, f.of(), what).WithHint("%s", hint)
	if f.Message != "" {
		e.Message += ": " + f.Message
	}
	if f.Kind == Limited || f.Kind == Overloaded {
		e.RetryAfter = f.RetryAfter
		if e.RetryAfter <= 0 {
			e.RetryAfter = defaultRetryAfter
		}
	}
	e.ToolCode = "model_" + string(f.Kind)
	e.Details = fmt.Appendf(nil, `{"kind":%q,"status":%d}`, f.Kind, f.Status)
	return e
}

var sentences = map[Kind]string{
	Limited: "takes no more requests for now", Overloaded: "is overloaded", Server: "answered with an error of its own",
	Unreachable: "can't be reached", Late: "was silent for too long", Broken: "broke its answer off",
	Exhausted: "has no credit left", Invalid: "refused the request as invalid", TooLong: "can't take a request this long",
	Refused: "refused to answer", Forbidden: "refused the key", Unknown: "is not known there",
	TooLarge: "answered with more than the limit",
}

var hints = map[Kind]string{
	Exhausted: "the account behind the key has to be paid for; or name a fallback in the tool's configuration",
	Invalid:   "look at what the provider says: the request's tools, schemas and messages are sent as they were given",
	TooLong:   "send less: shorter results, fewer messages or tools, or a model with a larger context",
	Refused:   "the same request will be refused again: ask for something else, or in other words",
	Forbidden: "whoever runs the model worker has to look at key_env or key_file of this model; a key that was changed counts once the worker is started anew",
	Unknown:   "whoever runs the model worker has to look at id and base_url of this model",
	TooLarge:  "lower max_output_tokens, or ask for less",
}

// Failed makes a failure of a response that is no success. text is the beginning of its body; secret is the key, which
// is never in what comes of it.
func Failed(m Model, status int, header http.Header, text []byte, secret string) *Failure {
	said := readError(text)
	f := (&Failure{Kind: kindOf(status, said), Status: status}).by(m)
	if f.Kind != Forbidden { // what is said of a key tends to show parts of it
		f.Message = Printable(said.message, secret)
	}
	f.RetryAfter = retryAfter(header)
	return f
}

// said is what a provider writes of an error.
type said struct{ message, code, kind string }

func readError(text []byte) said {
	type fields struct {
		Message string `json:"message"`
		Code    any    `json:"code"`
		Type    string `json:"type"`
	}
	var both struct {
		Error json.RawMessage `json:"error"`
		fields
	}
	if json.Unmarshal(text, &both) != nil {
		return said{message: string(text)}
	}
	inner := both.fields
	if len(both.Error) > 0 && json.Unmarshal(both.Error, &inner) != nil { // Ollama writes a string
		_ = json.Unmarshal(both.Error, &inner.Message)
	}
	code := ""
	if inner.Code != nil {
		code = fmt.Sprint(inner.Code)
	}
	return said{inner.Message, code, inner.Type}
}

func kindOf(status int, s said) Kind {
	words := strings.ToLower(s.message + " " + s.code + " " + s.kind)
	says := func(one ...string) bool {
		for _, w := range one {
			if strings.Contains(words, w) {
				return true
			}
		}
		return false
	}
	switch {
	case says("insufficient_quota", "billing_error", "credit balance is too low"):
		return Exhausted
	case status == http.StatusTooManyRequests || status == 0 && says("rate_limit"):
		return Limited
	case status == 529 || says("overloaded_error") || status == http.StatusServiceUnavailable && says("overloaded"):
		return Overloaded
	case status >= 500 || status == 0 && says("api_error", "server_error"), status == http.StatusRequestTimeout,
		status == http.StatusConflict, status == http.StatusTooEarly:
		return Server
	case status == http.StatusRequestEntityTooLarge, says("context_length_exceeded", "maximum context length",
		"prompt is too long", "context window", "exceed_context_size", "request_too_large"):
		return TooLong
	case status == http.StatusUnauthorized || status == http.StatusForbidden,
		says("authentication_error", "permission_error"):
		return Forbidden
	case says("content_policy", "content_filter", "content management policy"):
		return Refused
	case status == http.StatusNotFound:
		return Unknown
	case status == 0:
		return Broken
	}
	return Invalid
}

// maxRetryAfter bounds what a provider may ask for: a run's longest time.
const maxRetryAfter = 168 * time.Hour

// retryAfter reads retry-after-ms and retry-after, in seconds or as a date (RFC 9110, 10.2.3): that is one of the provider's clock, as
// is the date of the response, so that no other clock is asked.
func retryAfter(h http.Header) time.Duration {
	in := func(name string, unit time.Duration) time.Duration {
		v, err := strconv.ParseFloat(strings.TrimSpace(h.Get(name)), 64)
		if err != nil || !(v > 0) { // NaN is not more than 0
			return 0
		}
		return time.Duration(min(v*float64(unit), float64(maxRetryAfter)))
	}
	if ms := in("Retry-After-Ms", time.Millisecond); ms > 0 {
		return ms
	}
	if s := in("Retry-After", time.Second); s > 0 {
		return s
	}
	at, err := http.ParseTime(h.Get("Retry-After"))
	now, bad := http.ParseTime(h.Get("Date"))
	if err != nil || bad != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// maxMessage is how much of what a provider says goes into an error.
const maxMessage = 500

// Printable returns a text for an error or a log: on one line, short, and without a secret.
func Printable(s, secret string) string {
	hide := func(s string) string {
		if secret == "" {
			return s
		}
		return strings.ReplaceAll(s, secret, "[key]")
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(hide(s), ""))
	s = hide(strings.Join(strings.Fields(s), " ")) // again: what was taken out may have stood within it
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "…"
	}
	return s
}

// AboutSchema reports whether a provider complains of the way in which a structured answer is asked for.
func (f *Failure) AboutSchema() bool {
	m := strings.ToLower(f.Message)
	for _, word := range []string{"response_format", "json_schema", "schema", "tool_choice"} {
		if strings.Contains(m, word) {
			return true
		}
	}
	return false
}
