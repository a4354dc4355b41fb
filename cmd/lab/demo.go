package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/stepjet/stepjet/internal/lab/agentdemo"
)

func demoAgentCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo-agent",
		Short: "Have an agent solve a task, with a failure, an approval and a kill -9 on the way",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := agentdemo.Run(cmd.Context())
			if err != nil {
				return err
			}
			colours := term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
			if err := r.Write(os.Stdout, func(code, text string) string {
				if !colours || text == "" {
					return text
				}
				return "\x1b[" + code + "m" + text + "\x1b[0m"
			}); err != nil {
				return err
			}
			if lost := r.Lost(); len(lost) > 0 {
				return fmt.Errorf("lost: %v", lost)
			}
			return nil
		},
	}
}
