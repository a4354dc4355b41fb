package kv_test

import (
	"context"
	"fmt"
	"time"

	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// A record is written once: the second writer learns that it was decided, and what stands.
func ExampleLedger_Create() {
	server, err := embedded.Start(embedded.Options{}) // any NATS server with JetStream
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Shutdown()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	nc, err := kv.Connect(ctx, kv.ConnectOptions{InProcess: server.InProcess()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer nc.Close()
	store, err := kv.Setup(ctx, nc, kv.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	run := subjects.NewRun("acme", "order 42")
	for _, plan := range []string{`{"steps":[]}`, `{"steps":["another"]}`} {
		decision, seq, err := store.Ledger.Create(ctx, store.Ledger.SubmitSubject(run), nil, []byte(plan), nil)
		fmt.Println(decision, seq, err)
	}
	record, err := store.Ledger.Read(ctx, subjects.PlanRecord(run, store.Ledger.Shards()))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(record.Subject, string(record.Data))
	// Output:
	// written 1 <nil>
	// decided 1 <nil>
	// $KV.runs_0.62.acme.order=2042.plan {"steps":[]}
}

// Fault tells what an error of NATS means, and what to do next.
func ExampleFault() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	_, err := kv.Connect(ctx, kv.ConnectOptions{URL: "nats://127.0.0.1:1"})
	fmt.Println(kv.Fault(err).Code)
	// Output: no_connection
}
