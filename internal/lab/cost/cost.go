// Package cost measures what code costs in processor time: that of the process, whoever else works on the same machine.
package cost

import (
	"syscall"
	"time"
)

// rounds is how often something is measured. The least counts: all else is what happened beside it.
const rounds = 5

// Each returns the processor time of one call, as the least of some rounds of n.
func Each(n int, call func()) time.Duration {
	least := time.Duration(1 << 62)
	for range rounds {
		before := used()
		for range n {
			call()
		}
		least = min(least, used()-before)
	}
	return least / time.Duration(n)
}

// used is the processor time that this process has had.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // there is no such system
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
