package arch_test

import (
	"fmt"
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// logs are the methods of a logger that take keys and values, and what of their arguments comes before those.
var logs = map[string]int{
	"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "With": 0,
	"DebugContext": 2, "InfoContext": 2, "WarnContext": 2, "ErrorContext": 2,
}

// isLogger reports whether an expression is a logger by its name: log, x.log, x.log(), c.Logger, slog.
func isLogger(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "log" || e.Name == "slog" || e.Name == "logger" || e.Name == "Logger"
	case *ast.SelectorExpr:
		return isLogger(e.Sel)
	case *ast.CallExpr:
		return isLogger(e.Fun)
	}
	return false
}

// logged returns the keys of the lines that a file logs, and what is wrong with how it does that.
func logged(s source, known map[string]bool) (keys, problems []string) {
	std := s.local("log") // the package of the standard library has no keys
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		to, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !isLogger(to.X) {
			return true
		}
		before, ok := logs[to.Sel.Name]
		if id, is := to.X.(*ast.Ident); !ok || is && id.Name == std && std != "" {
			return true
		}
		wrong := func(format string, args ...any) {
			problems = append(problems, s.at(call.Pos())+": "+fmt.Sprintf(format, args...))
		}
		if call.Ellipsis.IsValid() || len(call.Args) < before {
			return true // what was gathered elsewhere
		}
		pairs := call.Args[before:]
		if len(pairs)%2 == 1 {
			wrong("a key without a value")
			return true
		}
		var own []string
		for i := 0; i < len(pairs); i += 2 {
			key := text(pairs[i])
			if !known[key] {
				wrong("the key %q is none of those of docs/operations.md, \"Logs\"", key)
				continue
			}
			own = append(own, key)
		}
		if slices.Contains(own, "run") && !slices.Contains(own, "tenant") {
			wrong("a run is named without its tenant")
		}
		keys = append(keys, own...)
		return true
	})
	return keys, problems
}

// logKeys returns the keys that the page for operators explains.
func logKeys(page string) map[string]bool {
	_, section, _ := strings.Cut(page, "\n**Logs.**")
	section, _, _ = strings.Cut(section, "\n## ")
	keys := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(section, -1) {
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(m[1], -1) {
			keys[name[1]] = true
		}
	}
	return keys
}

// TestLogsHaveKeysThatAreExplained: whoever searches logs knows by which key, in each program and each line; and what is
// explained is used.
func TestLogsHaveKeysThatAreExplained(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	known := logKeys(string(page))
	require.Greater(t, len(known), 10)
	unused := logKeys(string(page))
	var problems []string
	for _, s := range sources(t) {
		if s.test || strings.HasPrefix(s.pkg, "internal/lab") || strings.HasPrefix(s.pkg, "examples") {
			continue
		}
		keys, wrong := logged(s, known)
		problems = append(problems, wrong...)
		for _, k := range keys {
			delete(unused, k)
		}
	}
	require.Empty(t, problems)
	require.Empty(t, unused, "docs/operations.md explains keys that nobody logs")
}

func TestWrongLogsAreCaught(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"run": true, "tenant": true, "error": true}
	for code, caught := range map[string]int{
		`log.Info("x", "tenant", 1, "run", 2)`: 0, `x.y.log().Warn("x", "error", err)`: 0, `c.Logger.With("tenant", 1)`: 0,
		`log.Info("x", "run", 2)`: 1, `log.Info("x", "Run", 2)`: 1, `log.Error("x", err)`: 1, `slog.InfoContext(ctx, "x", key, 1)`: 1,
		`x.Info("x", "y", 1)`: 0, `log.Info("x", all...)`: 0, `log.Info(m, "error", e, "id", 7)`: 1,
	} {
		_, problems := logged(parse(t, "a", "x.go", "package a\nfunc f() { "+code+" }\n"), known)
		require.Len(t, problems, caught, code)
	}
	require.Equal(t, map[string]bool{"a": true, "b_c": true}, logKeys("x\n**Logs.** y\n\n| key | |\n|---|---|\n| `a`, `b_c` | the `d` |\n\n## Z\n| `e` | |\n"))
}
