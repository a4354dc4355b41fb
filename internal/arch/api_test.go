package arch_test

import (
	"go/ast"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// api lists what a package exports, without words and bodies, in the order of names.
func api(t *testing.T, files []source) string {
	t.Helper()
	var all []string
	outer := embedders(files)
	for _, s := range files {
		ast.FileExports(s.file)
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				d.Body = nil
				if onExported(d) {
					all = append(all, written(t, s.set, d))
				} else if to := outer[receiver(d.Recv.List[0].Type)]; to != "" {
					inner := receiver(d.Recv.List[0].Type)
					all = append(all, strings.Replace(written(t, s.set, d), inner+")", to+")", 1))
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.VAR {
						v.Values = nil
					}
					if _, imports := spec.(*ast.ImportSpec); !imports {
						all = append(all, d.Tok.String()+" "+written(t, s.set, spec))
					}
				}
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n") + "\n"
}

// embedders returns the exported type that the methods of an unexported one are promoted to, by that one's name.
func embedders(files []source) map[string]string {
	outer := map[string]string{}
	for _, s := range files {
		ast.Inspect(s.file, func(n ast.Node) bool {
			spec, is := n.(*ast.TypeSpec)
			if !is || !spec.Name.IsExported() {
				return true
			}
			if of, is := spec.Type.(*ast.StructType); is {
				for _, f := range of.Fields.List {
					if inner, is := f.Type.(*ast.Ident); is && f.Names == nil && !inner.IsExported() {
						outer[inner.Name] = spec.Name.Name
					}
				}
			}
			return false
		})
	}
	return outer
}

// written is a node as text.
func written(t *testing.T, set *token.FileSet, node ast.Node) string {
	t.Helper()
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			n.Doc = nil
		case *ast.TypeSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.ValueSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.Field:
			n.Doc, n.Comment = nil, nil
		}
		return true
	})
	var b strings.Builder
	require.NoError(t, (&printer.Config{Mode: printer.UseSpaces, Tabwidth: 4}).Fprint(&b, set, node))
	var lines []string
	for line := range strings.Lines(b.String()) {
		if strings.TrimSpace(line) != "" { // where a comment was
			lines = append(lines, strings.TrimRight(line, "\n"))
		}
	}
	return strings.Join(lines, "\n")
}

// TestTheAPIIsListed holds what the public packages export against docs/api, whose diff shows a reviewer each change.
func TestTheAPIIsListed(t *testing.T) {
	t.Parallel()
	packages := map[string][]source{}
	for _, s := range sources(t) {
		if public(s) && !strings.HasPrefix(s.pkg, "examples") {
			packages[s.pkg] = append(packages[s.pkg], s)
		}
	}
	require.Greater(t, len(packages), 10)
	folder := filepath.Join("..", "..", "docs", "api")
	if *update {
		require.NoError(t, os.RemoveAll(folder))
		require.NoError(t, os.MkdirAll(folder, 0o755))
	}
	for _, pkg := range slices.Sorted(maps.Keys(packages)) {
		listed, name := api(t, packages[pkg]), filepath.Join(folder, strings.ReplaceAll(pkg, "/", "_")+".txt")
		if *update {
			require.NoError(t, os.WriteFile(name, []byte(listed), 0o644))
		}
		was, err := os.ReadFile(name)
		require.NoError(t, err, "go test ./internal/arch -run API -update writes it")
		require.Equal(t, string(was), listed, "go test ./internal/arch -run API -update, and look at the difference")
	}
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, files, len(packages), "go test ./internal/arch -run API -update")
}

func TestTheListOfAnAPI(t *testing.T) {
	t.Parallel()
	s := parse(t, "x", "x.go", `package x

import "io"

// T is.
type T struct {
	// A is.
	A int // one
	b int
	p
}

type u struct{}

type p struct{}

// P is promoted.
func (p *p) P() {}

// M does.
func (t *T) M(w io.Writer) error { return nil }

func (u) N() {}

func (T) n() {}

// C and d are.
const (
	C = 1
	d = 2
)

// V is.
var V, w = make(map[int]int), 1
`)
	require.Equal(t, `const C = 1
func (p *T) P()
func (t *T) M(w io.Writer) error
type T struct {
    A int
    // contains filtered or unexported fields
}
var V
`, api(t, []source{s}))
}
