//go:build !linux

package hosted

import "os/exec"

// family is all that one program starts: here no more than its process group.
type family struct{}

func newFamily(*exec.Cmd) *family { return &family{} }

func (*family) run(cmd *exec.Cmd) error { return cmd.Run() }

func (*family) end() {}

func killTree(int) {}
