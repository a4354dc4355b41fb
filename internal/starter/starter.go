// Package starter makes a folder with a worker of one's own: its tool, a plan that uses it, a test, and what starts all
// of it in containers. What it makes for Go is a package of this module too (golang), so it is compiled, linted and
// tested as it stands here.
package starter

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/stepjet/stepjet/examples/typescript"
	"github.com/stepjet/stepjet/fault"
)

//go:embed compose.yaml golang typescript
var own embed.FS

// The languages of a worker.
const (
	Go         = "go"
	TypeScript = "ts"
)

const module = "github.com/stepjet/stepjet"

// Options say what is made.
type Options struct {
	Folder   string // what is made; it may be there, and empty
	Language string // Go or TypeScript
	Source   string // the folder of Stepjet's source, which is not published yet
	Stepjet  string // the program, as the folder's README names it
}

// values are what the files of a folder say of it.
type values struct {
	Name, Go, Source, Stepjet string
	GoWorker                  bool
}

// file is one that is made; where words is set, its text has values to be put in.
type file struct {
	name  string
	from  fs.FS
	path  string
	words bool
}

// files lists what is made for a language.
func files(language string) []file {
	at := "golang"
	if language == TypeScript {
		at = "typescript"
	}
	all := []file{
		{name: "compose.yaml", from: own, path: "compose.yaml", words: true},
		{name: "Dockerfile", from: own, path: at + "/Dockerfile", words: true},
		{name: "README.md", from: own, path: at + "/README.md", words: true},
		{name: "plan.json", from: own, path: "golang/plan.json"},
	}
	names, written := []string{"main.go", "main_test.go"}, typescript.Files
	if language == TypeScript {
		names = []string{"tool.ts", "tool.test.ts", "tsconfig.json", "package.json"}
		for _, name := range []string{"worker.ts", "stream.ts", "spans.ts", "package-lock.json"} {
			all = append(all, file{name: name, from: written, path: name})
		}
	} else {
		all = append(all, file{name: ".dockerignore", from: own, path: "golang/dockerignore"})
	}
	for _, name := range names {
		all = append(all, file{name: name, from: own, path: path.Join(at, name)})
	}
	return all
}

// Make makes the folder, and returns the names of its files. What is in the way stays as it is.
func Make(o Options) ([]string, error) {
	line, err := goLine(o.Source)
	if err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(o.Folder)
	if err != nil {
		return nil, err
	}
	if there, err := os.ReadDir(folder); err == nil && len(there) > 0 {
		return nil, fault.New(fault.InvalidConfig, "the folder %s is not empty", o.Folder).WithHint("name one that is not there yet")
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	source, err := relative(folder, o.Source)
	if err != nil {
		return nil, err
	}
	v := values{Name: nameOf(folder), Go: minor(line), Source: source, Stepjet: o.Stepjet, GoWorker: o.Language == Go}
	made := map[string][]byte{}
	var names []string
	for _, f := range files(o.Language) {
		if made[f.name], err = f.text(v); err != nil {
			return nil, err
		}
		names = append(names, f.name)
	}
	if o.Language == Go {
		made["go.mod"] = fmt.Appendf(nil, "module example.com/%s\n\ngo %s\n", v.Name, line)
		made["go.work"] = fmt.Appendf(nil, "go %s\n\nuse (\n\t.\n\t%s\n)\n", line, quoted(source))
		names = append(names, "go.mod", "go.work")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(folder, name), made[name], 0o644); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// text is what stands in a file.
func (f file) text(v values) ([]byte, error) {
	raw, err := fs.ReadFile(f.from, f.path)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(f.name, "package") { // package.json and its lock
		return bytes.ReplaceAll(raw, []byte(`"name": "stepjet-worker"`), []byte(`"name": "`+v.Name+`"`)), nil
	}
	if !f.words {
		return raw, nil
	}
	t, err := template.New(f.name).Option("missingkey=error").Parse(string(raw))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, v)
	return b.Bytes(), err
}

var goDirective = regexp.MustCompile(`(?m)^go (\d+\.\d+(?:\.\d+)?)$`)

// goLine returns which Go the source asks for, and refuses a folder that is not Stepjet's.
func goLine(source string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if source == "" || err != nil || !bytes.HasPrefix(raw, []byte("module "+module+"\n")) {
		return "", fault.New(fault.InvalidConfig, "Stepjet's source is not in %q", source).
			WithHint("say where its clone lies: --stepjet DIR; the module is not published yet")
	}
	m := goDirective.FindSubmatch(raw)
	if m == nil {
		return "", fault.New(fault.InvalidConfig, "%s does not say which Go it needs", filepath.Join(source, "go.mod"))
	}
	return string(m[1]), nil
}

// minor is a version without its last number, as images of Go are named.
func minor(line string) string {
	parts := strings.SplitN(line, ".", 3)
	return strings.Join(parts[:2], ".")
}

// relative is how the folder names the source: so that both can be moved together.
func relative(folder, source string) (string, error) {
	at, err := filepath.Abs(source)
	if err != nil {
		return "", err
	}
	way, err := filepath.Rel(folder, at)
	if err != nil { // another disk's
		return filepath.ToSlash(at), nil
	}
	return filepath.ToSlash(way), nil
}

// quoted is a path as go.work takes it.
func quoted(path string) string {
	if strings.ContainsAny(path, " \"'`()[]{},") {
		return fmt.Sprintf("%q", path)
	}
	return path
}

var unnamed = regexp.MustCompile(`[^a-z0-9]+`)

// nameOf makes a name of a folder's, for what is called after it: a module, a package of npm, containers.
func nameOf(folder string) string {
	name := strings.Trim(unnamed.ReplaceAllString(strings.ToLower(filepath.Base(folder)), "-"), "-")
	if name == "" {
		return "worker"
	}
	return name
}
