package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/wire"
)

// What a tool called its failure is kept for plans that may refer to it, and nowhere else.
func TestToolCodes(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]fault.Error{
		`{"code":"card_declined","message":"no"}`:                                              {Code: fault.ToolFailed, ToolCode: "card_declined", Message: "no"},
		`{"code":"card_declined","message":"no","retryable":true}`:                             {Code: fault.ToolFailed, ToolCode: "card_declined", Message: "no", Retryable: true},
		`{"code":"tool_failed","tool_code":"card_declined","message":"no"}`:                    {Code: fault.ToolFailed, ToolCode: "card_declined", Message: "no", Retryable: true},
		`{"code":"tool_terminal","tool_code":"card_declined","message":"no"}`:                  {Code: fault.ToolTerminal, ToolCode: "card_declined", Message: "no"},
		`{"code":"timeout","tool_code":"card_declined","message":"no","retryable":false}`:      {Code: fault.Timeout, Message: "no"},
		`{"code":"x","tool_code":"y","message":"no"}`:                                          {Code: fault.ToolFailed, ToolCode: "x", Message: "no"},
		`{"code":"tool_failed","message":"no","tool_code":"` + strings.Repeat("x", 129) + `"}`: {Code: fault.ToolFailed, ToolCode: strings.Repeat("x", 128) + "…", Message: "no", Retryable: true},
	} {
		e := wire.ParseError([]byte(body), wire.Codes{Own: true})
		want.ToolCode, e.ToolCode = strings.TrimSuffix(want.ToolCode, "…"), strings.TrimSuffix(e.ToolCode, "…")
		require.Equal(t, want, *e, body)
		require.Empty(t, wire.ParseError([]byte(body), wire.Codes{}).ToolCode, "a plan of language 1 knows no such thing")
	}
}

// TestAskingForANewPlan: the code replan is one of the set in runs that need it, and final whatever else is said; elsewhere
// it is a tool's own.
func TestAskingForANewPlan(t *testing.T) {
	t.Parallel()
	const body = `{"code":"replan","tool_code":"x","message":"sold out","retryable":true}`
	knows := wire.CodesOf(2, []string{wire.Agents, wire.Replan})
	require.Equal(t, fault.Error{Code: fault.Replan, Message: "sold out"}, *wire.ParseError([]byte(body), knows))
	require.Equal(t, fault.Error{Code: fault.ToolFailed, ToolCode: "replan", Message: "sold out", Retryable: true}, *wire.ParseError([]byte(body), wire.CodesOf(2, []string{wire.Agents})))
	require.Equal(t, fault.Error{Code: fault.ToolFailed, Message: "replan: sold out", Retryable: true}, *wire.ParseError([]byte(body), wire.CodesOf(1, nil)))
	_, own := wire.Result{Error: fault.New(fault.Replan, "sold out")}.Message()
	require.Equal(t, fault.Error{Code: fault.ToolFailed, Message: "replan: sold out"}, *wire.ParseError(own, wire.CodesOf(1, nil)), "what we write is final for every reader")
	require.Nil(t, wire.AsksToReplan([]byte(`{"message":"sold out"}`)))
	require.Nil(t, wire.AsksToReplan([]byte("replan")))
	require.Equal(t, &fault.Error{Code: fault.Replan, Message: "sold out"}, wire.AsksToReplan([]byte(body+"\n")))
}
