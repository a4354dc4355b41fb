package cli

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/stepjet/stepjet/subjects"
)

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

// quote makes a word fit for a shell.
func quote(s string) string {
	if subjects.ValidStepID(s) || subjects.ValidTool(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
