package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

func contextOf(t *testing.T, values map[string]string, secrets ...string) wire.Context {
	t.Helper()
	c, err := wire.NewContext(values, secrets...)
	require.NoError(t, err)
	return c
}

func TestContext(t *testing.T) {
	t.Parallel()
	given := map[string]string{"user": "ann", "token": "s3cr3t"}
	c := contextOf(t, given, "token", "absent")
	given["user"] = "bob"
	v, ok := c.Get("user")
	require.True(t, ok)
	require.Equal(t, "ann", v, "it doesn't change with what it was made of")
	v, _ = c.Get("token")
	require.Equal(t, "s3cr3t", v)
	_, ok = c.Get("absent")
	require.False(t, ok)
	require.True(t, c.Secret("token"))
	require.False(t, c.Secret("user"))
	require.False(t, c.Secret("absent"))
	require.Equal(t, []string{"token", "user"}, c.Keys())
	require.Equal(t, 2, c.Len())

	var none wire.Context
	require.Zero(t, none.Len())
	require.Empty(t, none.Keys())
	require.False(t, none.Secret("x"))
	require.Equal(t, "{}", none.String())
	require.Nil(t, wire.NewRedactor(none, contextOf(t, map[string]string{"open": "visible", "pin": "123"}, "pin")))
	require.Equal(t, none, contextOf(t, nil, "token"))
}

func TestContextLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values map[string]string
		code   fault.Code
	}{
		"empty key":     {map[string]string{"": "v"}, fault.InvalidValue},
		"long key":      {map[string]string{strings.Repeat("k", 65): "v"}, fault.InvalidValue},
		"space":         {map[string]string{"a b": "v"}, fault.InvalidValue},
		"comma":         {map[string]string{"a,b": "v"}, fault.InvalidValue},
		"not ASCII":     {map[string]string{"é": "v"}, fault.InvalidValue},
		"not UTF-8":     {map[string]string{"a": "s3cr3t\xff"}, fault.InvalidValue},
		"one too large": {map[string]string{"k": strings.Repeat("s3cr3t", wire.MaxContext)}, fault.LimitExceeded},
		"quoted fits":   {map[string]string{"k": strings.Repeat(`"\`, wire.MaxContext/2-20)}, ""},
		"text fits":     {map[string]string{"k": strings.Repeat("<—>", wire.MaxContext/5-1)}, ""},
		"control":       {map[string]string{"k": strings.Repeat("\x01", wire.MaxContext/2)}, fault.LimitExceeded},
		"separators":    {map[string]string{"k": strings.Repeat("\u2028\x02", wire.MaxContext/5)}, fault.LimitExceeded},
		"just fits":     {map[string]string{"k": strings.Repeat("v", wire.MaxContext-1)}, ""},
		"all of them":   {map[string]string{"Az09_.-": "v", strings.Repeat("k", 64): ""}, ""},
	} {
		_, err := wire.NewContext(c.values)
		require.Equal(t, c.code, fault.CodeOf(err), name)
		if err != nil {
			require.NotContains(t, err.Error(), "s3cr3t", name)
		}
	}
}

func TestOverAndOnly(t *testing.T) {
	t.Parallel()
	run := contextOf(t, map[string]string{"user": "ann", "token": "run's", "open": "1"}, "token")
	step := contextOf(t, map[string]string{"user": "bob", "open": "2"}, "open")
	both := step.Over(run)
	require.Equal(t, contextOf(t, map[string]string{"user": "bob", "token": "run's", "open": "2"}, "token", "open"), both)
	require.Equal(t, run, wire.Context{}.Over(run))
	require.Equal(t, run, run.Over(wire.Context{}))
	v, _ := run.Get("user")
	require.Equal(t, "ann", v, "neither is changed")

	require.Equal(t, contextOf(t, map[string]string{"token": "run's"}, "token"), both.Only(func(k string) bool { return k == "token" }))
	require.Equal(t, wire.Context{}, both.Only(func(string) bool { return false }))
}

type around struct {
	Public wire.Context
	hidden wire.Context // package fmt calls no methods on this one
	point  *wire.Context
	list   []wire.Context
}

// However a context is printed, logged or marshalled, and wherever it lies, its secrets stay hidden.
func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	c := contextOf(t, map[string]string{"user": "ann", "token": "s3cr3t"}, "token")
	a := around{c, c, &c, []wire.Context{c}}
	step := wire.Step{Result: "r", Context: c}
	var shown []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{c, &c, a, &a, []wire.Context{c}, map[string]wire.Context{"k": c}, step, wire.RunContext{All: c, Steps: map[string]wire.Context{"s": c}}} {
			shown = append(shown, fmt.Sprintf(verb, v))
		}
	}
	shown = append(shown, fmt.Sprint(c), fmt.Sprintln(a), fmt.Errorf("with %v", c).Error())
	for _, v := range []any{c, &c, a, step, map[string]any{"c": c}} {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		shown = append(shown, string(b))
	}
	var logged bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&logged, nil), slog.NewJSONHandler(&logged, nil)} {
		l := slog.New(h)
		l.Info("x", "c", c, "p", &c, "a", a, "pa", &a, "step", step, "list", []wire.Context{c}, "err", errors.New(c.String()))
		l.With("c", c).WithGroup("g").Info(c.String())
	}
	shown = append(shown, logged.String())
	for _, s := range shown {
		require.NotContains(t, s, "s3cr3t")
		require.NotContains(t, s, fmt.Sprintf("%x", "s3cr3t"))
	}
	require.Contains(t, logged.String(), "ann")
	require.Equal(t, `{"token":"[secret]","user":"ann"}`, c.String())
	require.Equal(t, `wire.Context{"token":"[secret]","user":"ann"}`, fmt.Sprintf("%#v", c))
}

func TestRedactor(t *testing.T) {
	t.Parallel()
	one := contextOf(t, map[string]string{"a": "pass", "c": "abc", "quoted": `p"w\d`, "open": "visible"}, "a", "c", "quoted")
	two := contextOf(t, map[string]string{"b": "password", "number": "12345"}, "b", "number")
	r := wire.NewRedactor(one, two, one)
	require.Equal(t, "[secret], [secret]! abc visible", r.Text("password, pass! abc visible"), "the longest first; nothing under 4 bytes")

	for text, want := range map[string]string{
		"ord, then pass": "ord, then [secret]", "sword is it": "[secret] is it", "it is passw": "it is [secret]w", "abc": "abc",
		"45 sword passwor": "45 sword [secret]wor", "word": "[secret]", "all 1234": "all [secret]", "2345 1234": "[secret] [secret]",
	} {
		require.Equal(t, want, r.Excerpt(text), text)
	}

	var none *wire.Redactor
	require.Equal(t, "sword", none.Excerpt("sword"))
	require.Equal(t, "password", none.Text("password"))
	plain := fault.New(fault.ToolFailed, "no secrets").WithHint("none")
	plain.Details = json.RawMessage(`{"a": 1.0}`)
	require.Same(t, plain, none.Error(plain))
	require.Equal(t, *plain, *r.Error(plain))
	require.Nil(t, r.Error(nil))

	e := &fault.Error{
		Code: fault.ToolFailed, Message: "401 for password", Hint: `try p"w\d`, Retryable: true, RetryAfter: 7, Cause: errors.New("password"),
		Details: json.RawMessage(`{"sent":"p\"w\\d","hex":"\u0070assword","n":[12345,1.50],"pass":{"x":null}}`),
	}
	require.Equal(t, fault.Error{
		Code: fault.ToolFailed, Message: "401 for [secret]", Hint: "try [secret]", Retryable: true, RetryAfter: 7,
		Details: json.RawMessage(`{"[secret]":{"x":null},"hex":"[secret]","n":["[secret]",1.50],"sent":"[secret]"}`),
	}, *r.Error(e))
	require.Equal(t, "401 for password", e.Message, "the error given is not changed")
	broken := r.Error(&fault.Error{Details: json.RawMessage(`{"x":"password`)})
	require.Equal(t, `{"x":"[secret]`, string(broken.Details))
}

func TestContextTravelsInHeaders(t *testing.T) {
	t.Parallel()
	c := contextOf(t, map[string]string{"user": "ann \"<é>\"\r\nX: y", "token": "t", "pin": ""}, "token", "pin")
	s := wire.Step{Result: "r", Key: "k", Attempt: 1, Context: c}
	h := s.Header()
	require.NotContains(t, h[subjects.HeaderContext][0], "\n", "a header is one line")
	got, err := wire.ParseStep(h)
	require.NoError(t, err)
	require.Equal(t, s, got)
	require.NotContains(t, wire.Step{Result: "r"}.Header(), subjects.HeaderContext)

	run := wire.RunContext{All: c, Steps: map[string]wire.Context{"s1": contextOf(t, map[string]string{"user": "bob", "key": "k"}, "key"), "none": {}}}
	h = nats.Header{}
	wire.Plan{Context: run}.Set(h)
	read, err := wire.ParsePlan(h)
	back := read.Context
	require.NoError(t, err)
	require.Equal(t, contextOf(t, map[string]string{"user": "bob", "key": "k", "token": "t", "pin": ""}, "key", "token", "pin"), back.Of("s1"))
	require.Equal(t, c, back.Of("s2"))
	require.Equal(t, back.Of("s1"), back.Of("s1/in/x"), "what a composite has, all below it has")
	require.Equal(t, c, back.Of("s10/s1"))
	empty, err := wire.ParsePlan(nats.Header{})
	require.NoError(t, err)
	require.Zero(t, empty.Context.Of("s1").Len())
}

func TestBrokenContexts(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("v", wire.MaxContext/2)
	ctl := strings.Repeat("\\u0001", wire.MaxContextHeader/6/2)
	for name, c := range map[string]struct {
		all, steps string
		code       fault.Code
	}{
		"no JSON":         {`{`, ``, fault.InvalidValue},
		"an array":        {`["a"]`, ``, fault.InvalidValue},
		"numbers":         {`{"a":1}`, ``, fault.InvalidValue},
		"bad key":         {`{"a b":"x"}`, ``, fault.InvalidValue},
		"steps flat":      {``, `{"s":"x"}`, fault.InvalidValue},
		"steps' bad key":  {``, `{"s":{"":"x"}}`, fault.InvalidValue},
		"together":        {`{"a":"` + big + `"}`, `{"s":{"a":"` + big + `"}}`, fault.LimitExceeded},
		"as JSON":         {`{"a":"` + ctl + `"}`, `{"s":{"b":"` + ctl + `"}}`, fault.LimitExceeded},
		"together, steps": {``, `{"s":{"a":"` + big + `"},"t":{"a":"` + big + `"}}`, fault.LimitExceeded},
		"fine":            {`{"a":"x"}`, `{"s":{"a":"x"}}`, ""},
	} {
		h := nats.Header{}
		if c.all != "" {
			h[subjects.HeaderContext] = []string{c.all}
		}
		if c.steps != "" {
			h[subjects.HeaderContextSteps] = []string{c.steps}
		}
		_, err := wire.ParsePlan(h)
		require.Equal(t, c.code, fault.CodeOf(err), name)
	}
}

func TestParseError(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]fault.Error{
		`{"code":"timeout","message":"slow"}`:                       {Code: fault.Timeout, Message: "slow", Retryable: true},
		`{"code":"NOT_FOUND","message":"no"}`:                       {Code: fault.ToolFailed, Message: "NOT_FOUND: no", Retryable: true},
		`{"code":"NOT_FOUND","message":"no","retryable":false}`:     {Code: fault.ToolFailed, Message: "NOT_FOUND: no"},
		`{"message":"no","retry_after_ms":2000,"details":{"a": 1}}`: {Code: fault.ToolFailed, Message: "no", Retryable: true, RetryAfter: 2e9, Details: json.RawMessage(`{"a": 1}`)},
		`"only words"`: {Code: fault.ToolFailed, Message: "only words", Retryable: true},
		`bare words`:   {Code: fault.ToolFailed, Message: "bare words", Retryable: true},
		`[1]`:          {Code: fault.ToolFailed, Message: "[1]", Retryable: true},
	} {
		require.Equal(t, want, *wire.ParseError([]byte(body), wire.Codes{}), body)
	}
}
