package arch_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func public(s source) bool {
	return !s.test && !strings.HasPrefix(s.pkg, "internal") && !strings.HasPrefix(s.pkg, "cmd/") && s.file.Name.Name != "main"
}

// undocumented returns the exported names of a file that no comment says anything about. A comment on a group of
// constants or variables covers those in it.
func undocumented(s source) (problems []string) {
	missing := func(name string, pos token.Pos) {
		problems = append(problems, fmt.Sprintf("%s: exported %s has no comment", s.at(pos), name))
	}
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && onExported(d) {
				missing(d.Name.Name, d.Pos())
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				undocumentedSpec(d, spec, missing)
			}
		}
	}
	return problems
}

// onExported reports whether a function is no method, or the method of an exported type.
func onExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

func undocumentedSpec(d *ast.GenDecl, spec ast.Spec, missing func(string, token.Pos)) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, n := range spec.Names {
			if n.IsExported() && d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
				missing(n.Name, n.Pos())
			}
		}
	case *ast.TypeSpec:
		if !spec.Name.IsExported() {
			return
		}
		if d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
			missing(spec.Name.Name, spec.Pos())
		}
		if i, ok := spec.Type.(*ast.InterfaceType); ok {
			for _, m := range i.Methods.List {
				if len(m.Names) > 0 && m.Names[0].IsExported() && m.Doc == nil && m.Comment == nil {
					missing(spec.Name.Name+"."+m.Names[0].Name, m.Pos())
				}
			}
		}
	}
}

func TestExportsAreDocumented(t *testing.T) {
	t.Parallel()
	var problems []string
	packages := map[string]bool{} // whether some file has a comment on the package as a whole
	for _, s := range sources(t) {
		if !public(s) {
			continue
		}
		packages[s.pkg] = packages[s.pkg] || s.file.Doc != nil
		problems = append(problems, undocumented(s)...)
	}
	for pkg, documented := range packages {
		if !documented {
			problems = append(problems, "package "+pkg+" has no comment")
		}
	}
	slices.Sort(problems)
	require.Empty(t, problems)
}

func TestUndocumentedIsCaught(t *testing.T) {
	t.Parallel()
	tests := []struct {
		code   string
		caught int
	}{
		{"func F() {}", 1},
		{"// F does.\nfunc F() {}", 0},
		{"func f() {}", 0},
		{"type t struct{}\nfunc (t) M() {}", 0},
		{"// T is.\ntype T struct{}\nfunc (*T) M() {}", 1},
		{"// T is.\ntype T[X any] struct{}\nfunc (*T[X]) M() {}", 1},
		{"const A, B = 1, 2", 2},
		{"const (\n\tA = 1 // one\n\tB = 2\n)", 1},
		{"// Numbers.\nconst (\n\tA = 1\n\tB = 2\n)", 0},
		{"// I is.\ntype I interface {\n\tM()\n\t// N does.\n\tN()\n}", 1},
	}
	for _, tt := range tests {
		require.Len(t, undocumented(parse(t, "plan", "x.go", "package x\n"+tt.code+"\n")), tt.caught, tt.code)
	}
}

// TestDecisionsHaveNumbersOfTheirOwn: each page of docs/adr is called by its number, and by no other's.
func TestDecisionsHaveNumbersOfTheirOwn(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/adr/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for i, page := range pages {
		name := filepath.Base(page)
		require.True(t, strings.HasPrefix(name, fmt.Sprintf("%04d-", i+1)), "%s is the %dth", name, i+1)
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(text), fmt.Sprintf("# %d. ", i+1)), "the title of %s", name)
	}
}
