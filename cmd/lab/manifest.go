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
		Short: "Hold objects of Kubernetes against the definitions of their kinds, closed",
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
			n, err := manifest.CheckAll(crd, object)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if scaler == "" {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d objects are as their definitions say\n", args[0], n)
				return err
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
	c.Flags().StringVar(&definition, "definition", "", "`file` of the CustomResourceDefinitions")
	c.Flags().StringVar(&scaler, "scaler", "", "`file` of the source of KEDA's scaler, where the object has a trigger")
	c.Flags().StringVar(&trigger, "trigger", "metrics-api", "`type` of the trigger that the scaler is of")
	return c
}
