package kv_test

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// benchBody has the size of a usual result.
var benchBody = make([]byte, 200)

const benchInflight = 1024

// BenchmarkCreatePipelined is the store's own way of writing records, many on their way at a time. It includes the
// server's work, which runs in the same process.
func BenchmarkCreatePipelined(b *testing.B) {
	s := setup(b, kv.Config{})
	a := subjects.Attempt{Run: subjects.NewRun("t", "r"), Generation: 1, Tool: "tool", Number: 1}
	room := make(chan struct{}, benchInflight)
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		room <- struct{}{}
		wg.Add(1)
		a.Step = strconv.Itoa(i)
		s.Ledger.CreateAsync(context.Background(), subjects.StepRecord(a, 1), nil, benchBody, nil, func(d kv.Decision, _ uint64, err error) {
			if d != kv.Written || err != nil {
				b.Errorf("%v %v", d, err)
			}
			<-room
			wg.Done()
		})
	}
	wg.Wait()
}

// BenchmarkPublishMsgAsync is the same by the library's own asynchronous publish.
func BenchmarkPublishMsgAsync(b *testing.B) {
	s := setup(b, kv.Config{})
	js, err := jetstream.New(s.Conn(), jetstream.WithPublishAsyncMaxPending(benchInflight))
	require.NoError(b, err)
	a := subjects.Attempt{Run: subjects.NewRun("t", "r"), Generation: 1, Tool: "tool", Number: 1}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		a.Step = strconv.Itoa(i)
		m := &nats.Msg{Subject: subjects.StepRecord(a, 1), Data: benchBody, Header: nats.Header{
			"Nats-Expected-Last-Subject-Sequence": {"0"},
		}}
		_, err := js.PublishMsgAsync(m)
		require.NoError(b, err)
	}
	<-js.PublishAsyncComplete()
}

// BenchmarkCreateOne is the way of a single record, from call to decision.
func BenchmarkCreateOne(b *testing.B) {
	s := setup(b, kv.Config{})
	a := subjects.Attempt{Run: subjects.NewRun("t", "r"), Generation: 1, Tool: "tool", Number: 1}
	ctx := context.Background()
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		a.Step = strconv.Itoa(i)
		d, _, err := s.Ledger.Create(ctx, subjects.StepRecord(a, 1), nil, benchBody, nil)
		if d != kv.Written || err != nil {
			b.Fatal(d, err)
		}
	}
}
