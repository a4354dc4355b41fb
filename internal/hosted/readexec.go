package hosted

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/internal/jsonfile"
	"github.com/stepjet/stepjet/tool"
)

// inherited are the variables that a program gets from the worker unasked.
var inherited = []string{"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"}

// private are the beginnings of variables that are never passed on: how the worker reaches NATS, and its own settings.
var private = []string{"NATS_", "STEPJET_"}

// exec reads the exec field of an entry.
func (r *reader) exec(entry jsonfile.Fields, def *tool.Definition) caller {
	f, ok := r.problems.Object(entry.At("exec"), entry.Values["exec"],
		"argv", "allow_dash", "stdin", "timeout_ms", "output_limit_bytes", "env", "context", "dir")
	if !ok {
		return nil
	}
	p := &program{name: def.Name, defaults: defaults(def), dash: map[string]bool{}}
	p.timeout, p.limit = r.limits(f, def)
	p.stdin = f.Choice("stdin", "none", "arguments") == "arguments"
	p.dir = r.dir
	if dir, ok := f.Text("dir"); ok && filepath.IsAbs(dir) {
		p.dir = dir
	} else if ok {
		p.dir = filepath.Join(r.dir, dir)
	}
	used := r.argv(f, def, p)
	for _, name := range f.Texts("allow_dash") {
		if !slices.Contains(used, name) {
			r.problems.Wrong(f.At("allow_dash"), jsonfile.Suggest(name, used), "argv has no placeholder {{%s}}", name)
		}
		p.dash[name] = true
	}
	p.env = r.environment(f)
	p.context = r.contextKeys(f)
	r.uses = p.context
	return p.call
}

// argv reads the command line and returns the names of its placeholders.
func (r *reader) argv(f jsonfile.Fields, def *tool.Definition, p *program) (used []string) {
	elements := f.Texts("argv")
	if len(elements) == 0 || elements[0] == "" {
		r.problems.Wrong(f.At("argv"), `for example ["jq", "-r", "{{path}}"]`, "it must name a program")
		return nil
	}
	for i, element := range elements {
		path := fmt.Sprintf("%s/%d", f.At("argv"), i)
		t, err := parseTemplate(element, "{{", "}}")
		if err != nil {
			r.problems.Wrong(path, "", "%v", err)
			continue
		}
		if strings.IndexByte(element, 0) >= 0 {
			r.problems.Wrong(path, "", "it holds a NUL byte")
		}
		if i == 0 && len(t.names()) > 0 {
			r.problems.Wrong(path, "write a tool for each program", "the program itself can't be an argument")
			continue
		}
		r.placeholders(path, t.names(), def, false)
		used = append(used, t.names()...)
		p.argv = append(p.argv, t)
	}
	if !installed(elements[0], p.dir) {
		r.file.warnings = append(r.file.warnings, fmt.Sprintf("the tool %q can't run: there is no program %q", def.Name,
			elements[0]))
	}
	return used
}

// installed reports whether a program can be found: by its name, or by its path from dir.
func installed(program, dir string) bool {
	if filepath.Base(program) != program && !filepath.IsAbs(program) {
		program = filepath.Join(dir, program)
	}
	_, err := exec.LookPath(program)
	return err == nil
}

// environment puts the program's variables together: the few that all get, then those of the file.
func (r *reader) environment(f jsonfile.Fields) []string {
	env := Inherited(r.getenv)
	pass := func(name string) bool {
		value, ok := r.getenv(name)
		if ok {
			env = append(env, name+"="+value)
		}
		return ok
	}
	for i, one := range f.Texts("env") {
		path := fmt.Sprintf("%s/%d", f.At("env"), i)
		name, _, set := strings.Cut(one, "=")
		switch {
		case name == "" || strings.IndexByte(one, 0) >= 0:
			r.problems.Wrong(path, "write NAME=value, or NAME to pass the worker's own on", "%q names no variable", one)
		case set:
			env = append(env, one)
		case r.secret(name):
			r.problems.Wrong(path, "", "%s is the worker's own and not passed on", name)
		case !pass(name):
			r.problems.Wrong(path, "set it, or write "+name+"=value", "the worker has no variable %s", name)
		}
	}
	return env
}

func (r *reader) secret(name string) bool { return OwnVariable(name) }

// Inherited returns the variables that a program gets from this process unasked, as NAME=value.
func Inherited(lookup func(string) (string, bool)) (env []string) {
	for _, name := range inherited {
		if value, ok := lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// OwnVariable reports whether a variable is one of Stepjet's own settings, which no program and no server is given.
func OwnVariable(name string) bool {
	return slices.ContainsFunc(private, func(prefix string) bool {
		return strings.HasPrefix(strings.ToUpper(name), prefix)
	})
}
