package agentdemo

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

const (
	thisYear = 2026
	newest   = 2025 // the last year of which there are orders
	ordersOf = 1500 // orders of a year
	// missing is what is said of a year that there are no orders of.
	missing = "no orders of %d; the newest are those of %d"
)

// customers are those of the orders.
var customers = []string{"Ada", "Basil", "Cleo", "Dora", "Emil", "Frida", "Gus", "Hedda", "Ivo", "Jana", "Kurt", "Lena"}

// desk is the folder that the tools work in.
type desk struct {
	dir     string
	written atomic.Int32 // letters
}

type order struct {
	Number   string  `json:"number"`
	Customer string  `json:"customer"`
	Day      string  `json:"day"`
	Euros    float64 `json:"euros"`
}

type total struct {
	Customer string  `json:"customer"`
	Euros    float64 `json:"euros"`
	Orders   int     `json:"orders"`
}

type totals struct {
	Totals []total `json:"totals"`
}

// newDesk writes the orders of two years.
func newDesk(dir string) (*desk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	d := &desk{dir: dir}
	for _, year := range []int{newest - 1, newest} {
		var b strings.Builder
		x := uint32(year)
		for i := range ordersOf {
			x = x*1664525 + 1013904223 // the same orders each time
			fmt.Fprintf(&b, "%d-%04d,%s,%d-%02d-%02d,%d.%02d\n", year, i, customers[int(x>>16)%len(customers)],
				year, 1+i*12/ordersOf, 1+i%28, 5+x>>24, x>>8%100)
		}
		if err := os.WriteFile(d.file(year), []byte(b.String()), 0o600); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *desk) file(year int) string { return filepath.Join(d.dir, fmt.Sprintf("orders-%d.csv", year)) }

// host hosts the tools.
func (d *desk) host(w *worker.Worker) {
	yes := true
	worker.Handle(w, "read_orders", d.readOrders, worker.Description("Returns all orders of a year."),
		worker.Annotations(tool.Annotations{ReadOnlyHint: &yes}))
	worker.Handle(w, "total_by_customer", totalByCustomer, worker.Description("Adds orders up by customer, the largest total first."),
		worker.Annotations(tool.Annotations{ReadOnlyHint: &yes, IdempotentHint: &yes}))
	worker.Handle(w, "write_letter", d.writeLetter, worker.Description("Writes a letter to a customer."),
		worker.Annotations(tool.Annotations{DestructiveHint: &yes}), worker.Contract(tool.Orchestration{Approval: tool.AlwaysApprove}))
}

type year struct {
	Year int `json:"year"`
}

type orders struct {
	Orders []order `json:"orders"`
}

func (d *desk) readOrders(_ context.Context, in year) (orders, error) {
	f, err := os.Open(d.file(in.Year))
	if os.IsNotExist(err) {
		return orders{}, worker.Terminal(fmt.Errorf(missing, in.Year, newest))
	}
	if err != nil {
		return orders{}, err
	}
	defer func() { _ = f.Close() }() // it was only read
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return orders{}, err
	}
	var out orders
	for _, row := range rows {
		euros, err := strconv.ParseFloat(row[3], 64)
		if err != nil {
			return orders{}, err
		}
		out.Orders = append(out.Orders, order{row[0], row[1], row[2], euros})
	}
	return out, nil
}

func totalByCustomer(_ context.Context, in orders) (totals, error) {
	var out totals
	for _, o := range in.Orders {
		i := slices.IndexFunc(out.Totals, func(t total) bool { return t.Customer == o.Customer })
		if i < 0 {
			i, out.Totals = len(out.Totals), append(out.Totals, total{Customer: o.Customer})
		}
		out.Totals[i].Euros += o.Euros
		out.Totals[i].Orders++
	}
	slices.SortStableFunc(out.Totals, func(a, b total) int { return int(100*b.Euros) - int(100*a.Euros) })
	return out, nil
}

type letter struct {
	Customer string `json:"customer"`
	Text     string `json:"text"`
}

type writtenLetter struct {
	File string `json:"file"`
}

func (d *desk) writeLetter(_ context.Context, in letter) (writtenLetter, error) {
	d.written.Add(1)
	name := "letter-to-" + filepath.Base(in.Customer) + ".txt"
	return writtenLetter{name}, os.WriteFile(filepath.Join(d.dir, name), []byte("Dear "+in.Customer+",\n\n"+in.Text+"\n"), 0o600)
}
