package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/cli/screen"
	"github.com/stepjet/stepjet/internal/starter"
	"github.com/stepjet/stepjet/internal/version"
)

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
	add("runs", a.listCommand(), a.getCommand(), a.watchCommand(), a.cancelCommand(), amendCommand(a))
	add("runs", asking{a}.commands()...)
	add("runs", a.retryCommand(), a.deadCommand())
	add("rest", initCommand(a), a.devCommand(), a.orchestratorCommand(), a.workerCommand(), mcpCommand(a), uiCommand(a), a.doctorCommand(), provisionCommand(a), workersCommand(a), a.toolsCommand(), templatesCommand(a), agentsCommand(a), groupsCommand(a), a.benchCommand(),
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

// Main runs the command and gives its exit code. ctx ends with a signal; Interrupted makes the cause that gives code
// 130.
func Main(ctx context.Context, env Env) int {
	a := &app{
		env: env, stdout: env.Stdout, stderr: env.Stderr,
		style: styleOf(env.Stdout, env.Getenv), errStyle: styleOf(env.Stderr, env.Getenv),
		terminal: isTerminal(env.Stderr) && env.Getenv("TERM") != "dumb",
	}
	if isTerminal(env.Stderr) {
		a.screen = screen.New(env.Stderr, a.errStyle.on, func() (columns, rows int) { return sizeOf(env.Stderr) })
		a.stderr = a.screen
	}
	root := a.root()
	root.SetArgs(env.Args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil {
		var e *failure
		if !errors.As(err, &e) { // not from a command's own work: cobra found the command line wrong
			err = usage(err)
		}
		a.show(err, cmd.CommandPath())
	}
	return codeOf(err)
}

func initCommand(a *app) *cobra.Command {
	return starter.Command(starter.Terminal{
		Work: a.work, Say: a.say, JSON: a.json, Document: a.printJSON,
		Print: func(text string) error {
			_, err := io.WriteString(a.stdout, text)
			return err
		},
	})
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  stepjet version -o json",
		Args:    exactly(),
		RunE: a.work(func(*cobra.Command, []string) error {
			version, commit := a.version()
			if a.json() {
				return a.printJSON(struct {
					Version string `json:"version"`
					Commit  string `json:"commit,omitempty"`
					Go      string `json:"go"`
				}{version, commit, runtime.Version()})
			}
			text := "stepjet " + version
			if commit != "" {
				text += " (" + commit + ")"
			}
			_, err := fmt.Fprintln(a.stdout, text+", "+runtime.Version())
			return err
		}),
	}
}

// version returns the version, which a test may set, and the commit.
func (a *app) version() (name, commit string) {
	name, commit = version.Of()
	if a.env.Version != "" {
		name = a.env.Version
	}
	return name, commit
}
