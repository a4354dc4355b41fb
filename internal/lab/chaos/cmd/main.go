// Command cmd of package chaos runs scenarios and writes what came of them into docs/reliability.md. See make chaos.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/internal/lab/chaos"
)

func main() {
	if chaos.Main() {
		return
	}
	os.Exit(run())
}

func run() int {
	scenario := flag.String("scenario", "", "names of scenarios, separated by commas; empty: all")
	seconds := flag.Int("seconds", 20, "how long each injects its faults")
	seed := flag.Int64("seed", time.Now().UnixNano(), "of the injections' random choices")
	namespaces := flag.String("namespaces", "on", "on: processes in network namespaces (needs root and ip); off: on the loopback interface")
	settings := flag.String("settings", "both", "of the programs; shipped: their own; quick: those with which a short run meets many repairs; both")
	results := flag.String("json", "bench/chaos.json", "file of all results; empty: none")
	doc := flag.String("doc", "docs/reliability.md", "document whose table is written anew; empty: none")
	keep := flag.Bool("keep", false, "keep logs and stores of scenarios with violations")
	flag.Parse()
	ctx, stop := daemon.Signals(context.Background(), func() { os.Exit(daemon.ExitForced) })
	defer stop()
	self, err := os.Executable()
	if err != nil {
		return failed(err)
	}
	o := chaos.Settings{Command: []string{self}, Seconds: *seconds, Namespaces: *namespaces == "on", Seed: *seed, Keep: *keep, Out: os.Stdout}
	var rows []chaos.Row
	bad := false
	for _, s := range chaos.Scenarios() {
		if *scenario != "" && !strings.Contains(","+*scenario+",", ","+s.Name+",") {
			continue
		}
		for _, o.Shipped = range []bool{false, true} {
			if o.Shipped && (s.Own || *settings == "quick") || !o.Shipped && *settings == "shipped" {
				continue
			}
			row, err := chaos.Run(ctx, s, o)
			if err != nil { // what the others showed is kept
				return failed(errors.Join(fmt.Errorf("scenario %s", s.Name), err, write(rows, *results, *doc)))
			}
			row.Machine, row.Commit = chaos.Machine(), chaos.Commit()
			row.Print(os.Stdout)
			bad = bad || len(row.Violations) > 0
			rows = append(rows, row)
		}
	}
	if err := write(rows, *results, *doc); err != nil {
		return failed(err)
	}
	if bad {
		return daemon.ExitFailed
	}
	return daemon.ExitOK
}

func write(rows []chaos.Row, results, doc string) error {
	if results == "" || len(rows) == 0 {
		return nil
	}
	all, err := chaos.Keep(results, rows)
	if err != nil || doc == "" {
		return err
	}
	return chaos.WriteTable(doc, all)
}

func failed(err error) int {
	daemon.Print(os.Stderr, "chaos", err)
	return daemon.ExitCode(err)
}
