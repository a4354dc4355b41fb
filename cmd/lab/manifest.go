package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/lab/manifest"
)

func manifestCommand() *cobra.Command {
	var definition, scaler, trigger string
	c := &cobra.Command{
		Use:   "manifest FILE",
		Short: "Hold an object of Kubernetes against the definition of its kind, closed",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			object, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			crd, err := os.ReadFile(definition)
			if err != nil {
				return err
			}
			if err := manifest.Check(crd, object); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			source, err := os.ReadFile(scaler)
			if err != nil {
				return err
			}
			if err := manifest.CheckTrigger(source, object, trigger); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is as its definition and its scaler say\n", args[0])
			return err
		},
	}
	c.Flags().StringVar(&definition, "definition", "", "`file` of the CustomResourceDefinition")
	c.Flags().StringVar(&scaler, "scaler", "", "`file` of the source of the scaler of KEDA")
	c.Flags().StringVar(&trigger, "trigger", "metrics-api", "`type` of the trigger that the scaler is of")
	return c
}
