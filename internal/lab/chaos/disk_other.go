//go:build !linux

package chaos

import "github.com/stepjet/stepjet/fault"

func errNoDisk() error {
	return fault.New(fault.InvalidConfig, "disks of their own for NATS exist on Linux only")
}

func newDisk(string, int64) error      { return errNoDisk() }
func mounting(argv []string) []string  { return argv }
func mountDisk(string, string) error   { return errNoDisk() }
func within(_ int, path string) string { return path }
func cutPower(string) error            { return errNoDisk() }
func syncDisk(string) error            { return errNoDisk() }
func fillDisk(string) error            { return errNoDisk() }
func standsStill(int) (bool, error)    { return false, errNoDisk() }
func copyDisk(string, string) error    { return errNoDisk() }
