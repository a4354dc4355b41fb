// Command lab tries and measures Stepjet as its developers do; the targets of the Makefile run it. It is no part of
// what users install.
package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/internal/lab/chaos"
)

func main() {
	if !chaos.Main() { // a process of a scenario
		os.Exit(run())
	}
}

func run() int {
	ctx, stop := daemon.Signals(context.Background(), func() { os.Exit(daemon.ExitForced) })
	defer stop()
	root := &cobra.Command{
		Use:           "lab",
		Short:         "Tries and measures Stepjet: what the project's own documents tell",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(benchCommand(), contractsCommand(), chaosCommand(), mutantsCommand(), houseCommand(), mcpCommand(),
		pageCommand(), manifestCommand(), demoAgentCommand(), agentsCommand(), castCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		daemon.Print(os.Stderr, "lab", err)
		return daemon.ExitCode(err)
	}
	return daemon.ExitOK
}
