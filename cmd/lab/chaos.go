package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/chaos"
)

// chaosFlags are those of "lab chaos".
type chaosFlags struct {
	scenario, namespaces, settings, results, doc string
	seconds                                      int
	seed                                         int64
	keep                                         bool
}

func chaosCommand() *cobra.Command {
	var f chaosFlags
	c := &cobra.Command{
		Use: "chaos", Short: "Run real processes under real faults and check what came out", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context()) },
	}
	fs := c.Flags()
	fs.StringVar(&f.scenario, "scenario", "", "names of scenarios, separated by commas; empty: all")
	fs.IntVar(&f.seconds, "seconds", 20, "how long each injects its faults")
	fs.Int64Var(&f.seed, "seed", time.Now().UnixNano(), "of the injections' random choices")
	fs.StringVar(&f.namespaces, "namespaces", "on",
		"on: processes in network namespaces (needs root and ip); off: on the loopback interface")
	fs.StringVar(&f.settings, "settings", "both",
		"of the programs; shipped: their own; quick: those with which a short run meets many repairs; both")
	fs.StringVar(&f.results, "json", "bench/chaos.json", "file of all results; empty: none")
	fs.StringVar(&f.doc, "doc", "docs/reliability.md", "document whose table is written anew; empty: none")
	fs.BoolVar(&f.keep, "keep", false, "keep logs and stores of scenarios with violations")
	return c
}

func (f chaosFlags) run(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o := chaos.Settings{
		Command: []string{
			self,
		},
		Seconds:    f.seconds,
		Namespaces: f.namespaces == "on",
		Seed:       f.seed,
		Keep:       f.keep,
		Out:        os.Stdout,
	}
	var rows []chaos.Row
	bad := 0
	for _, s := range chaos.Scenarios() {
		if f.scenario != "" && !strings.Contains(","+f.scenario+",", ","+s.Name+",") {
			continue
		}
		for _, o.Shipped = range []bool{false, true} {
			if o.Shipped && (s.Own || f.settings == "quick") || !o.Shipped && f.settings == "shipped" {
				continue
			}
			row, err := chaos.Run(ctx, s, o)
			if err != nil { // what the others showed is kept
				return errors.Join(fmt.Errorf("scenario %s", s.Name), err, f.write(rows))
			}
			row.Machine, row.Commit = chaos.Machine(), chaos.Commit()
			row.Print(os.Stdout)
			bad += len(row.Violations)
			rows = append(rows, row)
		}
	}
	if err := f.write(rows); err != nil || bad == 0 {
		return err
	}
	return fault.New(fault.Internal, "%d violations", bad)
}

func (f chaosFlags) write(rows []chaos.Row) error {
	if f.results == "" || len(rows) == 0 {
		return nil
	}
	all, err := chaos.Keep(f.results, rows)
	if err != nil || f.doc == "" {
		return err
	}
	return chaos.WriteTable(f.doc, all)
}
