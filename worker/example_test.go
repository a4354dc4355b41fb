package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// WeatherIn is what the tool takes; its JSON Schema is inferred from it.
type WeatherIn struct {
	Location string `json:"location" jsonschema:"the city to look up"`
}

// WeatherOut is what it returns.
type WeatherOut struct {
	Temp float64 `json:"temp"`
}

// A typed tool is a plain function.
func ExampleHandle() {
	demo(func(w *worker.Worker) {
		worker.Handle(w, "get_weather", func(_ context.Context, in WeatherIn) (WeatherOut, error) {
			if in.Location != "Tokyo" {
				return WeatherOut{}, fmt.Errorf("no station in %s", in.Location)
			}
			return WeatherOut{Temp: 21.5}, nil
		}, worker.Description("the temperature in a city"))
	}, "get_weather", `{"location":"Tokyo"}`, `{"location":"Atlantis"}`, `{"city":"Tokyo"}`)
	// Output:
	// {"temp":21.5}
	// tool_failed: no station in Atlantis (retryable: true)
	// invalid_arguments (retryable: false)
}

// An error that can't be helped by trying again is marked so; the step is not retried, whatever its contract says.
func ExampleTerminal() {
	errClosed := errors.New("the account is closed")
	demo(func(w *worker.Worker) {
		worker.Handle(w, "transfer", func(context.Context, struct{}) (string, error) {
			return "", worker.Terminal(errClosed)
		})
	}, "transfer", `{}`)
	// Output:
	// tool_terminal: the account is closed (retryable: false)
}

// A handler learns from its context which step it runs. The key is the same for every attempt: hand it to whatever has
// the effect.
func ExampleInfoFrom() {
	demo(func(w *worker.Worker) {
		worker.Handle(w, "charge", func(ctx context.Context, _ struct{}) (map[string]any, error) {
			info, _ := worker.InfoFrom(ctx)
			return map[string]any{"attempt": info.Attempt, "run": info.Run, "step": info.Step}, nil
		})
	}, "charge", `{}`)
	// Output:
	// {"attempt":1,"run":"order-42","step":"s1"}
}

// Middleware wraps every tool of a worker.
func ExampleWorker_Use() {
	demo(func(w *worker.Worker) {
		w.Use(func(next worker.Handler) worker.Handler {
			return func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
				info, _ := worker.InfoFrom(ctx)
				fmt.Printf("calling %s with %s\n", info.Tool, args)
				return next(ctx, args)
			}
		})
		worker.Handle(w, "greet", func(context.Context, map[string]any) (string, error) { return "hello", nil })
	}, "greet", `{"name":"Ada"}`)
	// Output:
	// calling greet with {"name":"Ada"}
	// "hello"
}

// demo runs a worker on a server of its own and prints what each call came to. The orchestrator's part, which is to
// register tools, send steps and read records, is played by the example itself.
func demo(tools func(*worker.Worker), tool string, calls ...string) {
	ctx, cancel := context.WithCancel(context.Background())
	srv, err := embedded.Start(embedded.Options{})
	check(err)
	defer srv.Shutdown()
	nc, err := kv.Connect(ctx, kv.ConnectOptions{InProcess: srv.InProcess()})
	check(err)
	defer nc.Close()
	store, err := kv.Setup(ctx, nc, kv.Config{})
	check(err)
	defer store.Close()
	_, err = nc.Subscribe(subjects.RegisterFilter, func(m *nats.Msg) {
		t, err := store.Registry.Register(ctx, m.Data)
		check(err)
		body, err := json.Marshal(t)
		check(err)
		check(m.Respond(body))
	})
	check(err)

	w, err := worker.New(nc, worker.Config{})
	check(err)
	tools(w)
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	<-w.Ready()
	for i, args := range calls {
		r := call(ctx, store, tool, i+1, args, nil)
		if r.Asks != nil { // somebody chooses the first
			choices, _ := json.Marshal(r.Asks.Choices)
			fmt.Printf("asks: %s %s\n", r.Asks.Question, choices)
			r = call(ctx, store, tool, i+1, args, &wire.Reply{Attempt: 1, Answer: r.Asks.Choices[0], State: r.Asks.State})
		}
		fmt.Println(said(r))
	}
	cancel()
	check(<-ended)
}

// call sends a step and waits for its record. reply is to what it asked; nil for nothing.
func call(ctx context.Context, store *kv.Store, tool string, n int, args string, reply *wire.Reply) wire.Result {
	a := subjects.Attempt{Run: subjects.NewRun("default", "order-42"), Generation: 1, Tool: tool, Step: fmt.Sprint("s", n), Number: 1}
	if reply != nil {
		a.Number = 2
	}
	record := subjects.StepRecord(a, store.Ledger.Shards())
	sub, err := store.Conn().SubscribeSync(record)
	check(err)
	registered, err := store.Registry.Tool(ctx, tool)
	check(err)
	h := wire.Step{Result: record, Key: a.Key(), Attempt: a.Number, MayAsk: 16, Reply: reply}.Header()
	store.Queue.DispatchAsync(ctx, kv.Dispatch{Attempt: a, Shard: registered.Shard, Header: h, Body: []byte(args)}, check)
	m, err := sub.NextMsgWithContext(ctx)
	check(err)
	return wire.ParseResult(m.Header, m.Data)
}

// said puts a record into words.
func said(r wire.Result) string {
	if r.Error == nil && r.Type != "" {
		return fmt.Sprintf("%s (a %s; a planner reads %q)", r.Body, r.Type, r.Planner)
	}
	if r.Error == nil {
		return string(r.Body)
	}
	text := string(r.Error.Code)
	if r.Error.Code != "invalid_arguments" {
		text += ": " + r.Error.Message
	}
	return fmt.Sprintf("%s (retryable: %v)", text, r.Error.Retryable)
}

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// Shop is a value whose methods are tools.
type Shop struct{ prices map[string]float64 }

// Price takes a context first, so it becomes a tool.
func (s Shop) Price(_ context.Context, in struct {
	Item string `json:"item"`
}) (float64, error) {
	p, known := s.prices[in.Item]
	if !known {
		return 0, worker.Terminal(fmt.Errorf("no %s here", in.Item))
	}
	return p, nil
}

// User is what a tool finds.
type User struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

// A result with two readers: references of a plan and the outcome have the artifact, the planner of an agent reads the
// text, and the type says what the agent keeps.
func ExampleResult() {
	demo(func(w *worker.Worker) {
		worker.Handle(w, "find_user", func(_ context.Context, in struct {
			Name string `json:"name"`
		}) (worker.Result, error) {
			u := User{ID: 7, Name: in.Name}
			return worker.Result{Text: "found " + u.Name, Artifact: u, Type: "crm.User"}, nil
		})
	}, "find_user", `{"name":"Ann"}`)
	// Output:
	// {"id":7,"name":"Ann"} (a crm.User; a planner reads "found Ann")
}

// The methods of a value are tools, each under its name.
func ExampleMethods() {
	demo(func(w *worker.Worker) {
		worker.Methods(w, Shop{map[string]float64{"pen": 1.5}}, worker.MethodOptions{
			Name:    func(method string) string { return "shop_" + worker.SnakeCase(method) },
			Options: func(string) []worker.Option { return []worker.Option{worker.Description("what an item costs")} },
		})
	}, "shop_price", `{"item":"pen"}`, `{"item":"ink"}`)
	// Output:
	// 1.5
	// tool_terminal: no ink here (retryable: false)
}
