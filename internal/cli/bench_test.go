package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/bench"
)

// Both layouts are measured by the real command, whose other processes it starts itself.
func TestBench(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), "", "bench", "--for", "50ms", "-o", "json")
	require.NoError(t, p.Wait(), p.errs.String())
	var got struct {
		bench.Stamp
		Layouts []bench.Report `json:"layouts"`
	}
	require.NoError(t, json.Unmarshal([]byte(p.out.String()), &got))
	require.NotEmpty(t, got.Machine)
	require.Len(t, got.Layouts, 2)
	for _, l := range got.Layouts {
		require.Len(t, l.Shapes, 3)
		for _, s := range l.Shapes {
			require.Positive(t, s.Rate, "%s: %s", l.Layout, s.Shape)
		}
	}
}

func TestBenchAsText(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), "", "bench", "embedded", "--for", "50ms")
	require.NoError(t, p.Wait(), p.errs.String())
	require.Regexp(t, `(?m)^LAYOUT +SHAPE +MS A RUN +MS A STEP +STEPS/S +CPU S PER 1,000$`, p.out.String())
	require.Regexp(t, `(?m)^embedded  chain of 20 +[0-9.]+ +[0-9.]+ +[0-9]+ +[0-9.]+$`, p.out.String())
}
