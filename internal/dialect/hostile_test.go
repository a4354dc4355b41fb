package dialect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// What would be compiled to far more than was written, or take far longer, is refused. Nothing is measured: it would
// not end, or not fit into memory.
func TestBombsAreRefused(t *testing.T) {
	t.Parallel()
	calls := func(n int, form string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ","+form, i)
		}
		return b.String()[1:]
	}
	for name, body := range map[string]string{
		"all read what all write": `{"calls":[` + calls(9000, `{"_tool":"a","_outputPath":"†state.x","n":%d}`) + "," + calls(900, `{"_tool":"b","x":"†state.x","n":%d}`) + `]}`,
		"all read the state":      `{"calls":[` + calls(9900, `{"_tool":"a","x":"†state","_outputPath":"†state.k%[1]d"}`) + `],"state":{"initial":{"a":1}}}`,
		"a large constant":        `{"calls":[` + calls(2000, `{"_tool":"a","x":"†input","n":%d}`) + `],"input":"` + strings.Repeat("x", 100_000) + `"}`,
	} {
		p, report := plan.Parse([]byte(body), nil)
		require.Nil(t, p, name)
		require.Equal(t, fault.LimitExceeded, report.Problems[0].Code, "%s: %v", name, report.Problems[0])
	}
	deep := `{"calls":[{"_tool":"a","_outputPath":"†state` + strings.Repeat(".a", 100_000) + `"}]}`
	_, report := plan.Parse([]byte(deep), nil)
	require.Equal(t, fault.InvalidValue, report.Problems[0].Code)
}
