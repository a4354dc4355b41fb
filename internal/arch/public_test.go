package arch_test

import (
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shown are the packages that a program is written with, and named the ones of the module whose names their signatures
// may hold: who uses Stepjet has to know no other. A type of another package that they hand on has a name of their own.
var (
	shown = []string{"client", "worker", "stepjettest"}
	named = []string{"client", "worker", "tool", "outcome", "fault", "observe"}
)

// signatureProblems finds the names of other packages of the module in the signatures that a package shows to its
// users.
func signatureProblems(s source) (problems []string) {
	foreign := map[string]string{} // folders by the names that the file has for them
	for _, spec := range s.file.Imports {
		full, _ := strconv.Unquote(spec.Path.Value)
		folder, own := strings.CutPrefix(full, module+"/")
		if own && !slices.Contains(named, folder) {
			foreign[s.local(full)] = folder
		}
	}
	look := func(what string, n ast.Node) {
		visible(n, func(sel *ast.SelectorExpr) {
			if x, ok := sel.X.(*ast.Ident); ok && foreign[x.Name] != "" {
				problems = append(problems, fmt.Sprintf("%s: %s shows %s.%s, which its users may not have to know",
					s.at(sel.Pos()), what, foreign[x.Name], sel.Sel.Name))
			}
		})
	}
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
				look(d.Name.Name, d.Type)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.IsExported() && !spec.Assign.IsValid() {
						look(spec.Name.Name, spec.Type)
					}
				case *ast.ValueSpec:
					if spec.Names[0].IsExported() && spec.Type != nil {
						look(spec.Names[0].Name, spec.Type)
					}
				}
			}
		}
	}
	return problems
}

// visible calls each for every qualified name below a node, but those of fields and methods that are not exported.
func visible(n ast.Node, each func(*ast.SelectorExpr)) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType, *ast.InterfaceType:
			for _, f := range fields(n) {
				if len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
					visible(f.Type, each)
				}
			}
			return false
		case *ast.SelectorExpr:
			each(n)
		}
		return true
	})
}

func fields(n ast.Node) []*ast.Field {
	switch n := n.(type) {
	case *ast.StructType:
		return n.Fields.List
	case *ast.InterfaceType:
		return n.Methods.List
	}
	return nil
}

func TestPublicSignatures(t *testing.T) {
	t.Parallel()
	looked := 0
	for _, s := range sources(t) {
		if !s.test && slices.Contains(shown, s.pkg) {
			looked++
			require.Empty(t, signatureProblems(s))
		}
	}
	require.Greater(t, looked, 20)
}

func TestPublicSignaturesAreCaught(t *testing.T) {
	t.Parallel()
	const head = "package client\nimport (\n\"context\"\n\"" + module + "/kv\"\n\"" + module + "/tool\"\n)\n"
	for code, caught := range map[string]bool{
		"func F(ctx context.Context) (tool.Contract, error)": false,
		"func F(s *kv.Store)":                                true,
		"func F() []kv.Entry":                                true,
		"func F(each func(kv.Entry))":                        true,
		"func f(s *kv.Store)":                                false,
		"func (t *T) F() map[string]kv.Entry":                true,
		"func (t *hidden) F() kv.Entry":                      false,
		"type T struct { A kv.Entry }":                       true,
		"type T struct { a kv.Entry }":                       false,
		"type T struct { kv.Entry }":                         true,
		"type T interface { F(kv.Entry) }":                   true,
		"type t struct { A kv.Entry }":                       false,
		"type T = kv.Entry":                                  false,
		"type T kv.Entry":                                    true,
		"var V kv.Entry":                                     true,
		"func F() { var x kv.Entry; _ = x }":                 false,
	} {
		require.Equal(t, caught, len(signatureProblems(parse(t, "client", "x.go", head+code))) > 0, code)
	}
}
