package cli

import (
	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/internal/serve"
)

func (a *app) orchestratorCommand() *cobra.Command {
	return a.serving("orchestrator", serve.Orchestrator)
}

func (a *app) workerCommand() *cobra.Command { return a.serving("worker", serve.Worker) }

// serving makes a command of a program that serves. It is that program: with its own flags, signals, log and exit
// codes, and with none of the flags that the other commands have.
func (a *app) serving(name string, program func(program string) *cobra.Command) *cobra.Command {
	own := program("stepjet " + name)
	own.SetIn(a.env.Stdin)
	own.SetOut(a.stdout)
	own.SetErr(a.stderr)
	c := &cobra.Command{
		Use: name, Short: own.Short, Long: own.Long, Example: own.Example, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			own.SetArgs(args)
			if code := daemon.Execute(own); code != daemon.ExitOK {
				return &failure{quietly(code)}
			}
			return nil
		},
	}
	c.SetHelpFunc(func(*cobra.Command, []string) {
		own.InitDefaultHelpFlag()
		own.InitDefaultVersionFlag()
		_ = own.Help() // it can't fail
	})
	return c
}
