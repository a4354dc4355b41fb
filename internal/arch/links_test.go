package arch_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	fenced  = regexp.MustCompile("(?s)\n```.*?\n```")
	inlined = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^()\s]+(?:\([^()\s]*\))?)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	unslug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns what can be linked to in a document: its headings, as code hosts name them.
func anchors(document string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString("\n"+document, ""), -1) {
		text := strings.ToLower(linked.ReplaceAllString(strings.TrimSpace(m[1]), "$1"))
		all[strings.ReplaceAll(unslug.ReplaceAllString(text, ""), " ", "-")] = true
	}
	return all
}

// links returns where a document leads to within the repository.
func links(document string) (all []string) {
	plain := inlined.ReplaceAllString(fenced.ReplaceAllString("\n"+document, ""), "x")
	for _, m := range link.FindAllStringSubmatch(plain, -1) {
		if !strings.Contains(m[1], "://") && !strings.HasPrefix(m[1], "mailto:") {
			all = append(all, m[1])
		}
	}
	return all
}

// TestLinksOfDocumentsLeadSomewhere follows every link from one document to a file, and to a heading within one.
func TestLinksOfDocumentsLeadSomewhere(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	documents := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && path != root) {
			return filepath.SkipDir
		}
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		raw, err := os.ReadFile(path)
		documents[path] = string(raw)
		return err
	}))
	require.Greater(t, len(documents), 30)
	for path, text := range documents {
		for _, to := range links(text) {
			file, anchor, within := strings.Cut(to, "#")
			target := filepath.Join(filepath.Dir(path), file)
			if file == "" {
				target = path
			}
			_, err := os.Stat(target)
			assert.NoError(t, err, "%s leads to %s", path, to)
			if within && filepath.Ext(target) == ".md" {
				assert.True(t, anchors(documents[target])[anchor], "%s leads to %s, and there is no such heading", path, to)
			}
		}
	}
}

func TestLinksThatLeadNowhereAreCaught(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]bool{"a-b-c-of-d_e": true, "für-alle": true}, anchors("# A `b`, [c](d) of d_e\n```sh\n# no\n```\n## Für alle!\n"))
	require.Equal(t, []string{"a.md#b", "#c"}, links("[x](a.md#b) `[y](no)` [z](https://e.org) [w](#c)\n```\n[v](no)\n```\n"))
}
