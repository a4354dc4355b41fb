package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/lab/mcp"
)

func mcpCommand() *cobra.Command {
	var suite string
	c := &cobra.Command{
		Use:   "mcp [REVISION...]",
		Short: "Hold \"stepjet mcp\" against the conformance suite of the Model Context Protocol",
		Long: `Starts a Stepjet with the tools that the suite wants to find, runs what each revision of the protocol requires,
and reads the suite's checks one by one: each has to pass, or to stand in the baseline with a reason.
Without a REVISION it only serves, until it is interrupted.`,
		RunE: func(cmd *cobra.Command, revisions []string) error {
			return mcp.Serve(cmd.Context(), func(url string) error {
				if len(revisions) == 0 {
					_, _ = fmt.Fprintln(os.Stderr, url)
					<-cmd.Context().Done()
					return nil
				}
				return runSuite(cmd, suite, url, revisions, false)
			})
		},
	}
	c.AddCommand(bridgeCommand(), clientCommand(), chainCommand(), latencyCommand(), bridgeAsClientCommand(),
		asClientCommand())
	c.Flags().StringVar(&suite, "suite", "internal/lab/mcp/suite", "`folder` with the suite's node_modules")
	return c
}

func bridgeCommand() *cobra.Command {
	var folder string
	c := &cobra.Command{
		Use:   "bridge",
		Short: "Run plans over the tools of real MCP servers",
		Long: `Hosts the tools of the servers that a folder names as workers, runs the folder's plans, and compares what
they come to.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return mcp.Bridge(cmd.Context(), folder, os.Stdout) },
	}
	c.Flags().StringVar(&folder, "folder", "internal/lab/mcp/npm",
		"`folder` with servers.json, plans.json and node_modules")
	return c
}

func chainCommand() *cobra.Command {
	var suite, program string
	c := &cobra.Command{
		Use:   "chain REVISION...",
		Short: "Hold the chain of another server, the bridge, a run and \"stepjet mcp\" against the suite",
		Long: `Bridges a program that serves the suite's tools on standard input and output, so that each call of the suite
is a step of a run, and reads the suite's checks one by one.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, revisions []string) error {
			run := func(url string) error { return runSuite(cmd, suite, url, revisions, true) }
			return mcp.Chain(cmd.Context(), program, run)
		},
	}
	c.Flags().StringVar(&suite, "suite", "internal/lab/mcp/suite", "`folder` with the suite's node_modules")
	c.Flags().StringVar(&program, "server", "bin/everything-server",
		"the `program`, conformance/everything-server of go-sdk")
	return c
}

func bridgeAsClientCommand() *cobra.Command {
	var suite string
	c := &cobra.Command{
		Use:   "bridged",
		Short: "Hold the bridge, as a client of the Model Context Protocol, against the suite",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			t, err := mcp.RunClient(cmd.Context(), suite, self+" mcp as-client", os.Stdout)
			if err != nil {
				return err
			}
			return conclude(t.Passed, t.Baselined, t.Problems)
		},
	}
	c.Flags().StringVar(&suite, "suite", "internal/lab/mcp/suite", "`folder` with the suite's node_modules")
	return c
}

// asClientCommand is what the suite starts.
func asClientCommand() *cobra.Command {
	return &cobra.Command{
		Use: "as-client URL", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			scenario, with := os.Getenv("MCP_CONFORMANCE_SCENARIO"), os.Getenv("MCP_CONFORMANCE_CONTEXT")
			return mcp.AsClient(cmd.Context(), args[0], scenario, with)
		},
	}
}

func latencyCommand() *cobra.Command {
	l := mcp.Latency{Out: os.Stdout}
	c := &cobra.Command{
		Use:   "latency",
		Short: "Measure calls of MCP servers directly, by \"stepjet mcp\", and as plans",
		Long: `Calls a server from npm and one of the Go SDK, both on standard input and output: directly, as tools of
"stepjet mcp", where each call is a run with a bridged step, and as plans of several calls. All take turns, by
themselves
and then beside clients that run plans of 20 steps; the output has medians and their ratios.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return l.Run(cmd.Context()) },
	}
	f := c.Flags()
	f.StringVar(&l.Folder, "folder", "internal/lab/mcp/npm", "`folder` with node_modules")
	f.StringVar(&l.Server, "server", "bin/everything-server", "the `program`, conformance/everything-server of go-sdk")
	f.IntVar(&l.Rounds, "rounds", 500, "of single calls; of wide plans a tenth")
	f.IntVar(&l.Wide, "wide", 20, "calls in a wide plan")
	f.IntVar(&l.Load, "load", 4, "clients beside it")
	return c
}

func clientCommand() *cobra.Command {
	var folder string
	c := &cobra.Command{
		Use:   "client",
		Short: "Call tools as the protocol's own client in TypeScript does",
		Long:  "Starts a Stepjet with the tools of the suite, and runs a folder's witness.mjs against it.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return mcp.Serve(cmd.Context(), func(url string) error { return mcp.Witness(cmd.Context(), folder, url, os.Stdout) })
		},
	}
	c.Flags().StringVar(&folder, "folder", "internal/lab/mcp/client", "`folder` with witness.mjs and node_modules")
	return c
}

func runSuite(cmd *cobra.Command, suite, url string, revisions []string, chain bool) error {
	var problems []string
	passed, baselined := 0, 0
	for _, revision := range revisions {
		_, _ = fmt.Fprintf(os.Stdout, "\n%s\n", revision)
		t, err := mcp.Run(cmd.Context(), suite, url, revision, chain, os.Stdout)
		if err != nil {
			return err
		}
		passed, baselined = passed+t.Passed, baselined+t.Baselined
		problems = append(problems, t.Problems...)
	}
	return conclude(passed, baselined, problems)
}

func conclude(passed, baselined int, problems []string) error {
	_, _ = fmt.Fprintf(os.Stdout, "\n%d checks passed, %d don't apply, %d problems\n", passed, baselined, len(problems))
	if len(problems) > 0 {
		return fmt.Errorf("the suite found:\n%s", strings.Join(problems, "\n"))
	}
	return nil
}
