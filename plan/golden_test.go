package plan_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestReports shows whole reports, so that a change of wording can be reviewed as a model would read it.
func TestReports(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/reports/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			body, err := os.ReadFile(file)
			require.NoError(t, err)
			var tools plan.Catalog = corpusTools(t)
			if strings.HasPrefix(filepath.Base(file), "dependent") {
				tools = dependentTools(t)
			}
			p, r := plan.Parse(body, tools)
			require.Nil(t, p)
			var b strings.Builder
			write(&b, "problem", r.Problems)
			write(&b, "warning", r.Warnings)
			golden := strings.TrimSuffix(file, ".json") + ".txt"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), b.String())
		})
	}
}

func write(b *strings.Builder, kind string, list []fault.Problem) {
	for _, p := range list {
		fmt.Fprintf(b, "%s %s at %q", kind, p.Code, p.Path)
		if p.Step != "" {
			fmt.Fprintf(b, " of step %s", p.Step)
		}
		if p.Count > 0 {
			fmt.Fprintf(b, ", in %d places: %q", p.Count, p.Paths)
		}
		fmt.Fprintf(b, "\n    %s\n", p.Message)
		if p.Hint != "" {
			fmt.Fprintf(b, "    hint: %s\n", p.Hint)
		}
	}
}
