package daemon

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// gcPercent lets the heap grow to five times what is live before it is collected. What is live is tens of
	// megabytes, and every step makes garbage: at Go's default a tenth of the CPU went into collecting it.
	gcPercent = 400
	// softMemory is the memory, in bytes, from which on garbage is collected sooner, so that large values don't take
	// five times their size.
	softMemory = 768 << 20
)

// TuneGC sets the garbage collector for a program that does Stepjet's work and nothing else, unless the environment
// variables GOGC and GOMEMLIMIT say otherwise. A program that merely has Stepjet in it sets its own.
func TuneGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softMemory)
		afterCollection(raiseLimit)
	}
}

// raiseLimit keeps the limit at half more than what is live: closer to it, the collector would hardly do anything else.
func raiseLimit() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	debug.SetMemoryLimit(max(softMemory, int64(live[0].Value.Uint64()/2*3)))
}

// afterCollection calls do after each garbage collection, from now on.
func afterCollection(do func()) {
	type leaf struct{ _ *int } // has a pointer, so it is collected by itself
	runtime.AddCleanup(&leaf{}, func(do func()) {
		do()
		afterCollection(do)
	}, do)
}
