package cli

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/subjects"
)

// seconds is a flag that holds a duration and says so in the help.
type seconds = time.Duration

const requestTimeout = 10 * time.Second

func init() { cobra.EnableCommandSorting = false } // commands are listed in the order of use

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "stepjet",
		Short: "Run tool plans, durably, on NATS JetStream",
		Long: `Stepjet runs tool plans: one JSON document that lists tool calls and how the output of
one feeds the arguments of another. Every step starts as soon as the steps it refers to
have finished, on any number of workers, and only what was asked for comes back.`,
		Example: `  stepjet run plan.json                     run a plan here, with nothing else installed
  stepjet validate plan.json                all problems of a plan at once
  stepjet graph plan.json                   its waves
  stepjet dev                               server, orchestrator and toolworker in one process
  stepjet submit --server nats://host plan.json`,
		SilenceUsage: true, SilenceErrors: true, SuggestionsMinimumDistance: 2,
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = false
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	a.globalFlags(root)
	root.AddGroup(&cobra.Group{ID: "plans", Title: "Plans:"}, &cobra.Group{ID: "runs", Title: "Runs:"}, &cobra.Group{ID: "rest", Title: "Surroundings:"})
	root.SetHelpCommandGroupID("rest")
	root.SetCompletionCommandGroupID("rest")
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("plans", a.runCommand(), a.submitCommand(), a.validateCommand(), a.graphCommand(), a.evalCommand())
	add("runs", a.listCommand(), a.getCommand(), a.watchCommand(), a.cancelCommand(), a.questionsCommand(), a.approveCommand(), a.rejectCommand(),
		a.retryCommand(), a.deadCommand())
	add("rest", a.devCommand(), a.orchestratorCommand(), a.workerCommand(), a.doctorCommand(), a.toolsCommand(), a.benchCommand(),
		a.conformanceCommand(), a.aclCommand(), a.tenantCommand(), a.keysCommand(), a.versionCommand())
	return root
}

func (a *app) globalFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.SortFlags = false
	f.StringVarP(&a.flags.output, "output", "o", "text", "print `text|json` on standard output")
	a.flags.connection.add(root, a.env.Getenv)
	f.StringVar(&a.flags.tenant, "tenant", a.defaultTenant(), "`tenant` that owns the runs (env STEPJET_TENANT)")
	a.flags.secrets.Flag(f)
	f.StringVar(&a.flags.sealTo, "seal-to", a.env.Getenv("STEPJET_SEAL_TO"), "seal secrets to this public `key`, not to the published one (env STEPJET_SEAL_TO)")
	f.DurationVar(&a.flags.timeout, "timeout", requestTimeout, "connect, and answer one request, within this `duration`")
	f.BoolVarP(&a.flags.quiet, "quiet", "q", false, "say nothing on standard error but errors")
	f.BoolVarP(&a.flags.verbose, "verbose", "v", false, "log on standard error what happens inside")
}

// knownCommand refuses what is no command, with those that are nearly it.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	message := "there is no command " + strconv.Quote(args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		message += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usage(errors.New(message))
}

// exactly is cobra.ExactArgs with words that name what is missing.
func exactly(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usage(errors.New("missing " + names[len(args)]))
		case len(args) > len(names):
			return usage(errors.New("one argument too many: " + args[len(names)]))
		}
		return nil
	}
}

func atLeast(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(errors.New("missing " + name))
		}
		return nil
	}
}

func (a *app) defaultTenant() string {
	if t := a.env.Getenv("STEPJET_TENANT"); t != "" {
		return t
	}
	return subjects.DefaultTenant
}
