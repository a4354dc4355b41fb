//go:build !unix

package hosted

import "os/exec"

// isolate does nothing where there are no process groups: the end of the context kills the program alone.
func isolate(*exec.Cmd) {}

func killGroup(*exec.Cmd) {}
