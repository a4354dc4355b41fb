package arch_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/house"
)

// The most that one can keep in mind of a type, and of a package.
const (
	mostMethods     = 40
	mostTypeFiles   = 5
	mostPackageFile = 45
)

// largeTypes may have more methods, or in more files, than others: no more than stands here, for the reason that stands
// here.
var largeTypes = []struct {
	house.Type
	why string
}{
	{
		house.Type{Package: "internal/cli", Name: "app", Methods: 179, Files: 34},
		"one execution of the command: a file for each command, and no state of theirs but flags",
	},
	{
		house.Type{Package: "plan", Name: "parser", Methods: 120, Files: 19},
		"one pass over a document, a file for each form in it, and one list of problems",
	},
	{
		house.Type{Package: "plan", Name: "walker", Methods: 66, Files: 11},
		"follows one reference through schemas, a file for each form of a path",
	},
	{
		house.Type{Package: "plan", Name: "Resolver", Methods: 30, Files: 7},
		"one file for each place where values are put together",
	},
	{
		house.Type{Package: "machine", Name: "Run", Methods: 112, Files: 13},
		"the state machine: all that may change a run's state stands on it",
	},
	{
		house.Type{Package: "machine", Name: "scope", Methods: 22, Files: 10},
		"what the steps of one plan have in common, for each part of the state machine",
	},
	{
		house.Type{Package: "internal/doctor", Name: "doctor", Methods: 74, Files: 17},
		"a method for each check, a file for each part that is examined",
	},
	{
		house.Type{Package: "orchestrator", Name: "run", Methods: 40, Files: 10},
		"what an owner holds of one run, for all parts of an orchestrator",
	},
	{
		house.Type{Package: "worker", Name: "execution", Methods: 59, Files: 8},
		"one attempt, from its delivery to its acknowledgement",
	},
	{
		house.Type{Package: "worker", Name: "engine", Methods: 33, Files: 9},
		"what all executions of a worker share",
	},
	{
		house.Type{Package: "client", Name: "Client", Methods: 62, Files: 14},
		"what programs call: a file for each kind of request",
	},
	{
		house.Type{Package: "internal/conformance", Name: "stage", Methods: 30, Files: 8},
		"one world for all groups of checks",
	},
	{
		house.Type{Package: "tool", Name: "Schema", Methods: 20, Files: 7},
		"a file for each question that is asked of a schema",
	},
	{
		house.Type{Package: "tool", Name: "Definition", Methods: 16, Files: 7},
		"a file for each question that is asked of a definition",
	},
}

func houseProblems(h *house.House) (problems []string) {
	for _, x := range h.Types() {
		methods, files := mostMethods, mostTypeFiles
		for _, large := range largeTypes {
			if large.Package == x.Package && large.Name == x.Name {
				methods, files = max(large.Methods, methods), max(large.Files, files)
			}
		}
		if x.Methods > methods || x.Files > files {
			problems = append(problems, fmt.Sprintf("%s.%s has %d methods in %d files; up to %d in %d: cut a type out of it",
				x.Package, x.Name, x.Methods, x.Files, methods, files))
		}
	}
	for _, p := range h.Packages {
		if p.Files > mostPackageFile {
			problems = append(
				problems, fmt.Sprintf("%s has %d files; up to %d: cut a package out of it", p.Path, p.Files, mostPackageFile),
			)
		}
		if p.Files > 0 && !p.Documented && !strings.HasPrefix(p.Path, "examples/readme/") { // the README says what those do
			problems = append(problems, "package "+p.Path+" has no comment that says what it is for")
		}
	}
	return problems
}

func TestHouse(t *testing.T) {
	t.Parallel()
	h, err := house.Measure("../..")
	require.NoError(t, err)
	require.Empty(t, houseProblems(h))
}

func TestALargeHouseIsCaught(t *testing.T) {
	t.Parallel()
	of := func(p house.Package) int { return len(houseProblems(&house.House{Packages: []*house.Package{&p}})) }
	typ := func(name string, methods, files int) []house.Type {
		return []house.Type{{Package: "kv", Name: name, Methods: methods, Files: files}}
	}
	require.Zero(t, of(house.Package{Path: "kv", Files: 40, Documented: true, Types: typ("Store", 40, 5)}))
	require.Equal(t, 1, of(house.Package{Path: "kv", Files: 40, Documented: true, Types: typ("Store", 41, 1)}))
	require.Equal(t, 1, of(house.Package{Path: "kv", Files: 40, Documented: true, Types: typ("Store", 1, 6)}))
	require.Equal(t, 1, of(house.Package{Path: "kv", Files: mostPackageFile + 1, Documented: true}))
	require.Equal(t, 1, of(house.Package{Path: "kv", Files: 1}))
	require.Zero(t, of(house.Package{Path: "kv"}), "a folder of tests alone")
}

// writtenMaps finds maps of a package that are written to: state that all goroutines of a process would share.
func writtenMaps(files []source) (problems []string) {
	maps := map[string]map[string]bool{} // by package, then name
	for _, s := range files {
		for _, d := range s.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR || s.test {
				continue
			}
			for _, spec := range g.Specs {
				for _, name := range mapsOf(spec.(*ast.ValueSpec)) {
					if maps[s.pkg] == nil {
						maps[s.pkg] = map[string]bool{}
					}
					maps[s.pkg][name] = true
				}
			}
		}
	}
	for _, s := range files {
		if s.test {
			continue
		}
		written := func(e ast.Expr) {
			if i, ok := e.(*ast.IndexExpr); ok {
				e = i.X
			}
			if name, ok := e.(*ast.Ident); ok && maps[s.pkg][name.Name] && ofPackage(s.file, name) {
				problems = append(
					problems,
					fmt.Sprintf("%s: %s is a map of the package, and is written to", s.at(e.Pos()), name.Name),
				)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, e := range n.Lhs {
						written(e)
					}
				}
			case *ast.IncDecStmt:
				written(n.X)
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "delete" || f.Name == "clear") && len(n.Args) > 0 {
					written(n.Args[0])
				}
			}
			return true
		})
	}
	slices.Sort(problems)
	return problems
}

// mapsOf returns the names of variables that are maps by their declared type or by their first value.
func mapsOf(v *ast.ValueSpec) (names []string) {
	isMap := func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.MapType:
			return true
		case *ast.CompositeLit:
			_, ok := e.Type.(*ast.MapType)
			return ok
		case *ast.CallExpr:
			if len(e.Args) == 0 {
				return false
			}
			f, made := e.Fun.(*ast.Ident)
			_, ok := e.Args[0].(*ast.MapType)
			return made && f.Name == "make" && ok
		}
		return false
	}
	for i, name := range v.Names {
		if isMap(v.Type) || i < len(v.Values) && isMap(v.Values[i]) {
			names = append(names, name.Name)
		}
	}
	return names
}

// ofPackage reports whether a name in a file is the package's own: declared at the top of this file, or nowhere in it.
func ofPackage(file *ast.File, name *ast.Ident) bool {
	return name.Obj == nil || file.Scope.Lookup(name.Name) == name.Obj
}

func TestNoMapOfAPackageIsWritten(t *testing.T) {
	t.Parallel()
	require.Empty(t, writtenMaps(sources(t)))
}

func TestAWrittenMapIsCaught(t *testing.T) {
	t.Parallel()
	for code, caught := range map[string]int{
		"var m = map[int]int{}\nfunc f() { m[1] = 2 }":                     1,
		"var m map[int]int\nfunc f() { m = nil }":                          1,
		"var m = make(map[int]int)\nfunc f() { delete(m, 1) }":             1,
		"var m = map[int]int{}\nfunc f() { m[1]++; clear(m) }":             2,
		"var m = map[int]int{1: 2}\nfunc f() int { return m[1] }":          0,
		"var m = map[int]int{}\nfunc f() { m := map[int]int{}; m[1] = 2 }": 0,
		"func f() { m := map[int]int{}; m[1] = 2 }":                        0,
	} {
		s := parse(t, "x", "x.go", "package x\n"+code+"\n")
		require.Len(t, writtenMaps([]source{s}), caught, code)
	}
}
