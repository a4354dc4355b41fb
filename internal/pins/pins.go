// Package pins is "stepjet mcp pin", "diff" and "accept": what somebody agrees to of the tools of MCP servers.
package pins

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/serve/bridging"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/mcp/bridge"
	"github.com/stepjet/stepjet/wire"
)

// Terminal is what the commands need of the program that they belong to.
type Terminal struct {
	// Work wraps what a command does: its errors are shown, and end it with their exit codes.
	Work func(func(*cobra.Command, []string) error) func(*cobra.Command, []string) error
	// Secrets reads what --secret was given.
	Secrets func(given []string) (wire.Context, error)
	// Lookup finds variables of the environment.
	Lookup func(string) (string, bool)
	// Logger takes what happens inside; it is asked for when flags are read.
	Logger func() *slog.Logger
	// Say tells a person something, beside the output.
	Say func(format string, args ...any)
	// JSON writes a document, where that is wanted; Text writes lines of cells otherwise.
	JSON     func() bool
	Document func(any) error
	Text     func(lines [][]string)
	// Differs is the end of "diff" where something differs.
	Differs error
}

// Commands returns the commands.
func Commands(t Terminal) []*cobra.Command {
	return []*cobra.Command{pin(t), diff(t), accept(t)}
}

// survey are the flags of commands that ask all servers of a file.
type survey struct {
	servers bridging.Settings
	secrets []string
}

func (s *survey) flags(c *cobra.Command) *cobra.Command {
	s.servers.FileFlags(c.Flags())
	c.Flags().StringArrayVar(&s.secrets, "secret", nil,
		"what ${context:KEY} of headers is: `key` (in STEPJET_SECRET_<KEY>, or asked for), key=@env:NAME, key=@file:PATH")
	return c
}

// look asks the servers, and says which could not be.
func (s *survey) look(ctx context.Context, t Terminal, cmd *cobra.Command) (*bridge.Survey, error) {
	if err := s.servers.FromEnvironment(cmd.Flags(), t.Lookup); err != nil {
		return nil, err
	}
	if s.servers.File == "" {
		s.servers.File = ".mcp.json"
	}
	given, err := t.Secrets(s.secrets)
	if err != nil {
		return nil, err
	}
	s.servers.Logger = t.Logger()
	found, err := bridge.Look(ctx, s.servers.Options, given)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(found.Unreachable)) {
		f := fault.As(found.Unreachable[name])
		t.Say("warning: %s; what the lock has of it stays", line(strings.TrimSuffix(f.Message+" ("+f.Hint+")", " ()"), 1000))
	}
	return found, nil
}

func pin(t Terminal) *cobra.Command {
	var s survey
	return s.flags(&cobra.Command{
		Use: "pin", Short: "Agree to all tools that the lock doesn't know yet",
		Long: `Asks every server of the file for its tools and adds those to the lock that it doesn't know yet. A tool
whose texts look as if they spoke to the model is left out and listed: read it, then accept it.`,
		Example: "  stepjet mcp pin --mcp .mcp.json", Args: cobra.NoArgs,
		RunE: t.Work(func(cmd *cobra.Command, _ []string) error {
			found, err := s.look(cmd.Context(), t, cmd)
			if err != nil {
				return err
			}
			names, err := found.Pin()
			if err != nil {
				return err
			}
			return show(t, names, slices.DeleteFunc(found.Differences(), func(d bridge.Difference) bool {
				return slices.Contains(names, d.Tool)
			}))
		}),
	})
}

func diff(t Terminal) *cobra.Command {
	var s survey
	return s.flags(&cobra.Command{
		Use: "diff", Short: "Compare what the servers say of their tools with the lock",
		Long: `Asks every server of the file for its tools and lists those that are not as the lock has them. Exit code 1
where there are any that could be agreed to.`,
		Example: "  stepjet mcp diff --mcp .mcp.json -o json", Args: cobra.NoArgs,
		RunE: t.Work(func(cmd *cobra.Command, _ []string) error {
			found, err := s.look(cmd.Context(), t, cmd)
			if err != nil {
				return err
			}
			all := found.Differences()
			if err := show(t, nil, all); err != nil || !slices.ContainsFunc(all, open) {
				return err
			}
			return t.Differs
		}),
	})
}

// open reports whether somebody could agree to a difference.
func open(d bridge.Difference) bool { return d.Kind != "unfit" }

func accept(t Terminal) *cobra.Command {
	var s survey
	return s.flags(&cobra.Command{
		Use: "accept NAME…", Short: "Agree to tools as they are now, by their names or their servers'",
		Example: "  stepjet mcp accept github_search\n  stepjet mcp accept github", Args: cobra.MinimumNArgs(1),
		RunE: t.Work(func(cmd *cobra.Command, args []string) error {
			found, err := s.look(cmd.Context(), t, cmd)
			if err != nil {
				return err
			}
			names, err := found.Accept(args...)
			if err != nil {
				return err
			}
			return show(t, names, nil)
		}),
	})
}

// show prints what was agreed to and what is left.
func show(t Terminal, agreed []string, open []bridge.Difference) error {
	if t.JSON() {
		return t.Document(map[string]any{
			"agreed": append([]string{}, agreed...), "differences": append([]bridge.Difference{}, open...),
		})
	}
	var lines [][]string
	for _, name := range agreed {
		lines = append(lines, []string{"agreed", name, ""})
	}
	for _, d := range open {
		lines = append(lines, []string{d.Kind, d.Tool, reasons(d)})
	}
	t.Text(lines)
	t.Say("%s agreed to, %s left", text.Count(len(agreed), "tool"), text.Count(len(open), "difference"))
	return nil
}

// reasons says of a difference what differs, and why somebody should look at it.
func reasons(d bridge.Difference) string {
	var parts []string
	for _, c := range d.Changes {
		parts = append(parts, c.Field+": "+line(string(c.Was), 80)+" → "+line(string(c.Now), 80))
	}
	return strings.Join(append(parts, d.Suspicions...), "; ")
}

// line is a text as part of a line.
func line(s string, most int) string { return text.Cut(strings.Join(strings.Fields(s), " "), most) }
