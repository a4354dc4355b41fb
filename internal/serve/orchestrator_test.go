package serve_test

import (
	"bytes"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// A sweep interval that is none ends the program at once, whether there is a server or not, and says where it came
// from.
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
		for _, name := range orchestrators {
			t.Run(name+", "+c.name, func(t *testing.T) {
				t.Parallel()
				args := append([]string{"--url", "nats://127.0.0.1:1", "--wait-for-nats", "10m"}, c.args...)
				cmd := program(name, []string{"STEPJET_SWEEP_EVERY=" + c.env}, args...)
				var said bytes.Buffer
				cmd.Stderr = &said
				var exit *exec.ExitError
				require.ErrorAs(t, cmd.Run(), &exit)
				require.Equal(t, 2, exit.ExitCode(), said.String())
				require.Contains(t, said.String(), name+": invalid_config")
				require.Contains(t, said.String(), c.says)
			})
		}
	}
}
