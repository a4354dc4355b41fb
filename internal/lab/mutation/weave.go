package mutation

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// planted is the variable of the environment that says which of the bugs in a test program is awake.
const planted = "STEPJET_PLANTED_BUG"

// weave returns the source of a file with several bugs in it, all asleep, and the bugs that could not be put there so.
// Each has a copy of the function that it changes, at the end of the file, and the function calls that copy while the
// bug is awake. Lines keep their numbers, and what the compiler says of a copy names the bug in place of the file.
func weave(file string, bugs []mutant) (text string, alone []mutant, err error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return "", nil, err
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return "", nil, err
	}
	w := weaver{source: string(source), set: set, calls: map[*ast.FuncDecl]*strings.Builder{}}
	for _, m := range bugs {
		if _, err := m.mutated(); err != nil {
			return "", nil, fmt.Errorf("%s: %w", m.name, err)
		}
		d := w.function(parsed, m)
		if d == nil {
			alone = append(alone, m)
			continue
		}
		w.copy(d, m)
	}
	return w.text(), alone, nil
}

type weaver struct {
	source string
	set    *token.FileSet
	calls  map[*ast.FuncDecl]*strings.Builder // what its body begins with
	edits  []edit
	copies strings.Builder
}

// edit puts a text in the place of a part of the source.
type edit struct {
	from, to int
	text     string
}

func (w *weaver) at(p token.Pos) int { return w.set.Position(p).Offset }

// function returns the function whose body holds all that a bug changes: nil where none does, where it has no name that
// it could be called by, and where it recovers, which only the function itself can that is deferred.
func (w *weaver) function(f *ast.File, m mutant) *ast.FuncDecl {
	from := strings.Index(w.source, m.old)
	for _, decl := range f.Decls {
		d, is := decl.(*ast.FuncDecl)
		if !is || d.Body == nil || from <= w.at(d.Body.Lbrace) || from+len(m.old) > w.at(d.End()) {
			continue
		}
		whole := w.source[w.at(d.Pos()):w.at(d.End())]
		if d.Recv == nil && (d.Name.Name == "init" || d.Name.Name == "main") || strings.Contains(whole, "recover()") {
			return nil
		}
		return d
	}
	return nil
}

// copy adds the function with the bug in it, and its call.
func (w *weaver) copy(d *ast.FuncDecl, m mutant) {
	name := variable(m) + "_" + d.Name.Name
	whole := w.source[w.at(d.Pos()):w.at(d.Name.Pos())] + name + w.source[w.at(d.Name.End()):w.at(d.End())]
	fmt.Fprintf(&w.copies, "\n//line %s.go:%d\n%s\n", m.name, w.set.Position(d.Pos()).Line,
		strings.Replace(whole, m.old, m.new, 1))
	b := w.calls[d]
	if b == nil {
		b = &strings.Builder{}
		w.calls[d] = b
	}
	call := name + typeArguments(d) + "(" + strings.Join(w.arguments(d), ", ") + ")"
	if d.Recv != nil {
		call = w.named(d.Recv.List[0], "planted_receiver", b.Len() == 0)[0] + "." + call
	}
	if d.Type.Results != nil {
		fmt.Fprintf(b, " if %s { return %s };", variable(m), call)
		return
	}
	fmt.Fprintf(b, " if %s { %s; return };", variable(m), call)
}

// arguments returns what a function hands on of its own.
func (w *weaver) arguments(d *ast.FuncDecl) []string {
	var all []string
	for i, p := range d.Type.Params.List {
		names := w.named(p, fmt.Sprint("planted_", i), w.calls[d].Len() == 0)
		if _, several := p.Type.(*ast.Ellipsis); several {
			names[0] += "..."
		}
		all = append(all, names...)
	}
	return all
}

// named returns the names of a parameter; what has none gets one.
func (w *weaver) named(p *ast.Field, name string, first bool) []string {
	if len(p.Names) == 0 {
		if first {
			w.edits = append(w.edits, edit{w.at(p.Type.Pos()), w.at(p.Type.Pos()), name + " "})
		}
		return []string{name}
	}
	names := make([]string, len(p.Names))
	for i, n := range p.Names {
		names[i] = n.Name
		if n.Name == "_" {
			names[i] = fmt.Sprint(name, "_", i)
			if first {
				w.edits = append(w.edits, edit{w.at(n.Pos()), w.at(n.End()), names[i]})
			}
		}
	}
	return names
}

func typeArguments(d *ast.FuncDecl) string {
	if d.Type.TypeParams == nil {
		return ""
	}
	var names []string
	for _, p := range d.Type.TypeParams.List {
		for _, n := range p.Names {
			names = append(names, n.Name)
		}
	}
	return "[" + strings.Join(names, ", ") + "]"
}

func (w *weaver) text() string {
	for d, calls := range w.calls {
		at := w.at(d.Body.Lbrace) + 1
		w.edits = append(w.edits, edit{at, at, calls.String()})
	}
	slices.SortFunc(w.edits, func(a, b edit) int { return a.from - b.from })
	var b strings.Builder
	done := 0
	for _, e := range w.edits {
		b.WriteString(w.source[done:e.from] + e.text)
		done = e.to
	}
	return b.String() + w.source[done:] + w.copies.String()
}

// variable returns the name of what says whether a bug is awake.
func variable(m mutant) string { return "planted_" + strings.ReplaceAll(m.name, "-", "_") }

// switches returns the source of a file for the package in dir that says which of these bugs is awake.
func switches(dir string, bugs []mutant) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", err
	}
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	if len(files) == 0 {
		return "", fmt.Errorf("there is no package in %s", dir)
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), files[0], nil, parser.PackageClauseOnly)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n\nimport \"os\"\n\nvar (\n", parsed.Name.Name)
	for _, m := range bugs {
		fmt.Fprintf(&b, "\t%s = os.Getenv(%q) == %q\n", variable(m), planted, m.name)
	}
	b.WriteString(")\n")
	return b.String(), nil
}
