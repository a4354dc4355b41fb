// Shop hosts two tools of a shop: get_price only looks something up, place_order has an effect.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

type Item struct {
	Name string `json:"item" jsonschema:"what to look up, for example lamp"`
}

type Price struct {
	Item  string `json:"item"`
	Cents int    `json:"cents"`
}

func getPrice(_ context.Context, in Item) (Price, error) {
	cents, known := map[string]int{"lamp": 4900, "desk": 21900}[in.Name]
	if !known {
		return Price{}, worker.Terminal(fmt.Errorf("there is no %s in this shop", in.Name)) // not tried again
	}
	return Price{in.Name, cents}, nil
}

type Order struct {
	Lines []Price `json:"lines" jsonschema:"what to buy, as get_price returns it"`
}

type Receipt struct {
	ID    string `json:"order_id"`
	Cents int    `json:"total_cents"`
}

// orders are those placed, by idempotency key. A real shop stores the key with the order, in one transaction.
type orders struct {
	mu     sync.Mutex
	placed map[string]Receipt
}

// place may be called more than once for one step: its worker may die before the result is stored. The key is the same
// each time, and the second call returns what the first one did.
func (o *orders) place(ctx context.Context, in Order) (Receipt, error) {
	info, _ := worker.InfoFrom(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	if receipt, done := o.placed[info.Key]; done {
		return receipt, nil
	}
	receipt := Receipt{ID: fmt.Sprintf("order-%d", len(o.placed)+1)}
	for _, line := range in.Lines {
		receipt.Cents += line.Cents
	}
	o.placed[info.Key] = receipt
	return receipt, nil
}

// host adds the tools to a worker. The annotations are what MCP knows; a contract says the rest.
func (o *orders) host(w *worker.Worker) {
	yes := true
	worker.Handle(w, "get_price", getPrice, worker.Description("The price of an item."),
		worker.Annotations(tool.Annotations{ReadOnlyHint: &yes})) // so it is tried again after a failure
	worker.Handle(w, "place_order", o.place, worker.Description("Buys items."),
		worker.Annotations(tool.Annotations{IdempotentHint: &yes}),
		worker.Contract(tool.Orchestration{MaxConcurrency: 2, TimeoutMS: 10_000})) // over all workers and runs
}

// connect reads the same variables as Stepjet's own programs.
func connect() (*nats.Conn, error) {
	options := []nats.Option{nats.Name("shop"), nats.MaxReconnects(-1)}
	if seed := os.Getenv("NATS_NKEY"); seed != "" {
		key, err := nats.NkeyOptionFromSeed(seed)
		if err != nil {
			return nil, err
		}
		options = append(options, key)
	}
	if prefix := os.Getenv("NATS_INBOX_PREFIX"); prefix != "" {
		options = append(options, nats.CustomInboxPrefix(prefix))
	}
	return nats.Connect(cmp.Or(os.Getenv("NATS_URL"), nats.DefaultURL), options...)
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	nc, err := connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	w, err := worker.New(nc, worker.Config{Name: "shop-1", Logger: slog.Default()})
	if err != nil {
		return err
	}
	o := &orders{placed: map[string]Receipt{}}
	o.host(w)
	return w.Run(ctx) // until it is interrupted; then it finishes what it has
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
