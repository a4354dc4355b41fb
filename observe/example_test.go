package observe_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/observe"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// meter counts what a page of metrics would show. It is told by a client, an orchestrator and a worker at a time.
type meter struct {
	observe.None // what it doesn't count

	mu sync.Mutex
	n  map[string]int
}

func (m *meter) count(what string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n[fmt.Sprintf(what, args...)]++
}

func (m *meter) OnSubmit(observe.Submit)     { m.count("plans submitted") }
func (m *meter) OnExecute(e observe.Execute) { m.count("executions of %s", e.Tool) }
func (m *meter) OnFinish(e observe.Finish)   { m.count("runs %s", e.Status) }
func (m *meter) OnRecord(e observe.Record) {
	if e.Again {
		m.count("retries of %s after %s", e.Tool, e.Err.Code)
	}
}

func Example() {
	srv, err := embedded.Start(embedded.Options{}) // stands in for a server that runs elsewhere
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Shutdown()
	nc, err := nats.Connect("", nats.InProcessServer(srv.InProcess()))
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()

	m := &meter{n: map[string]int{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	o, err := orchestrator.New(nc, orchestrator.Config{Observer: m})
	if err != nil {
		log.Fatal(err)
	}
	go func() { done <- o.Run(ctx) }()
	<-o.Ready()

	w, err := worker.New(nc, worker.Config{Observer: m})
	if err != nil {
		log.Fatal(err)
	}
	worker.Handle(w, "double", func(ctx context.Context, in struct {
		N int `json:"n"`
	}) (int, error) {
		if info, _ := worker.InfoFrom(ctx); info.Attempt == 1 && info.Step == "b" {
			return 0, errors.New("not today")
		}
		return 2 * in.N, nil
	}, worker.Contract(tool.Orchestration{Retry: &tool.Retry{MaxAttempts: 2}}))
	go func() { done <- w.Run(ctx) }()
	<-w.Ready()

	c, err := client.New(ctx, nc, client.Config{Observer: m})
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.Run(ctx, []byte(`{"steps":[
		{"id":"a","tool":"double","arguments":{"n":21}},
		{"id":"b","tool":"double","arguments":{"n":"$ref:a"}}]}`), client.SubmitOptions{})
	if err != nil {
		log.Fatal(err)
	}

	c.Close()
	cancel()
	fmt.Println(<-done, <-done) // by now the meter has been told everything
	for what, n := range m.n {
		fmt.Println(n, what)
	}
	// Unordered output:
	// <nil> <nil>
	// 1 plans submitted
	// 3 executions of double
	// 1 retries of double after tool_failed
	// 1 runs succeeded
}
