package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/lab/bench"
	"github.com/stepjet/stepjet/internal/version"
)

func contractsCommand() *cobra.Command {
	var report string
	c := &cobra.Command{
		Use:     "contracts",
		Short:   "Measure tool contracts at work: limits, fairness, retries, batches, a large registry",
		Example: "  lab contracts --report docs/contracts.md",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return contracts(cmd.Context(), report) },
	}
	c.Flags().StringVar(&report, "report", "", "write the figures between their marks in a Markdown `file`")
	return c
}

func contracts(ctx context.Context, report string) error {
	dir, err := os.MkdirTemp("", "stepjet-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	figures, err := bench.MeasureContracts(ctx, dir, logger(false), func(part string) { say("  " + part) })
	if err != nil {
		return err
	}
	figures.Time, figures.Version = time.Now(), version.String()
	if _, err := fmt.Print(figures.Markdown()); err != nil || report == "" {
		return err
	}
	return figures.Insert(report)
}
