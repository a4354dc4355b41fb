package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/lab/house"
)

func houseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "house [COMMIT...]",
		Short: "Measure how the code is built, of commits and of the work tree",
		Long: `Measures the largest types and packages, lines, exported names, and circles: of the arrows from a file to
another one of its package that declares what it uses, the share whose two files can each be reached from the other.`,
		Example: "  lab house 79e7c9c",
		RunE:    func(cmd *cobra.Command, commits []string) error { return measureHouse(cmd.Context(), commits) },
	}
}

func measureHouse(ctx context.Context, commits []string) error {
	for _, commit := range commits {
		if err := measureCommit(ctx, commit); err != nil {
			return err
		}
	}
	return printHouse("the work tree", ".")
}

// measureCommit unpacks a commit and measures it.
func measureCommit(ctx context.Context, commit string) error {
	dir, err := os.MkdirTemp("", "stepjet-house-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	archive, tree := filepath.Join(dir, "tree.tar"), filepath.Join(dir, "tree")
	if err := os.Mkdir(tree, 0o700); err != nil {
		return err
	}
	for _, argv := range [][]string{
		{"git", "archive", "--output", archive, commit}, {"tar", "--extract", "--file", archive, "--directory", tree},
	} {
		if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", argv, err, out)
		}
	}
	return printHouse(commit, tree)
}

func printHouse(name, root string) error {
	h, err := house.Measure(root)
	if err == nil {
		_, err = fmt.Printf("## %s\n\n%s\n", name, h.Markdown())
	}
	return err
}
