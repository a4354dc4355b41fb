// Package toolgroups is "stepjet groups": what stands for a role, and which permissions it takes.
package toolgroups

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/tool/group"
)

// Terminal is what the commands need of the program that they belong to.
type Terminal struct {
	// Work wraps what a command does: its errors are shown, and end it with their exit codes.
	Work func(func(*cobra.Command, []string) error) func(*cobra.Command, []string) error
	// Open reaches a server, with time for one request.
	Open func(context.Context, func(context.Context, *kv.Store) error) error
	// Read reads a file, or standard input for "-", up to a number of bytes.
	Read func(name string, most int64) ([]byte, error)
	// Say tells a person something, beside the output.
	Say func(format string, args ...any)
	// JSON says that a document is wanted, and Document writes it; Text writes lines of cells otherwise.
	JSON     func() bool
	Document func(any) error
	Text     func(lines [][]string)
	// Invalid is the end of "apply" where something was refused.
	Invalid error
}

// Command returns the command.
func Command(t Terminal) *cobra.Command {
	c := &cobra.Command{
		Use:   "groups",
		Short: "List, show, apply and remove groups of tools",
		Long: `A group says which tools stand for a role ("web"), and which permissions it takes to call them:
{"role": "web", "provider": "docker", "permissions": ["internet"], "match": ["web_*"], "priority": 10}.
Definitions of agents name tools by their role. A run that is submitted with --permissions calls no tool that
takes another one; a tool takes those of all groups that hold it.`,
		Example: `  stepjet groups apply groups.json
  stepjet groups show web
  stepjet run --permissions internet plan.json`,
		Args: cobra.NoArgs, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(list(t), show(t), apply(t), remove(t))
	return c
}

// seen are the groups, and the tools that are registered.
type seen struct {
	groups *group.Set
	live   []group.Live
}

func look(ctx context.Context, t Terminal) (s seen, err error) {
	return s, t.Open(ctx, func(ctx context.Context, store *kv.Store) error {
		if s.groups, err = store.Groups.AllGroups(ctx); err != nil {
			return err
		}
		tools, err := store.Registry.Tools(ctx)
		for _, x := range tools {
			s.live = append(s.live, group.Live{Name: x.Name, Hints: hints(x)})
		}
		return err
	})
}

func hints(x tool.Registered) *tool.Annotations {
	if x.Definition == nil {
		return nil
	}
	return x.Definition.Annotations
}

// holds returns the live tools of one definition.
func (s seen) holds(d *group.Definition) (names []string) {
	for _, x := range s.live {
		if d.Holds(x.Name, x.Hints) {
			names = append(names, x.Name)
		}
	}
	return names
}

func list(t Terminal) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the groups, and which of a role's providers counts",
		Example: "  stepjet groups list -o json", Args: cobra.NoArgs,
		RunE: t.Work(func(cmd *cobra.Command, _ []string) error {
			s, err := look(cmd.Context(), t)
			if err != nil {
				return err
			}
			if t.JSON() {
				return t.Document(append([]*group.Definition{}, s.groups.All()...))
			}
			if len(s.groups.All()) == 0 {
				t.Say("no groups; stepjet groups apply FILE makes some")
				return nil
			}
			lines := [][]string{{"ROLE", "PROVIDER", "TOOLS", "PERMISSIONS", "DESCRIPTION"}}
			for _, d := range s.groups.All() {
				provider := d.Provider
				if counts, tools := s.groups.Resolve(d.Role, s.live); counts == d && len(tools) > 0 {
					provider += " *"
				}
				lines = append(lines, []string{d.Role, provider, strconv.Itoa(len(s.holds(d))), orNone(d.Permissions), line(d.Description)})
			}
			t.Text(lines)
			return nil
		}),
	}
}

func orNone(names []string) string { return cmp.Or(strings.Join(names, ", "), "-") }

func line(s string) string { return text.Clip(strings.Join(strings.Fields(s), " "), 100) }

func show(t Terminal) *cobra.Command {
	return &cobra.Command{
		Use: "show ROLE", Short: "Show what stands for a role: its providers in their order, and their tools",
		Example: "  stepjet groups show web", Args: cobra.ExactArgs(1),
		RunE: t.Work(func(cmd *cobra.Command, args []string) error {
			s, err := look(cmd.Context(), t)
			if err != nil {
				return err
			}
			counts, tools := s.groups.Resolve(args[0], s.live)
			if counts == nil {
				return fault.New(fault.NotFound, "there is no group %q", args[0]).WithHint("there are: %s", orNone(s.groups.Roles()))
			}
			var of []*group.Definition
			for _, d := range s.groups.All() {
				if d.Role == args[0] {
					of = append(of, d)
				}
			}
			if t.JSON() {
				return t.Document(struct {
					Role      string              `json:"role"`
					Provider  string              `json:"provider"`
					Tools     []string            `json:"tools"`
					Providers []*group.Definition `json:"providers"`
				}{args[0], counts.Provider, append([]string{}, tools...), of})
			}
			var lines [][]string
			for _, d := range of {
				counted := ""
				if d == counts && len(tools) > 0 {
					counted = "counts"
				}
				lines = append(lines, []string{d.Provider, "priority " + strconv.Itoa(d.Priority), counted},
					[]string{"", "takes", orNone(d.Permissions)}, []string{"", "tools", orNone(s.holds(d))})
			}
			t.Text(lines)
			return nil
		}),
	}
}

// maxFile is the largest file of groups, in bytes.
const maxFile = 8 << 20

func apply(t Terminal) *cobra.Command {
	return &cobra.Command{
		Use: "apply FILE…", Short: "Set the groups of one or more files",
		Long: `Sets groups over what is there, each by its role and provider: one definition, a JSON array, or
{"groups": [...]}; "-" is standard input. All files are looked through first: where something is
wrong, all of it is said and nothing is set. Runs that began before keep what they began with.`,
		Example: "  stepjet groups apply groups.json", Args: cobra.MinimumNArgs(1),
		RunE: t.Work(func(cmd *cobra.Command, files []string) error {
			all, wrong, err := read(t, files)
			if err != nil {
				return err
			}
			if len(wrong) > 0 {
				for _, w := range wrong {
					t.Say("%s", w)
				}
				return t.Invalid
			}
			done := []*group.Definition{}
			err = t.Open(cmd.Context(), func(ctx context.Context, store *kv.Store) error {
				for _, raw := range all {
					d, err := store.Requests.RequestGroup(ctx, raw)
					if err != nil {
						return err
					}
					done = append(done, d)
				}
				return nil
			})
			if err != nil {
				return err
			}
			if t.JSON() {
				return t.Document(done)
			}
			var lines [][]string
			for _, d := range done {
				lines = append(lines, []string{"set", d.Role, d.Provider})
			}
			t.Text(lines)
			return nil
		}),
	}
}

// read reads the definitions of files, and says what is wrong with them, each with its place.
func read(t Terminal, files []string) (all []json.RawMessage, wrong []string, err error) {
	names := map[string]string{}
	for _, file := range files {
		raw, err := t.Read(file, maxFile)
		if err != nil {
			return nil, nil, err
		}
		for i, one := range split(raw) {
			place := fmt.Sprintf("%s#%d", file, i)
			d, err := group.Parse(one)
			if err != nil {
				f := fault.As(err)
				wrong = append(wrong, place+": "+f.Message+" ("+f.Hint+")")
				continue
			}
			if first, twice := names[d.Key()]; twice {
				wrong = append(wrong, fmt.Sprintf("%s: the group %q of %q is given twice, first in %s", place, d.Role, d.Provider, first))
			}
			names[d.Key()] = place
			all = append(all, one)
		}
	}
	return all, wrong, nil
}

// split takes a file apart: a list, {"groups": […]}, or one definition.
func split(raw []byte) (all []json.RawMessage) {
	if json.Unmarshal(raw, &all) == nil {
		return all
	}
	var in struct {
		Groups []json.RawMessage `json:"groups"`
	}
	if json.Unmarshal(raw, &in) == nil && in.Groups != nil {
		return in.Groups
	}
	return []json.RawMessage{bytes.TrimSpace(raw)}
}

func remove(t Terminal) *cobra.Command {
	return &cobra.Command{
		Use: "remove ROLE [PROVIDER]", Short: "Take out what a provider has for a role",
		Long: `Takes out what a provider, "default" where none is named, has for a role. Tools that no other group
holds take no permission from then on. Runs that began before keep what they began with.`,
		Example: "  stepjet groups remove web docker", Args: cobra.RangeArgs(1, 2),
		RunE: t.Work(func(cmd *cobra.Command, args []string) error {
			provider := group.DefaultProvider
			if len(args) == 2 {
				provider = args[1]
			}
			err := t.Open(cmd.Context(), func(ctx context.Context, store *kv.Store) error {
				return store.Requests.RequestRemoveGroup(ctx, args[0], provider)
			})
			if err != nil {
				return err
			}
			if t.JSON() {
				return t.Document(map[string]string{"role": args[0], "provider": provider})
			}
			t.Say("removed what %s has for %s", provider, args[0])
			return nil
		}),
	}
}
