package arch_test

import (
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// listed returns the names that begin a row of a table in a document: every `name` in the row's first cell.
func listed(document string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(document) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		first, _, _ := strings.Cut(line[2:], " | ")
		for _, m := range regexp.MustCompile("`([a-z0-9_-]+)`").FindAllStringSubmatch(first, -1) {
			all[m[1]] = true
		}
	}
	return all
}

// faultCodes returns the codes that a file declares: constants of the type Code.
func faultCodes(s source) (codes []string) {
	for _, d := range s.file.Decls {
		d, ok := d.(*ast.GenDecl)
		if !ok || d.Tok != token.CONST {
			continue
		}
		for _, spec := range d.Specs {
			v := spec.(*ast.ValueSpec)
			if t, ok := v.Type.(*ast.Ident); ok && t.Name == "Code" {
				for _, value := range v.Values {
					codes = append(codes, text(value))
				}
			}
		}
	}
	return codes
}

// doctorChecks returns the names of the checks in a file: what stands before a method of the doctor's, or a function, in
// a table.
func doctorChecks(s source) (names []string) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		pair, ok := n.(*ast.CompositeLit)
		if !ok || len(pair.Elts) != 2 {
			return true
		}
		name := text(pair.Elts[0])
		switch look := pair.Elts[1].(type) {
		case *ast.SelectorExpr:
			if d, ok := look.X.(*ast.Ident); ok && d.Name == "d" && name != "" {
				names = append(names, name)
			}
		case *ast.FuncLit:
			if name != "" {
				names = append(names, name)
			}
		}
		return true
	})
	return names
}

// text returns what a literal string says, "" of anything else.
func text(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		s, _ := strconv.Unquote(lit.Value)
		return s
	}
	return ""
}

// TestEverythingThatCanGoWrongIsExplained compares the codes of errors and the checks of the doctor with the page that
// says what to do about each, and the page with them.
func TestEverythingThatCanGoWrongIsExplained(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	require.NoError(t, err)
	operations, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	var codes, checks []string
	for _, s := range sources(t) {
		switch {
		case s.test:
		case s.pkg == "fault":
			codes = append(codes, faultCodes(s)...)
		case s.pkg == "internal/doctor":
			checks = append(checks, doctorChecks(s)...)
		}
	}
	require.Greater(t, len(codes), 40)
	require.Greater(t, len(checks), 20)
	_, explained, _ := strings.Cut(string(page), "\n## A plan is rejected\n")
	there, unknown := listed(explained), listed(explained)
	for _, name := range append(codes, checks...) {
		require.True(t, there[name], "docs/troubleshooting.md has no row for %q", name)
		delete(unknown, name)
	}
	require.Empty(t, unknown, "docs/troubleshooting.md explains what there is no more")
	described := listed(string(operations))
	for _, name := range checks {
		require.True(t, described[name], "docs/operations.md does not say what the check %q looks at", name)
	}
}

func TestWhatIsNotExplainedIsCaught(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]bool{"a_b": true, "c-d": true}, listed("| `a_b`, `c-d` | means `e` |\n`f` | `g` |\n"))
	require.Equal(t, []string{"x", "y"}, faultCodes(parse(t, "fault", "c.go", "package fault\nconst (\n\tX Code = \"x\"\n\tY Code = \"y\"\n\tZ = \"z\"\n)\n")))
	require.Equal(t, []string{"one"}, doctorChecks(parse(t, "internal/doctor", "d.go",
		"package doctor\nvar _ = []struct{}{{\"one\", d.one}, {\"two\", x.two}, {\"three\", 3}}\n")))
}
