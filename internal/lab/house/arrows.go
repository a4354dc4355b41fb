package house

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// arrows counts, among the files of a package, the arrows from a file to another that declares what it uses (functions,
// methods, fields, types, variables, constants; each pair once), and those that are part of a circle.
//
// The package is type-checked by itself: imported packages are empty, and what depends on them has no type. That leaves
// out only what is reached through a value that another package returned.
//
// The names of the files of each circle are returned too, the largest circle first.
func arrows(set *token.FileSet, files []*ast.File) (all, circular int, circle [][]string) {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	cfg := types.Config{Importer: empty{}, Error: func(error) {}, FakeImportC: true, DisableUnusedImportCheck: true}
	pkg, _ := cfg.Check("p", set, files, info) // errors are those of the empty imports
	next := map[string]map[string]bool{}
	for ident, object := range info.Uses {
		if object.Pkg() != pkg || !object.Pos().IsValid() {
			continue
		}
		from, to := set.Position(ident.Pos()).Filename, set.Position(object.Pos()).Filename
		if from == to {
			continue
		}
		if next[from] == nil {
			next[from] = map[string]bool{}
		}
		next[from][to] = true
	}
	number := circles(next)
	for from, tos := range next {
		for to := range tos {
			all++
			if number[from] == number[to] {
				circular++
			}
		}
	}
	return all, circular, named(number)
}

// named returns the base names of the files with one number, for each number that more than one file has.
func named(number map[string]int) (all [][]string) {
	by := map[int][]string{}
	for _, file := range slices.Sorted(maps.Keys(number)) {
		by[number[file]] = append(by[number[file]], filepath.Base(file))
	}
	for _, n := range slices.Sorted(maps.Keys(by)) {
		if len(by[n]) > 1 {
			all = append(all, by[n])
		}
	}
	slices.SortStableFunc(all, func(a, b []string) int { return len(b) - len(a) })
	return all
}

// empty imports every package as one that holds nothing.
type empty struct{}

func (empty) Import(name string) (*types.Package, error) {
	if name == "unsafe" {
		return types.Unsafe, nil
	}
	p := types.NewPackage(name, strings.TrimSuffix(path.Base(name), ".go"))
	p.MarkComplete()
	return p, nil
}

// circles returns files the same number where each can be reached from the other (Tarjan's strongly connected
// components).
func circles(next map[string]map[string]bool) map[string]int {
	t := &tarjan{next: next, index: map[string]int{}, low: map[string]int{}, circle: map[string]int{}}
	for _, file := range slices.Sorted(maps.Keys(next)) {
		if t.index[file] == 0 {
			t.visit(file)
		}
	}
	return t.circle
}

type tarjan struct {
	next       map[string]map[string]bool
	index, low map[string]int // from 1
	circle     map[string]int // from 1, once known
	stack      []string
}

func (t *tarjan) visit(file string) {
	t.index[file] = len(t.index) + 1
	t.low[file] = t.index[file]
	t.stack = append(t.stack, file)
	for _, to := range slices.Sorted(maps.Keys(t.next[file])) {
		switch {
		case t.index[to] == 0:
			t.visit(to)
			t.low[file] = min(t.low[file], t.low[to])
		case t.circle[to] == 0:
			t.low[file] = min(t.low[file], t.index[to])
		}
	}
	if t.low[file] != t.index[file] {
		return
	}
	number := t.index[file]
	for {
		last := t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		t.circle[last] = number
		if last == file {
			return
		}
	}
}
