package daemon

import (
	"os"
	"runtime/debug"
)

const (
	// gcPercent lets the heap grow to five times what is live before it is collected. What is live is tens of megabytes, and
	// every step makes garbage: at Go's default a tenth of the CPU went into collecting it.
	gcPercent = 400
	// softMemory is the memory, in bytes, from which on garbage is collected sooner, so that large values don't take five
	// times their size.
	softMemory = 768 << 20
)

// TuneGC sets the garbage collector for orchestrator and toolworker, unless the environment variables GOGC and GOMEMLIMIT
// say otherwise. A process with a NATS server in it has a larger heap and is better left alone.
func TuneGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softMemory)
	}
}
