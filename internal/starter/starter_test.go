package starter_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/internal/programs"
	"github.com/stepjet/stepjet/internal/starter"
)

func made(t *testing.T, language string) (folder string, names []string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "My Weather")
	names, err := starter.Make(starter.Options{Folder: folder, Language: language, Source: "../..", Stepjet: "/opt/stepjet"})
	require.NoError(t, err)
	return folder, names
}

// TestTheWorkerInGoRuns does what the README of the folder says: the test, the worker, the plan.
func TestTheWorkerInGoRuns(t *testing.T) {
	t.Parallel()
	require.NoError(t, programs.Look("./stepjettest", "./worker"))
	folder, _ := made(t, starter.Go)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	env := append(os.Environ(), "GOWORK=", "GOFLAGS=")
	typed := exec.CommandContext(ctx, "bash", "-euc", "go vet .\ngo test .\ngo build -o worker .")
	typed.Dir, typed.Env = folder, env
	said, err := typed.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Contains(t, string(said), "ok  \texample.com/my-weather")

	stack, err := dev.Start(ctx, dev.Options{Listen: "127.0.0.1:0"}) // what "stepjet dev" starts
	require.NoError(t, err)
	t.Cleanup(stack.Stop)
	worker := exec.CommandContext(ctx, filepath.Join(folder, "worker"))
	worker.Env = append(os.Environ(), "NATS_URL="+stack.URL())
	errs, err := worker.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, worker.Start())
	first := make([]byte, 1024)
	n, err := errs.Read(first)
	require.NoError(t, err)
	require.Contains(t, string(first[:n]), "taking steps")

	nc, err := nats.Connect(stack.URL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	c, err := client.New(ctx, nc, client.Config{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	plan, err := os.ReadFile(filepath.Join(folder, "plan.json"))
	require.NoError(t, err)
	out, err := c.Run(ctx, plan, client.SubmitOptions{})
	require.NoError(t, err)
	results, err := out.Results.MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, `{"said":"Tokyo is 8.5 degrees warmer than London"}`, string(results))
	require.NoError(t, worker.Process.Signal(syscall.SIGTERM))
	require.NoError(t, worker.Wait())
}

// TestWhatIsMade: no value is left out, each file that a README names is there, and what npm is asked for is what the
// example is tested with. "make typescript" runs a folder for TypeScript.
func TestWhatIsMade(t *testing.T) {
	t.Parallel()
	for _, language := range []string{starter.Go, starter.TypeScript} {
		folder, names := made(t, language)
		there, err := os.ReadDir(folder)
		require.NoError(t, err)
		require.Len(t, there, len(names))
		for _, name := range names {
			raw, err := os.ReadFile(filepath.Join(folder, name))
			require.NoError(t, err)
			require.NotContains(t, string(raw), "{{", name)
			require.NotContains(t, string(raw), "<no value>", name)
			if name == "README.md" {
				require.Contains(t, string(raw), "# my-weather\n")
				for line := range strings.Lines(string(raw)) {
					cell, _, row := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
					for i, named := range strings.Split(cell, "`") {
						if row && i%2 == 1 {
							require.Contains(t, names, named)
						}
					}
				}
			}
		}
	}
	type npm struct {
		Name                          string
		Dependencies, DevDependencies map[string]string
	}
	read := func(path string) (p npm) {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, &p))
		return p
	}
	folder, _ := made(t, starter.TypeScript)
	ours, example := read(filepath.Join(folder, "package.json")), read("../../examples/typescript/package.json")
	require.Equal(t, "my-weather", ours.Name)
	require.Equal(t, "my-weather", read(filepath.Join(folder, "package-lock.json")).Name)
	ours.Name = example.Name
	require.Equal(t, example, ours)
}

// TestWhatIsInTheWayStays: nothing is written where something is, and where the source is not.
func TestWhatIsInTheWayStays(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	mine := filepath.Join(folder, "main.go")
	require.NoError(t, os.WriteFile(mine, []byte("mine"), 0o600))
	_, err := starter.Make(starter.Options{Folder: folder, Language: starter.Go, Source: "../.."})
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
	raw, err := os.ReadFile(mine)
	require.NoError(t, err)
	require.Equal(t, "mine", string(raw))

	fresh := filepath.Join(t.TempDir(), "fresh")
	_, err = starter.Make(starter.Options{Folder: fresh, Language: starter.Go, Source: t.TempDir()})
	require.ErrorContains(t, err, "--stepjet DIR")
	require.NoDirExists(t, fresh)
}
