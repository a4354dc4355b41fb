package bench

import (
	"os"
	"path/filepath"
	"time"

	"github.com/stepjet/stepjet/internal/bench"
)

// Disk is what a small write with a flush costs, without JetStream.
type Disk struct {
	// P50 and P99 are milliseconds for one write of 512 bytes and its flush, one after the other.
	P50 float64 `json:"flush_p50_ms"`
	P99 float64 `json:"flush_p99_ms"`
}

// measureDisk appends to a file and flushes it, as a store with sync_interval always does.
func measureDisk(dir string) (d Disk, err error) {
	name := filepath.Join(dir, "flush")
	f, err := os.Create(name)
	if err != nil {
		return d, err
	}
	defer os.Remove(name)
	defer f.Close()
	block := make([]byte, 512)
	var times []float64
	for range 500 {
		start := time.Now()
		if _, err := f.Write(block); err != nil {
			return d, err
		}
		if err := f.Sync(); err != nil {
			return d, err
		}
		times = append(times, bench.MS(time.Since(start)))
	}
	return Disk{bench.Quantile(times, 0.5), bench.Quantile(times, 0.99)}, nil
}
