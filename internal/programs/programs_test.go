package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A module whose test builds a program and runs it, with a copy of this package: its verdict must not outlive a change
// of the program, and must be cached as long as there is none.
func TestAVerdictEndsWithTheProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := os.ReadFile("programs.go")
	require.NoError(t, err)
	for name, text := range map[string]string{
		"go.mod":                        "module example.test/m\n\ngo 1.24\n",
		"go.sum":                        "",
		"programs/programs.go":          string(self),
		"cmd/hello/main.go":             "package main\n\nimport \"example.test/m/words\"\n\nfunc main() { words.Say() }\n",
		"words/words.go":                "package words\n\nfunc Say() {}\n",
		"words/other.txt":               "1",
		"e2e/main_test.go":              test,
		"unused/unused.go":              "package unused\n",
		"programs/testdata/ignored.txt": "",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	require.Contains(t, run(t, dir), "ok", "the first time")
	require.Contains(t, run(t, dir), "(cached)", "nothing has changed")
	write(t, filepath.Join(dir, "unused/unused.go"), "package unused // changed\n")
	require.Contains(t, run(t, dir), "(cached)", "the program is not made of this")
	write(t, filepath.Join(dir, "words/words.go"), "package words\n\nfunc Say() { panic(\"broken\") }\n")
	require.Contains(t, run(t, dir), "FAIL")
	write(t, filepath.Join(dir, "words/words.go"), "package words\n\nfunc Say() {}\n")
	write(t, filepath.Join(dir, "words/more.go"), "package words\n\nfunc init() { panic(\"broken\") }\n")
	require.Contains(t, run(t, dir), "FAIL", "a new file counts too")
}

// test is a test as e2e and cli have one.
const test = `package e2e

import (
	"os/exec"
	"testing"

	"example.test/m/programs"
)

func TestIt(t *testing.T) {
	dir := t.TempDir()
	if err := programs.Build(dir, "./cmd/hello"); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command(dir + "/hello").Run(); err != nil {
		t.Fatal(err)
	}
}
`

// run runs the tests of a module and returns what the go command says.
func run(t *testing.T, dir string) string {
	t.Helper()
	cmd := exec.Command("go", "test", "./e2e")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(string(out), "FAIL") {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// write writes a file with a time of some seconds ago: the go command doesn't trust times that are younger than two.
func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	for _, p := range []string{path, filepath.Dir(path)} {
		info, err := os.Stat(p)
		require.NoError(t, err)
		at := info.ModTime().Add(-10_000_000_000)
		require.NoError(t, os.Chtimes(p, at, at))
	}
}
