package daemon

import (
	"os"
	"runtime/debug"
)

// gcPercent lets the heap grow to five times what is live before it is collected. What is live is tens of megabytes, and
// every step makes garbage: at Go's default a tenth of the CPU went into collecting it.
const gcPercent = 400

// TuneGC sets the garbage collector for orchestrator and toolworker, unless the environment variable GOGC says
// otherwise. A process with a NATS server in it has a larger heap and is better left alone.
func TuneGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
