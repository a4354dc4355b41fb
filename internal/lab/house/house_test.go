package house

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// tree writes files and measures them.
func tree(t *testing.T, files map[string]string) *House {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	h, err := Measure(root)
	require.NoError(t, err)
	return h
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	h := tree(t, map[string]string{
		"a/one.go":                 "// Package a is.\npackage a\n\nimport \"net/http\"\n\ntype T struct{ h http.Handler }\n\nfunc (t *T) M() { t.n(); F() }\n",
		"a/two.go":                 "package a\n\nfunc (t T) n() { t.M() }\n\nfunc F() { leaf() }\n\nfunc G[X any](x X) X { return x }\n",
		"a/low.go":                 "package a\n\nfunc leaf() {}\n\nconst A, b = 1, 2\n",
		"a/a_test.go":              "package a\n\nfunc Test() {}\n",
		"a/testdata/x.go":          "no Go\n",
		"internal/lab/chaos/c.go":  "package chaos\n",
		"internal/bench/b.go":      "package bench\n",
		"examples/weather/main.go": "package main\n",
	})
	require.Len(t, h.Packages, 4)
	a := h.Packages[0]
	require.Equal(t, "a", a.Path)
	require.Equal(t, 3, a.Files)
	require.Equal(t, 3, a.TestLines)
	require.True(t, a.Documented)
	require.Equal(t, []Type{{"a", "T", 2, 2}}, a.Types)
	// one → two and two → one are a circle; two → low is none.
	require.Equal(t, 3, a.Arrows)
	require.Equal(t, 2, a.Circular)
	// T, T.M, F, G, A
	require.Equal(t, 5, a.Exported)
	product := map[string]bool{}
	for _, p := range h.Packages {
		product[p.Path] = p.Product()
	}
	require.Equal(
		t,
		map[string]bool{"a": true, "internal/lab/chaos": false, "internal/bench": true, "examples/weather": false},
		product,
	)
	require.Contains(t, h.Markdown(), "| `a.T` | 2 | 2 |")
	require.Contains(t, h.Markdown(), "| of them in circles | 2 (67 %) |")
}

// In a tree from before the lab had a folder of its own, its packages are known by their names.
func TestMeasureWithoutALab(t *testing.T) {
	t.Parallel()
	h := tree(t, map[string]string{"internal/bench/b.go": "package bench\n", "internal/cli/c.go": "package cli\n"})
	require.True(t, h.Packages[1].Lab())
	require.True(t, h.Packages[0].Product())
}
