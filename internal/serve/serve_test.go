package serve_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stepjet/stepjet/internal/cli"
	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/internal/serve"
)

// asProgram names the program that the test binary is.
const asProgram = "SERVE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	switch os.Getenv(asProgram) {
	case "orchestrator":
		os.Exit(daemon.Execute(serve.Orchestrator("orchestrator")))
	case "toolworker":
		os.Exit(daemon.Execute(serve.Worker("toolworker")))
	case "stepjet":
		os.Exit(cli.Main(context.Background(), cli.Env{
			Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
		}))
	}
	os.Exit(m.Run())
}

// The two ways to start each program.
var (
	orchestrators = []string{"orchestrator", "stepjet orchestrator"}
	workers       = []string{"toolworker", "stepjet worker"}
)

// program makes a process of a program with nothing in its environment but what is given.
func program(name string, env []string, args ...string) *exec.Cmd {
	words := strings.Fields(name)
	cmd := exec.Command(os.Args[0], append(words[1:], args...)...)
	cmd.Env = append([]string{asProgram + "=" + words[0], "PATH=" + os.Getenv("PATH")}, env...)
	return cmd
}
