package arch_test

import (
	"go/ast"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// declared returns what the module declares, as package.Name, and for what belongs to a type package.Type.Name.
func declared(files []source) map[string]bool {
	all := map[string]bool{}
	for _, s := range files {
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = receiver(d.Recv.List[0].Type) + "." + name
				}
				all[s.pkg+"."+name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					for _, name := range namesOf(spec) {
						all[s.pkg+"."+name] = true
					}
				}
			}
		}
	}
	return all
}

// receiver returns the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// namesOf returns the names that a declaration of constants, variables or a type makes, the type's fields included.
func namesOf(spec ast.Spec) (names []string) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, n := range spec.Names {
			names = append(names, n.Name)
		}
	case *ast.TypeSpec:
		names = append(names, spec.Name.Name)
		if fields, ok := spec.Type.(*ast.StructType); ok {
			for _, f := range fields.Fields.List {
				for _, n := range f.Names {
					names = append(names, spec.Name.Name+"."+n.Name)
				}
			}
		}
	}
	return names
}

// placed returns the third cell of each row of a document's tables of four columns: where a term stands in the code.
func placed(document string) (places []string) {
	for line := range strings.Lines(document) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) == 4 && strings.HasPrefix(cells[2], "`") {
			places = append(places, strings.Trim(cells[2], "`"))
		} else if len(cells) == 4 && !strings.HasPrefix(line, "| term ") {
			places = append(places, "no place: "+strings.TrimSpace(line))
		}
	}
	return places
}

// TestTheGlossaryNamesPlacesThatExist: a term whose place has gone is renamed or removed there too.
func TestTheGlossaryNamesPlacesThatExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/glossary.md")
	require.NoError(t, err)
	there, places := declared(sources(t)), placed(string(page))
	require.Greater(t, len(places), 50)
	for _, p := range places {
		assert.True(t, there[p], "docs/glossary.md names %s, which nothing declares", p)
	}
	terms := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([a-z][^|]*?) \|`).FindAllStringSubmatch(string(page), -1) {
		require.True(t, m[1] == "term" || !terms[m[1]], "%s stands there twice", m[1])
		terms[m[1]] = true
	}
}

func TestPlacesThatDoNotExistAreCaught(t *testing.T) {
	t.Parallel()
	there := declared([]source{parse(t, "a/b", "x.go", "package b\ntype T[K any] struct{ F, g int }\nfunc (*T[K]) M() {}\nfunc N() {}\nconst C = 1\n")})
	require.Equal(t, map[string]bool{"a/b.T": true, "a/b.T.F": true, "a/b.T.g": true, "a/b.T.M": true, "a/b.N": true, "a/b.C": true}, there)
	require.Equal(t, []string{"a.B"}, placed("| term | meaning | place | not |\n|---|---|---|---|\n| x | is y | `a.B` | z |\n| x | is y | z |\n"))
	require.Len(t, placed("| x | is y | nowhere | z |\n"), 1)
}
