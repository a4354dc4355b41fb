package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/lab/cast"
)

// castLines are what the README's terminal shows.
var castLines = []string{
	"stepjet run --run trip examples/plans/weather.json",
	"stepjet run --run stock examples/plans/partial.json",
	"stepjet get stock",
}

func castCommand() *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "cast",
		Short: "Record real commands on a terminal, and draw them as an animated SVG",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			data, err := os.MkdirTemp("", "stepjet-cast-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(data)
			bin, err := filepath.Abs("bin")
			if err != nil {
				return err
			}
			const columns, rows = 100, 26
			env := []string{
				"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + data, "STEPJET_DATA=" + data, "TERM=xterm-256color",
			}
			frames, err := cast.Record(cmd.Context(), columns, rows, env, castLines)
			if err != nil {
				return err
			}
			return os.WriteFile(to, []byte(cast.SVG(frames, columns, rows)), 0o644)
		},
	}
	c.Flags().StringVar(&to, "to", "docs/terminal.svg", "the `file` to write")
	return c
}
