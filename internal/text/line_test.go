package text

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOneLineIsHarmless(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a  [31mb  c  d  e�1", OneLine("a\n\x1b[31mb\r\u2028c\u202e\u2066d\u0085\x7fe\x9b1"))
}

func TestFit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in      string
		columns int
		want    string
		taken   int
	}{
		{"short", 5, "short", 5},
		{"longer", 5, "long…", 5},
		{"東京都", 6, "東京都", 6},
		{"東京都", 5, "東京…", 5},
		{"東京都", 4, "東…", 3},
		{"⚡⚡", 3, "⚡…", 3},
		{"\x1b[31mred\x1b[0m", 3, "\x1b[31mred\x1b[0m", 3},
		{"\x1b[31mredder\x1b[0m", 3, "\x1b[31mre…\x1b[0m", 3},
		{"\x1b[2Jx\a", 10, " [2Jx ", 6},
		{"any", 0, "", 0},
	} {
		fits, taken := Fit(tt.in, tt.columns)
		require.Equal(t, tt.want, fits, "%q", tt.in)
		require.Equal(t, tt.taken, taken, "%q", tt.in)
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"one line"}, Wrap("one line", 20, "  "))
	require.Equal(t, []string{"some words that go", "  on and on"}, Wrap("some words that go on and on", 20, "  "))
	require.Equal(t, []string{"    deep words that", "      are broken"}, Wrap("    deep words that are broken", 20, "      "))
	for _, s := range []string{strings.Repeat("東京", 50), strings.Repeat("x", 99), strings.Repeat(" ", 60) + "end", "    " + strings.Repeat("ab ", 60)} {
		whole := ""
		for _, line := range Wrap(s, 30, "      ") {
			require.LessOrEqual(t, Columns(line), 30)
			whole += line
		}
		require.Equal(t, strings.ReplaceAll(s, " ", ""), strings.ReplaceAll(whole, " ", ""))
	}
}

// TestEscaped: what a terminal would act upon is written as an escape, which means the same; all else keeps its bytes.
func TestEscaped(t *testing.T) {
	t.Parallel()
	plain := []byte("{\n  \"a\": \"é\\u009b 漢 \\n\"\n}")
	require.Equal(t, string(plain), string(Escaped(plain)))
	doc := []byte("{\"a\": \"\u009b31m \u202e \u2028x\x7f\"}")
	got := Escaped(doc)
	require.Equal(t, `{"a": "\u009b31m \u202e \u2028x\u007f"}`, string(got))
	require.JSONEq(t, string(doc), string(got))
}
