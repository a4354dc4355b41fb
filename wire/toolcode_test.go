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
		e := wire.ParseError([]byte(body), true)
		want.ToolCode, e.ToolCode = strings.TrimSuffix(want.ToolCode, "…"), strings.TrimSuffix(e.ToolCode, "…")
		require.Equal(t, want, *e, body)
		require.Empty(t, wire.ParseError([]byte(body), false).ToolCode, "a plan of language 1 knows no such thing")
	}
}
