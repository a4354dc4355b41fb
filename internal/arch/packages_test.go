package arch_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// packagesOf returns the names in the first cells of the table that begins with "| package |".
func packagesOf(document string) (names []string) {
	_, table, _ := strings.Cut(document, "\n| package | ")
	for line := range strings.Lines(table) {
		if first, _, row := strings.Cut(strings.TrimPrefix(line, "| "), " | "); row && strings.HasPrefix(line, "| `") {
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(first, -1) {
				names = append(names, m[1])
			}
		}
	}
	return names
}

// TestArchitectureNamesEveryPackage: whoever opens the project finds each package's place on one page.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/architecture.md")
	require.NoError(t, err)
	there := map[string]bool{}
	for _, s := range sources(t) {
		there[s.pkg] = true
	}
	named := packagesOf(string(page))
	require.NotEmpty(t, named)
	for _, pkg := range slices.Sorted(maps.Keys(there)) {
		assert.True(t, slices.ContainsFunc(named, func(n string) bool { return match(n, pkg) }), "docs/architecture.md has no row for the package %s", pkg)
	}
	for _, n := range named {
		assert.True(t, there[n] || strings.HasSuffix(n, "/*"), "docs/architecture.md names the package %s, which is not there", n)
	}
	for _, m := range regexp.MustCompile("`([a-z/]+\\.go)`").FindAllStringSubmatch(string(page), -1) {
		_, err := os.Stat(filepath.Join("../..", m[1]))
		assert.NoError(t, err)
	}
}

func TestPackagesOfATableAreFound(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"a", "b/c", "d/*"}, packagesOf("| `x` | no |\n\n| package | what |\n|---|---|\n| `a`, `b/c` | is `e` |\n| `d/*` | f |\n"))
}
