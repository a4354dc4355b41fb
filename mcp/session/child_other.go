//go:build !unix

package session

import "os/exec"

func isolate(*exec.Cmd) {}

func bind() (release func()) { return func() {} }

func terminateGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() } // fails only where it has ended
func killGroup(cmd *exec.Cmd)      { _ = cmd.Process.Kill() }
