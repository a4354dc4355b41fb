package main

import (
	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/lab/mutation"
)

func mutantsCommand() *cobra.Command {
	var o mutation.Options
	c := &cobra.Command{
		Use: "mutants", Short: "Plant one bug at a time and see the tests catch it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return mutation.Run(cmd.Context(), o) },
	}
	fs := c.Flags()
	fs.StringVar(&o.Only, "only", "", "plant only bugs whose names hold one of these `words`, separated by commas")
	fs.StringVar(&o.Report, "report", "", "write the table to this `file`")
	fs.StringVar(
		&o.Results,
		"results",
		"",
		"keep what came of each bug in this `file`, and write the table of all that it holds",
	)
	fs.BoolVar(&o.Missing, "missing", false, "plant only bugs that the file of results says nothing of")
	return c
}
