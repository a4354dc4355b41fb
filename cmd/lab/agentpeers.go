package main

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	product "github.com/stepjet/stepjet/internal/bench"
	"github.com/stepjet/stepjet/internal/lab/agentbench"
	"github.com/stepjet/stepjet/internal/lab/agentpeers"
	"github.com/stepjet/stepjet/internal/version"
)

// agentPeersCommand is "lab agents peers".
func agentPeersCommand() *cobra.Command {
	var folder, figures, report string
	var turns int
	lengths := agentpeers.Lengths
	c := &cobra.Command{
		Use:   "peers",
		Short: "Run the same loop on LangGraph.js with SQLite and on Restate, in turns with Stepjet",
		Long: `Runs loops of several lengths on each engine, one after the other, and kills each peer once in the middle of a
round. The scripts' packages have to be installed: make agent-peers does. Restate's server runs in a network of its own,
which takes root.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return agentPeers(cmd.Context(), folder, figures, report, turns, lengths)
		},
	}
	f := c.Flags()
	f.StringVar(&folder, "folder", "internal/lab/agentpeers/npm", "`folder` with the scripts and node_modules")
	f.IntVar(&turns, "turns", 3,
		"`number` of turns; medians count. 0 measures nothing: for --report, of the figures that are kept")
	f.IntSliceVar(&lengths, "rounds", lengths, "`rounds` of the loops")
	f.StringVar(&figures, "figures", "", "keep the figures in a `folder`")
	f.StringVar(&report, "report", "", "write the figures between their marks in a Markdown `file`")
	return c
}

func agentPeers(ctx context.Context, folder, figures, report string, turns int, lengths []int) error {
	file := filepath.Join(figures, "agents-peers.json")
	if turns == 0 {
		raw, err := os.ReadFile(file)
		p := &agentpeers.Peers{}
		if err = cmp.Or(err, json.Unmarshal(raw, p)); err != nil {
			return err
		}
		return agentbench.Insert(report, agentpeers.Mark, p.Markdown())
	}
	dir, err := os.MkdirTemp("", "stepjet-peers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	env, err := agentEnv(dir)
	if err != nil {
		return err
	}
	stamp := product.Stamp{Time: time.Now().UTC(), Version: version.String(), Machine: product.Machine()}
	p, err := agentpeers.Measure(ctx, env, folder, turns, lengths, stamp)
	if err != nil {
		return err
	}
	if figures != "" {
		body, err := json.MarshalIndent(p, "", "  ")
		if err = cmp.Or(err, os.WriteFile(file, append(body, '\n'), 0o644)); err != nil {
			return err
		}
	}
	if report == "" {
		_, err := os.Stdout.WriteString(p.Markdown())
		return err
	}
	return agentbench.Insert(report, agentpeers.Mark, p.Markdown())
}
