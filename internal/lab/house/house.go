// Package house measures how the project's code is built: how large its types and packages are, and how many calls
// between the files of a package run in circles. It reads the source alone, so any commit can be measured.
package house

import (
	"cmp"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// House is what one tree of sources is like.
type House struct {
	Packages []*Package
}

// Package is one folder of Go files. Tests count for TestLines alone.
type Package struct {
	// Path is the folder, from the module's root: "kv", "internal/cli".
	Path  string
	Files int
	Lines int
	// TestLines are the lines of its tests.
	TestLines int
	// Types are those that have methods.
	Types []Type
	// Arrows go from a file to another one of the package that declares what it uses; Circular are those of them that
	// are part of a circle, so that neither file can be read without the other.
	Arrows, Circular int
	// Circles are the names of the files of each circle, the largest circle first.
	Circles [][]string
	// Exported counts exported names: of the package, and methods of exported types.
	Exported int
	// Documented says whether a comment tells what the package is for.
	Documented bool

	set   *token.FileSet
	files []*ast.File
}

// Type is a type with methods.
type Type struct {
	Package, Name string
	// Methods in so many Files.
	Methods, Files int
}

// Lab reports whether the package tries and measures the product and is no part of it. Before there was a folder for
// them, these packages had no mark but their names.
func (p *Package) Lab() bool {
	return p.Path == "cmd/lab" || strings.HasPrefix(p.Path, "internal/lab/")
}

// Product reports whether the package is part of what users run or import.
func (p *Package) Product() bool {
	return !p.Lab() && !strings.HasPrefix(p.Path, "examples") && p.Path != "internal/arch"
}

// Public reports whether others can import the package.
func (p *Package) Public() bool {
	return p.Product() && !strings.HasPrefix(p.Path, "internal") && !strings.HasPrefix(p.Path, "cmd")
}

// before are the lab's packages of a tree that has no folder for them yet.
var before = []string{
	"internal/bench",
	"internal/chaos",
	"internal/chaos/cmd",
	"internal/reference",
	"internal/mutation",
	"internal/leaselog",
	"internal/natstest",
	"internal/wiretest",
	"internal/e2e",
}

// Measure reads the module at root.
func Measure(root string) (*House, error) {
	by := map[string]*Package{}
	_, err := os.Stat(filepath.Join(root, "internal", "lab"))
	old := errors.Is(err, fs.ErrNotExist)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root &&
				(name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		if old && slices.Contains(before, folder) {
			folder = strings.Replace(folder, "internal/", "internal/lab/", 1)
		}
		p := by[folder]
		if p == nil {
			p = &Package{Path: folder, set: token.NewFileSet()}
			by[folder] = p
		}
		return p.read(path)
	})
	if err != nil {
		return nil, err
	}
	h := &House{}
	for _, p := range by {
		p.count()
		h.Packages = append(h.Packages, p)
	}
	slices.SortFunc(h.Packages, func(a, b *Package) int { return strings.Compare(a.Path, b.Path) })
	return h, nil
}

func (p *Package) read(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := strings.Count(string(text), "\n")
	if strings.HasSuffix(path, "_test.go") {
		p.TestLines += lines
		return nil
	}
	file, err := parser.ParseFile(p.set, path, text, parser.ParseComments)
	if err != nil {
		return err
	}
	p.Files++
	p.Lines += lines
	p.Documented = p.Documented || file.Doc != nil
	p.files = append(p.files, file)
	return nil
}

func (p *Package) count() {
	type found struct {
		methods int
		files   map[*ast.File]bool
	}
	types := map[string]*found{}
	for _, file := range p.files {
		for _, d := range file.Decls {
			p.Exported += exported(d)
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			name := receiver(f)
			if types[name] == nil {
				types[name] = &found{files: map[*ast.File]bool{}}
			}
			types[name].methods++
			types[name].files[file] = true
		}
	}
	for name, t := range types {
		p.Types = append(p.Types, Type{p.Path, name, t.methods, len(t.files)})
	}
	slices.SortFunc(p.Types, bySize)
	p.Arrows, p.Circular, p.Circles = arrows(p.set, p.files)
}

func bySize(a, b Type) int {
	return cmp.Or(
		cmp.Compare(b.Methods, a.Methods),
		cmp.Compare(b.Files, a.Files),
		strings.Compare(a.Package+a.Name, b.Package+b.Name),
	)
}

// receiver returns the name of a method's type.
func receiver(f *ast.FuncDecl) string {
	t := f.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// exported counts the exported names of a declaration.
func exported(d ast.Decl) (n int) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
			n++
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() {
					n++
				}
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					if name.IsExported() {
						n++
					}
				}
			}
		}
	}
	return n
}
