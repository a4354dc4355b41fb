package cli

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares text with a file of testdata/golden, which -update rewrites. One reviews the difference.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "go test ./internal/cli -update writes it")
	require.Equal(t, string(want), got, "go test ./internal/cli -update, and look at the difference")
}

// nowhere is the environment of a command that has neither server nor data.
func nowhere(t testing.TB) func(string) string {
	dir := t.TempDir()
	return func(name string) string {
		if name == "STEPJET_DATA" {
			return filepath.Join(dir, "none")
		}
		return ""
	}
}

// command runs a command in this process.
func command(t testing.TB, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(context.Background(), Env{
		Args: args, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs, Getenv: nowhere(t), Version: "v0.0.0-test",
	})
	return out.String(), errs.String(), code
}

// transcript runs a command and writes down all of it.
func transcript(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	stdout, stderr, code := command(t, stdin, args...)
	var b strings.Builder
	fmt.Fprintf(&b, "$ stepjet %s\n", strings.Join(args, " "))
	if stderr != "" {
		fmt.Fprintf(&b, "--- standard error\n%s", stderr)
	}
	if stdout != "" {
		fmt.Fprintf(&b, "--- standard output\n%s", stdout)
	}
	fmt.Fprintf(&b, "--- exit code %d\n\n", code)
	return b.String()
}

const examples = "../../examples/plans/"

func TestGoldenCommands(t *testing.T) {
	t.Parallel()
	tests := map[string][][]string{
		"graph": {
			{"graph", examples + "weather.json"},
			{"graph", examples + "order.json"},
			{"graph", examples + "report.json", "--format", "mermaid"},
			{"graph", examples + "order.json", "--format", "dot"},
			{"graph", examples + "partial.json", "-o", "json"},
			{"graph", examples + "partial.json", "--format", "png"},
			{"graph", "testdata/plans/malformed.json"},
			{"graph", "testdata/plans/malformed.json", "-o", "json"},
		},
		"validate": {
			{"validate", examples + "weather.json", examples + "retry.json"},
			{"validate", "--tools", "testdata/tools.json", "testdata/plans/invalid.json"},
			{"validate", "--tools", "testdata/tools.json", "-o", "json", "testdata/plans/invalid.json", "testdata/plans/malformed.json"},
			{"validate", "testdata/plans/invalid.json", "-q"},
			{"validate", "testdata/plans/absent.json"},
			{"validate", "--tools", "testdata/plans/invalid.json", examples + "weather.json"},
		},
		"values": {
			{"validate", "--tools", "../../examples/invoice/tools.json", "../../examples/invoice/plan.json"},
			{"graph", "../../examples/invoice/plan.json"},
			{"run", "--dry-run", "--tools", "../../examples/invoice/tools.json", "../../examples/invoice/plan.json"},
			{"run", "--dry-run", "--tools", "../../examples/word-problem/tools.json", "../../examples/word-problem/plan-broke.json"},
			{"validate", "testdata/plans/values.json"},
		},
		"questions": {
			{"validate", "--tools", "../../examples/approval/tools.json", "../../examples/approval/plan.json"},
			{"validate", "--tools", "../../examples/ask/tools.json", "../../examples/ask/plan.json"},
			{"validate", "--tools", "testdata/questions/tools.json", "testdata/questions/plan.json"},
			{"validate", "--tools", "testdata/questions/tools.json", "testdata/questions/plan.json", "-o", "json"},
			{"validate", "--tools", "testdata/questions/tools.json", "testdata/questions/late.json"},
			{"validate", "--tools", "testdata/questions/tools.json", "testdata/questions/within.json"},
			{"graph", "testdata/questions/plan.json"},
			{"run", "--dry-run", "--tools", "testdata/questions/tools.json", "testdata/questions/plan.json"},
			{"run", "--dry-run", "--tools", "../../examples/ask/tools.json", "../../examples/ask/plan.json"},
		},
		"dryrun": {
			{"run", "--dry-run", "--tools", "../../examples/search-fetch/tools.json", "../../examples/search-fetch/plan.json"},
			{"run", "--dry-run", examples + "weather.json"},
			{"run", "--dry-run", "--tools", "testdata/dryrun/tools.json", "testdata/dryrun/plan.json"},
			{"run", "--dry-run", "--tools", "testdata/dryrun/tools.json", "testdata/dryrun/plan.json", "-o", "json"},
			{"run", "--dry-run", "--tools", "testdata/tools.json", "testdata/plans/invalid.json"},
			{"run", "--dry-run", "-o", "json", "testdata/plans/malformed.json"},
			{"run", "--dry-run", "testdata/plans/absent.json"},
		},
		"usage": {
			{"validate"},
			{"graph", "a.json", "b.json"},
			{"frobnicate"},
			{"bench", "cluster"},
			{"bench", "--for", "0s"},
			{"evl", "x"},
			{"tools", "cal"},
			{"list", "--sort", "x"},
			{"list", "--status", "done"},
			{"list", "-o", "yaml"},
			{"tools", "call"},
			{"get", "--wait", "soon", "r"},
			{"retry"},
			{"dead", "retry", "r"},
			{"dead", "retry", "--all", "r"},
			{"dead", "retry", "r", "a", "--tool", "x"},
			{"dead", "shw", "r", "a"},
			{"run", examples + "weather.json", "--with", "user"},
			{"run", examples + "weather.json", "--secret", "hunter2"},
			{"run", examples + "weather.json", "--secret", "hunt er=2"},
			{"run", examples + "weather.json", "--with", "a user=ada"},
			{"run", examples + "weather.json", "--with", "Tokyo:user=ada"},
			{"run", examples + "weather.json", "--secret", "token=@env:ABSENT_TOKEN"},
			{"run", examples + "weather.json", "--secret", "token=@file:testdata/absent"},
			{"run", examples + "weather.json", "--with-file", "testdata/tools.json"},
		},
		"no_server": {
			{"list", "--server", "nats://127.0.0.1:1"},
			{"list", "--server", "nats://ada:secret@127.0.0.1:1"},
			{"submit", "--server", "nats://127.0.0.1:1", examples + "weather.json"},
			{"run", "--server", "nats://127.0.0.1:1", "--tools", "testdata/tools.json", examples + "weather.json"},
			{"list", "--creds", "testdata/absent.creds", "--server", "nats://127.0.0.1:1"},
		},
	}
	for name, commands := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			for _, args := range commands {
				b.WriteString(transcript(t, "", args...))
			}
			golden(t, name, b.String())
		})
	}
}

func TestGoldenHelp(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, args := range []string{
		"", "run", "submit", "validate", "graph", "eval", "list", "get", "watch", "cancel", "retry",
		"dead", "dead list", "dead show", "dead retry", "dead remove", "dev", "doctor", "provision", "tools", "tools list",
		"tools show", "tools call", "version",
	} {
		text := transcript(t, "", append(strings.Fields(args), "--help")...)
		if args != "" { // the flags that every command has are shown once
			text, _, _ = strings.Cut(text, "\nGlobal Flags:")
			text += "\n"
		}
		b.WriteString(text)
	}
	golden(t, "help", b.String())
	for line := range strings.Lines(b.String()) {
		require.LessOrEqual(t, columns(strings.TrimSuffix(line, "\n")), 120, line)
	}
}

func TestEveryCommandHasExamples(t *testing.T) {
	t.Parallel()
	a := &app{env: Env{Getenv: nowhere(t)}}
	root := a.root()
	commands := root.Commands()
	for i := 0; i < len(commands); i++ {
		c := commands[i]
		commands = append(commands, c.Commands()...)
		if c.Hidden {
			continue // it is for another process, not for a person
		}
		require.NotEmpty(t, c.Short, c.CommandPath())
		require.Contains(t, c.Example, "stepjet", c.CommandPath())
	}
	require.GreaterOrEqual(t, len(commands), 14)
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		stdout, _, code := command(t, "", "completion", shell)
		require.Zero(t, code)
		require.Contains(t, stdout, "stepjet")
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	stdout, _, code := command(t, "", "version")
	require.Zero(t, code)
	require.Contains(t, stdout, "stepjet v0.0.0-test")
	stdout, _, _ = command(t, "", "version", "-o", "json")
	require.Contains(t, stdout, `"version":"v0.0.0-test"`)
}

func TestStandardInput(t *testing.T) {
	t.Parallel()
	stdout, _, code := command(t, `{"steps":[{"id":"a","tool":"echo"}]}`, "validate", "-q", "-o", "json", "-")
	require.Zero(t, code)
	require.JSONEq(t, `{"file":"-","valid":true,"problems":[],"warnings":[]}`, stdout)
	stdout, _, code = command(t, `{"steps":[{"id":"a","tool":"add","arguments":{"a":1}}]}`, "run", "--dry-run", "-q", "-")
	require.Equal(t, exitInvalid, code)
	require.Contains(t, stdout, "standard input  invalid")
	stdout, _, code = command(t, `{"steps":[{"id":"a","tool":"echo"}]}`, "graph", "-")
	require.Zero(t, code)
	require.Equal(t, "1 step · 1 wave\n\nwave 1  a  echo\n", stdout)
}

// A plan of any size is read only as far as plans go.
func TestValidateBoundsWhatItReads(t *testing.T) {
	t.Parallel()
	stdout, _, code := command(t, `{"steps":[{"id":"a","tool":"echo","thought":"`+strings.Repeat("x", 8<<20)+`"}]}`, "validate", "-q", "-o", "json", "-")
	require.Equal(t, exitInvalid, code)
	require.Contains(t, stdout, "limit_exceeded")
	require.Less(t, len(stdout), 2048)
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(testMain(m))
}
