package arch_test

import (
	"go/ast"
	"go/build/constraint"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testCommand is a "go test" that a target runs.
type testCommand struct {
	line     string
	tags     map[string]bool // with "race" where the race detector is on
	run      *regexp.Regexp  // nil for all tests
	packages []string        // folders below the module's root
}

// takes tells whether the command runs a test of a package, in a file with a constraint, nil for none.
func (c testCommand) takes(pkg, test string, of constraint.Expr) bool {
	return slices.Contains(c.packages, pkg) && (c.run == nil || c.run.MatchString(test)) && (of == nil || of.Eval(func(tag string) bool {
		return c.tags[tag] || tag == runtime.GOOS || tag == runtime.GOARCH || tag == "unix" && runtime.GOOS != "windows"
	}))
}

// valued are the flags of "go test" that a target gives with their value as a word of its own.
var valued = []string{"-timeout", "-parallel", "-p", "-count", "-bench", "-run", "-tags"}

// testCommands returns what a line of a shell runs as "go test".
func testCommands(t *testing.T, line string) []testCommand {
	t.Helper()
	var all []testCommand
	for _, part := range regexp.MustCompile(`&&|;|[()]`).Split(unquoted(line), -1) {
		words := strings.Fields(part)
		if len(words) < 2 || words[0] != "go" || words[1] != "test" {
			continue
		}
		c := testCommand{line: line, tags: map[string]bool{}}
		for i := 2; i < len(words); i++ {
			word, value := words[i], ""
			if slices.Contains(valued, word) && i+1 < len(words) {
				i++
				value = words[i]
			}
			switch {
			case word == "-race":
				c.tags["race"] = true
			case word == "-tags":
				c.tags[value] = true
			case word == "-run":
				c.run = regexp.MustCompile(hidden.Replace(value))
			case !strings.HasPrefix(word, "-"):
				c.packages = append(c.packages, strings.TrimPrefix(strings.TrimPrefix(word, "./"), module+"/"))
			}
		}
		all = append(all, c)
	}
	return all
}

// unquoted hides what separates commands where it stands between quotes; hidden shows it again.
func unquoted(line string) string {
	return regexp.MustCompile(`'[^']*'`).ReplaceAllStringFunc(line, func(quoted string) string {
		return strings.NewReplacer("(", "\x01", ")", "\x02").Replace(strings.Trim(quoted, "'"))
	})
}

var hidden = strings.NewReplacer("\x01", "(", "\x02", ")")

// linesOfCI returns the lines of shell that .ci/run comes to: what its targets would run, and the scripts that they call.
func linesOfCI(t *testing.T) []string {
	t.Helper()
	script, err := os.ReadFile("../../.ci/run")
	require.NoError(t, err)
	args := []string{"-n", "--no-print-directory", "-C", "../..", "GO=go"}
	for _, target := range regexp.MustCompile(`(?m)^make (\S+)$`).FindAllStringSubmatch(string(script), -1) {
		args = append(args, target[1])
	}
	cmd := exec.CommandContext(t.Context(), "make", args...)
	for _, v := range os.Environ() { // a make that runs this test has its own say in these
		if name, _, _ := strings.Cut(v, "="); name != "MAKEFLAGS" && name != "MFLAGS" && name != "MAKELEVEL" {
			cmd.Env = append(cmd.Env, v)
		}
	}
	printed, err := cmd.Output()
	require.NoError(t, err, "make %v", args)
	var all []string
	for line := range strings.Lines(string(printed)) {
		all = append(all, line)
		if file, _, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasSuffix(file, ".sh") {
			text, err := os.ReadFile(path.Join("../..", file))
			require.NoError(t, err)
			all = append(all, slices.Collect(strings.Lines(strings.ReplaceAll(string(text), "${GO:-go}", "go")))...)
		}
	}
	return all
}

// TestEveryTestIsRun: each test of the repository is run by some target of .ci/run, whatever its build constraint: with the
// race detector or without, with a tag of its own.
func TestEveryTestIsRun(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("there is no make to ask")
	}
	var commands []testCommand
	for _, line := range linesOfCI(t) {
		commands = append(commands, testCommands(t, line)...)
	}
	seen := map[string]int{} // tests by what their files are constrained to
	for _, s := range sources(t) {
		if !s.test || outside(s.pkg) {
			continue
		}
		of := constrained(t, s)
		for _, test := range testsOf(s) {
			if of != nil {
				seen[of.String()]++
			}
			if !slices.ContainsFunc(commands, func(c testCommand) bool { return c.takes(s.pkg, test, of) }) {
				t.Errorf("%s: no target that .ci/run runs executes %s: name its package in one of the Makefile, with what its build constraint wants", path.Join(s.pkg, s.name), test)
			}
		}
	}
	for _, tag := range []string{"!race", "promtool", "typescript"} {
		require.NotZero(t, seen[tag], "no test is constrained to %s: %v", tag, slices.Sorted(maps.Keys(seen)))
	}
}

// outside tells whether a folder belongs to another module, whose own checks run it.
func outside(pkg string) bool {
	for ; pkg != "."; pkg = path.Dir(pkg) {
		if _, err := os.Stat(filepath.Join("../..", pkg, "go.mod")); err == nil {
			return true
		}
	}
	return false
}

// constrained returns a file's build constraint, nil for none.
func constrained(t *testing.T, s source) constraint.Expr {
	t.Helper()
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			if c.Pos() < s.file.Package && constraint.IsGoBuild(c.Text) {
				expr, err := constraint.Parse(c.Text)
				require.NoError(t, err, "%s/%s", s.pkg, s.name)
				return expr
			}
		}
	}
	return nil
}

// testsOf returns the names of what "go test" runs of a file.
func testsOf(s source) []string {
	var all []string
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if ok && f.Recv == nil && f.Name.Name != "TestMain" && regexp.MustCompile(`^(Test|Fuzz|Example)`).MatchString(f.Name.Name) {
			all = append(all, f.Name.Name)
		}
	}
	return all
}

func TestCommandsOfTestsAreRead(t *testing.T) {
	t.Parallel()
	all := testCommands(t, `(cd .. && go test -race -tags a -count 1 -run '^(TestA|TestB)$' ./x `+module+`/y) && go build ./z`)
	require.Len(t, all, 1)
	not, _ := constraint.Parse("//go:build !race")
	with, _ := constraint.Parse("//go:build a && unix")
	require.True(t, all[0].takes("x", "TestA", nil))
	require.True(t, all[0].takes("y", "TestB", with))
	require.False(t, all[0].takes("x", "TestB", not))
	require.False(t, all[0].takes("x", "TestC", nil))
	require.False(t, all[0].takes("z", "TestA", nil))
}
