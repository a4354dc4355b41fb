// Package readme_test holds the README to its word: each piece of Go in it is a file of these folders, which is
// compiled and run.
package readme_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/internal/programs"
)

// blocks returns what the README shows in a language.
func blocks(t *testing.T, language string) (all []string) {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
	}
	require.NotEmpty(t, all)
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(raw)
}

// TestWhatTheReadmeShowsIsAFile: a snippet that is no file was never compiled, and a file that is not shown is not
// asked for.
func TestWhatTheReadmeShowsIsAFile(t *testing.T) {
	t.Parallel()
	shown := blocks(t, "go")
	var files []string
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".go" && strings.Contains(path, "/") {
			files = append(files, read(t, path))
		}
		return err
	}))
	require.ElementsMatch(t, files, shown)
	require.Contains(t, blocks(t, "json"), read(t, "../plans/weather.json"))
}

// TestTheProgramsOfTheReadmeRun starts what the README says to start, and compares what is printed with what it shows.
func TestTheProgramsOfTheReadmeRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, programs.Build(dir, "./examples/readme/worker", "./examples/readme/agent"))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	stack, err := dev.Start(ctx, dev.Options{Listen: "127.0.0.1:0"}) // what "stepjet dev" starts
	require.NoError(t, err)
	t.Cleanup(stack.Stop)
	env := append(os.Environ(), "NATS_URL="+stack.URL())

	worker := exec.CommandContext(ctx, filepath.Join(dir, "worker"))
	worker.Env = env
	said, err := worker.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, worker.Start())
	buf := make([]byte, 1024)
	n, err := said.Read(buf) // it says that it is up
	require.NoError(t, err)
	require.Contains(t, string(buf[:n]), "taking steps")

	agent := exec.CommandContext(ctx, filepath.Join(dir, "agent"))
	agent.Env = env
	agent.Stderr = os.Stderr
	for range 2 { // the run id is the idempotency key
		out, err := command(agent).Output()
		require.NoError(t, err)
		require.True(t, json.Valid(out))
		require.Contains(t, blocks(t, "text"), string(out))
	}
	require.NoError(t, worker.Process.Signal(syscall.SIGTERM))
	require.NoError(t, worker.Wait())
}

// TestTheEmptyFolderOfTheReadmeBuilds types what the README says to type in an empty folder beside the clone, up to the
// point where the program runs.
func TestTheEmptyFolderOfTheReadmeBuilds(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(root, filepath.Join(base, "stepjet")))
	dir := filepath.Join(base, "weather")
	require.NoError(t, os.Mkdir(dir, 0o755))
	for _, file := range []string{"main.go", "main_test.go"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(read(t, filepath.Join("worker", file))), 0o600))
	}
	var typed string
	for _, block := range blocks(t, "sh") {
		if strings.HasPrefix(block, "go mod init ") {
			typed = block
		}
	}
	before, _, found := strings.Cut(typed, "go run .")
	require.True(t, found, "the README has no such block any more")
	sh := exec.CommandContext(t.Context(), "bash", "-euc", before+"go vet .\ngo build -o weather .")
	sh.Dir, sh.Env = dir, append(os.Environ(), "GOWORK=", "GOFLAGS=")
	said, err := sh.CombinedOutput()
	require.NoError(t, err, "%s", said)
}

// command returns a command like c that can be started.
func command(c *exec.Cmd) *exec.Cmd {
	return &exec.Cmd{Path: c.Path, Args: c.Args, Env: c.Env, Stderr: c.Stderr}
}
