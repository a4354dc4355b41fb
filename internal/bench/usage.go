package bench

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of the CPU times in /proc, fixed at 100 a second for user space on Linux.
const clockTick = 10 * time.Millisecond

// cpuTime returns the CPU time, user and system, that a process has used; zero where /proc doesn't tell.
func cpuTime(pid int) time.Duration {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The second field is the command in brackets and may hold spaces.
	_, rest, _ := strings.Cut(string(raw), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * clockTick
}

// peakMB returns the most resident memory of a process so far, in MiB; zero where /proc doesn't tell.
func peakMB(pid int) float64 { return memoryMB(pid, "VmHWM") }

// residentMB returns the resident memory of a process, in MiB; zero where /proc doesn't tell.
func residentMB(pid int) float64 { return memoryMB(pid, "VmRSS") }

func memoryMB(pid int, name string) float64 {
	kb, _ := strconv.ParseFloat(strings.TrimSuffix(field(fmt.Sprintf("/proc/%d/status", pid), name), " kB"), 64)
	return kb / 1024
}

// MiB tells the memory of several processes.
func MiB(by map[string]float64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%s %.0f MiB", name, by[name]))
	}
	return strings.Join(parts, ", ")
}

// forgetPeak lets this process's peak memory count from now on: before, it held a server and all the rest.
func forgetPeak() {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // where that can't be written, the peak is only too high
}

// Usage is the CPU time that all processes have used, those that ended included.
func (w *World) Usage() time.Duration {
	total := w.spent + cpuTime(os.Getpid())
	for _, p := range w.procs {
		total += cpuTime(p.pid())
	}
	return total
}

// Memory is the most resident memory so far, in MiB, by process.
func (w *World) Memory() map[string]float64 {
	name := "all in one"
	if w.Layout.Separate {
		name = "client"
	}
	all := maps.Clone(w.peaks)
	all[name] = peakMB(os.Getpid())
	for name, p := range w.procs {
		all[name] = max(all[name], peakMB(p.pid()))
	}
	return all
}

// Resident is the memory that each process holds now, in MiB.
func (w *World) Resident() map[string]float64 {
	all := map[string]float64{}
	for name, p := range w.procs {
		all[name] = residentMB(p.pid())
	}
	return all
}

// Heap is how many bytes the heap of a process of the world's keeps, once what nobody needs is gone.
func (w *World) Heap(ctx context.Context, name string) (uint64, error) {
	return w.procs[name].heap(ctx)
}

// Machine names what the figures were measured on.
func Machine() string {
	model := field("/proc/cpuinfo", "model name")
	if model == "" {
		model = runtime.GOARCH
	}
	return fmt.Sprintf("%d cores of %s, %s, %s/%s",
		runtime.NumCPU(), model, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func field(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if key, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
