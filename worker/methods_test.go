package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
)

// store is a value as programs have them: some of its methods are for tools, others are not.
type store struct{}

type order struct {
	Item  string `json:"item" jsonschema:"what is sold"`
	Count int    `json:"count"`
}

func (s *store) SellItem(_ context.Context, o order) (map[string]int, error) {
	if o.Count == 0 {
		return nil, Terminal(errors.New("none of it"))
	}
	return map[string]int{o.Item: o.Count}, nil
}

func (s *store) Restock(context.Context, order) error         { return nil }
func (s *store) ListHTTPCodes(context.Context) ([]int, error) { return []int{200, 404}, nil }
func (s *store) Ping(context.Context) error                   { return errors.New("not today") }
func (s *store) Close() error                                 { return nil }
func (s *store) String() string                               { return "a store" }

func TestMethodsAreTools(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	w.worker(Config{}, func(worker *Worker) {
		Methods(worker, &store{}, MethodOptions{Options: func(method string) []Option { return []Option{Description("calls " + method)} }})
	})
	for name, want := range map[string]string{"sell_item": `{"pen":2}`, "restock": `null`, "list_http_codes": `[200,404]`} {
		r := w.run(name, map[bool]string{true: `{}`, false: `{"item":"pen","count":2.0}`}[name == "list_http_codes"])
		require.Nil(t, r.Error, name)
		require.Equal(t, want, string(r.Body), name)
	}
	require.Equal(t, fault.ToolTerminal, w.run("sell_item", `{"item":"pen","count":0}`).Error.Code)
	require.Equal(t, fault.InvalidArguments, w.run("sell_item", `{"item":"pen"}`).Error.Code)
	failed := w.run("ping", `{}`)
	require.Equal(t, fault.Error{Code: fault.ToolFailed, Message: "not today", Retryable: true}, *failed.Error)

	registered, err := w.store.Registry.Tool(w.ctx(), "sell_item")
	require.NoError(t, err)
	require.Equal(t, "calls SellItem", registered.Definition.Description)
	require.Contains(t, string(registered.Definition.InputSchema), "what is sold")
	tools, err := w.store.Registry.Tools(w.ctx())
	require.NoError(t, err)
	require.Len(t, tools, 4, "methods that take no context are nobody's tools")
}

type crowded struct{}

func (crowded) Two(context.Context, order, order) error    { return nil }
func (crowded) Loose(context.Context, ...order) error      { return nil }
func (crowded) Silent(context.Context)                     {}
func (crowded) Plain(context.Context, order) order         { return order{} }
func (crowded) Number(context.Context, int) error          { return nil }
func (crowded) Fine(context.Context, order) (order, error) { return order{}, nil }
func (crowded) FINE(context.Context, map[string]any) error { return nil }

func TestWhatIsWrongWithMethods(t *testing.T) {
	t.Parallel()
	mistakes := func(value any, o MethodOptions) (says []string, w *Worker) {
		w, err := New(&nats.Conn{}, Config{})
		require.NoError(t, err)
		Methods(w, value, o)
		for _, m := range w.mistakes {
			require.Equal(t, fault.InvalidTool, fault.CodeOf(m))
			says = append(says, m.Error()+" "+fault.As(m).Hint)
		}
		return says, w
	}
	got, w := mistakes(crowded{}, MethodOptions{})
	require.Len(t, got, 6, "%q", got)
	require.Len(t, w.tools, 1, "two of one name are not both hosted")
	for _, about := range []string{"method Two", "method Loose", "method Silent", "method Plain", "number", "fine"} {
		require.True(t, slices.ContainsFunc(got, func(m string) bool { return strings.Contains(m, about) }), "%s in %q", about, got)
	}
	got, w = mistakes(crowded{}, MethodOptions{Only: func(m string) bool { return m == "Fine" || m == "FINE" }, Name: func(m string) string { return "crowd_" + m }})
	require.Empty(t, got)
	require.Len(t, w.tools, 2)

	for _, c := range []struct {
		value any
		only  func(string) bool
		says  string
	}{
		{nil, nil, "no value"}, {(*store)(nil), nil, "no value"}, {store{}, nil, "hand over a pointer"},
		{7, nil, "exported"}, {&store{}, func(string) bool { return false }, "Only"},
	} {
		got, _ := mistakes(c.value, MethodOptions{Only: c.only})
		require.Len(t, got, 1)
		require.Contains(t, got[0], c.says)
	}
}

func TestSnakeCase(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Get": "get", "GetUser": "get_user", "GetHTTPStatus": "get_http_status", "ID": "id", "UserID": "user_id", "Get_User": "get_user", "Über": "über", "V2Sum": "v2_sum",
	} {
		require.Equal(t, want, SnakeCase(name))
	}
}
