//go:build !unix

package conformance

import "os/exec"

func isolate(*exec.Cmd) {}

// There is no other signal than the one that kills.
func terminate(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
func kill(cmd *exec.Cmd)      { _ = cmd.Process.Kill() }
