package bench

import (
	"os"
	"path/filepath"
	"runtime/pprof"
)

// Profiles says where each process writes its profiles: <folder>/<name>.pprof. Empty: nowhere.
type Profiles struct{ CPU, Memory string }

// The flags of the command that plays a Role.
const (
	CPUProfileFlag    = "cpu-profile"
	MemoryProfileFlag = "mem-profile"
)

// flags hand the folders on to a process.
func (p Profiles) flags() []string {
	return []string{"--" + CPUProfileFlag + "=" + p.CPU, "--" + MemoryProfileFlag + "=" + p.Memory}
}

// begin starts profiling; end writes what there is.
func (p Profiles) begin(name string) (end func() error, err error) {
	if p.CPU != "" {
		f, err := create(p.CPU, name+".cpu.pprof")
		if err != nil {
			return nil, err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, err
		}
	}
	return func() error {
		if p.CPU != "" {
			pprof.StopCPUProfile()
		}
		if p.Memory == "" {
			return nil
		}
		f, err := create(p.Memory, name+".mem.pprof")
		if err != nil {
			return err
		}
		defer f.Close()
		return pprof.Lookup("allocs").WriteTo(f, 0)
	}, nil
}

func create(dir, name string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return os.Create(filepath.Join(dir, name))
}
