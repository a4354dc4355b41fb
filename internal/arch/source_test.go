// Package arch_test holds the rules of the architecture that a compiler doesn't check: who may import whom, what the
// pure packages may not call, what only one package may know, and that every exported name is documented.
package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/stepjet/stepjet"

// source is one Go file of the module.
type source struct {
	pkg  string // its folder below the module's root: "plan", "cmd/stepjet"; "." for the root itself
	name string
	test bool
	set  *token.FileSet
	file *ast.File
}

// at says where something stands.
func (s source) at(pos token.Pos) string {
	return path.Join(s.pkg, s.name) + ":" + strconv.Itoa(s.set.Position(pos).Line)
}

// imports returns what the file imports: folders of the module by their name in it, the rest by its path.
func (s source) imports() map[string]token.Pos {
	all := map[string]token.Pos{}
	for _, spec := range s.file.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		if name == module {
			name = "."
		}
		all[strings.TrimPrefix(name, module+"/")] = spec.Pos()
	}
	return all
}

// local returns the name by which the file calls a package, "" where it doesn't import it.
func (s source) local(importPath string) string {
	for _, spec := range s.file.Imports {
		if name, _ := strconv.Unquote(spec.Path.Value); name != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

// uses calls each for every use of a name of an imported package: time.Now, jetstream.APIError.
func (s source) uses(importPath string, each func(name string, pos token.Pos)) {
	local := s.local(importPath)
	if local == "" {
		return
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == local {
				each(sel.Sel.Name, sel.Pos())
			}
		}
		return true
	})
}

// literals calls each for every literal of a kind but those that are imports or tags of fields.
func (s source) literals(kind token.Token, each func(text string, pos token.Pos)) {
	tags := map[*ast.BasicLit]bool{}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field: // visited before its tag
			tags[n.Tag] = true
		case *ast.BasicLit:
			if n.Kind == kind && !tags[n] {
				each(n.Value, n.Pos())
			}
		}
		return true
	})
}

func parse(t *testing.T, pkg, name string, text any) source {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments)
	require.NoError(t, err)
	return source{pkg: pkg, name: filepath.Base(name), test: strings.HasSuffix(name, "_test.go"), set: set, file: file}
}

// sources reads every Go file of the module, generated folders and test data aside.
func sources(t *testing.T) []source {
	t.Helper()
	root := filepath.Join("..", "..")
	_, err := os.Stat(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	var all []source
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() && p != root && (base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
			return filepath.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(base, ".go") {
			folder, _ := filepath.Rel(root, filepath.Dir(p))
			all = append(all, parse(t, filepath.ToSlash(folder), p, nil))
		}
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}
