package kv_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/internal/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// BenchmarkFlushedCreates keeps so many creates in flight on a server that flushes before it acknowledges, one by one and
// together. CPU is that of the whole process, server included.
func BenchmarkFlushedCreates(b *testing.B) {
	for _, inflight := range []int{1, 16, 32, 64, 128, 256} {
		for _, c := range []struct {
			name string
			cfg  kv.Config
		}{{"singly", kv.Config{}}, {"together", together}} {
			b.Run(fmt.Sprintf("%d-in-flight/%s", inflight, c.name), func(b *testing.B) { flushedCreates(b, c.cfg, inflight) })
		}
	}
}

func flushedCreates(b *testing.B, cfg kv.Config, inflight int) {
	s := setupOn(b, natstest.Start(b, flushing), cfg)
	a := subjects.Attempt{Run: subjects.NewRun("t", "r"), Generation: 1, Tool: "tool", Number: 1}
	room, body := make(chan struct{}, inflight), make([]byte, 100)
	b.ResetTimer()
	before := processCPU(b)
	for i := range b.N {
		room <- struct{}{}
		a.Step = fmt.Sprint("s", i)
		h := nats.Header{subjects.HeaderVersion: {"1"}, subjects.HeaderWorker: {"bench"}}
		s.CreateAsync(b.Context(), subjects.StepRecord(a, 1), h, body, nil, func(d kv.Decision, _ uint64, err error) {
			if d != kv.Written || err != nil {
				b.Error(d, err)
			}
			<-room
		})
	}
	for range inflight {
		room <- struct{}{}
	}
	b.ReportMetric(float64(processCPU(b)-before)/float64(b.N), "cpu-ns/op")
}

// processCPU gives the CPU time that this process has used, in nanoseconds.
func processCPU(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
