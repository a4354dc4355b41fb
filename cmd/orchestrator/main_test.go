package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// asProgram makes the test binary be the program.
const asProgram = "ORCHESTRATOR_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// A sweep interval that is none ends the program at once, whether there is a server or not, and says where it came from.
func TestSweepIntervals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, env, says string
		args            []string
	}{
		{"no duration in the environment", "often", "STEPJET_SWEEP_EVERY", nil},
		{"no unit in the environment", "10", "STEPJET_SWEEP_EVERY", nil},
		{"too short in the environment", "50ms", "sweep interval 50ms is shorter than 100ms", nil},
		{"less than none in the environment", "-1s", "sweep interval -1s is shorter than 100ms", nil},
		{"no duration on the command line", "", "--sweep-every", []string{"--sweep-every", "often"}},
		{"too short on the command line, which wins", "1s", "sweep interval 1ms is shorter than 100ms", []string{"--sweep-every", "1ms"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], append([]string{"--url", "nats://127.0.0.1:1", "--wait-for-nats", "10m"}, c.args...)...)
			cmd.Env = []string{asProgram + "=1", "PATH=" + os.Getenv("PATH"), "STEPJET_SWEEP_EVERY=" + c.env}
			var said bytes.Buffer
			cmd.Stderr = &said
			var exit *exec.ExitError
			require.ErrorAs(t, cmd.Run(), &exit)
			require.Equal(t, 2, exit.ExitCode(), said.String())
			require.Contains(t, said.String(), "invalid_config")
			require.Contains(t, said.String(), c.says)
		})
	}
}
