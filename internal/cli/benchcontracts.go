package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/lab/bench"
)

func (a *app) benchContractsCommand() *cobra.Command {
	var report string
	c := &cobra.Command{
		Use:   "contracts",
		Short: "Measure tool contracts at work: limits, fairness, retries, batches, a large registry",
		Example: `  stepjet bench contracts
  stepjet bench contracts --report docs/contracts.md`,
		Args: exactly(),
		RunE: a.work(func(cmd *cobra.Command, _ []string) error { return a.benchContracts(cmd.Context(), report) }),
	}
	c.Flags().StringVar(&report, "report", "", "write the figures between their marks in a Markdown `file`")
	return c
}

func (a *app) benchContracts(ctx context.Context, report string) error {
	dir, err := os.MkdirTemp("", "stepjet-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	figures, err := bench.MeasureContracts(ctx, dir, a.log(), func(part string) { a.say("  %s", part) })
	if err != nil {
		return err
	}
	version, commit := buildOf(a.env.Version)
	figures.Time, figures.Version = a.now(), strings.TrimSpace(version+" "+commit)
	if a.json() {
		err = a.printJSON(figures)
	} else {
		_, err = fmt.Fprint(a.stdout, figures.Markdown())
	}
	if err != nil || report == "" {
		return err
	}
	return figures.Insert(report)
}
