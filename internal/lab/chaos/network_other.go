//go:build !linux

package chaos

import "github.com/stepjet/stepjet/fault"

func newNetwork() (network, error) {
	return nil, fault.New(fault.InvalidConfig, "network namespaces exist on Linux only").
		WithHint("run without them: NAMESPACES=off")
}
