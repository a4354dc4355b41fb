package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/lab/page"
)

func pageCommand() *cobra.Command {
	var web, out string
	c := &cobra.Command{
		Use:   "page",
		Short: "Make the files of the page of their sources in web/",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			files, err := page.Make(web)
			if err != nil {
				return err
			}
			for name, body := range files {
				if err := os.WriteFile(filepath.Join(out, name), body, 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().StringVar(&web, "web", "../../../web", "`folder` of the sources")
	c.Flags().StringVar(&out, "out", ".", "`folder` of what browsers load")
	return c
}
