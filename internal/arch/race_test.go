package arch_test

import (
	"go/ast"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatRunsBesideItselfIsRaced: a package that is tested without the race detector starts no goroutine, and a test of it
// that does is run with the detector, too. What needs the machine for itself (-p 1) is raced where it is used.
func TestWhatRunsBesideItselfIsRaced(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("there is no make to ask")
	}
	var plain, raced []testCommand
	for _, line := range linesOfCI(t) {
		for _, c := range testCommands(t, line) {
			switch {
			case c.tags["race"]:
				raced = append(raced, c)
			case c.run == nil && !strings.Contains(line, " -p 1 "):
				plain = append(plain, c)
			}
		}
	}
	in := func(list []testCommand, pkg, test string) bool {
		return slices.ContainsFunc(list, func(c testCommand) bool { return c.takes(pkg, test, nil) })
	}
	pure, many := 0, 0
	for _, s := range sources(t) {
		if outside(s.pkg) || !in(plain, s.pkg, "") {
			continue
		}
		pure++
		for _, d := range s.file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || !startsGoroutine(f) {
				continue
			}
			many++
			switch name := f.Name.Name; {
			case !s.test:
				t.Errorf("%s: %s starts a goroutine: take its package out of PURE of the Makefile", s.at(f.Pos()), name)
			case !in(raced, s.pkg, name):
				t.Errorf("%s: %s starts goroutines, and nothing runs it with the race detector: name it in RACED of the Makefile, and its package in RACED_IN", s.at(f.Pos()), name)
			}
		}
	}
	require.NotZero(t, pure)
	require.NotZero(t, many, "no test uses a pure package from several goroutines")
}

// startsGoroutine tells whether a function has a go statement, or calls what stands for one: Go of a group.
func startsGoroutine(f *ast.FuncDecl) (does bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			does = true
		case *ast.CallExpr:
			if of, is := n.Fun.(*ast.SelectorExpr); is && of.Sel.Name == "Go" {
				does = true
			}
		}
		return !does
	})
	return does
}
