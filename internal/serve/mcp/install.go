package mcp

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/fault"
)

// installed is where a client keeps its servers.
type installed struct {
	name, file string
	key        string // the member that holds the servers
	typed      bool   // an entry says that it is of stdio
}

var clients = []installed{
	{"claude-desktop", "claude_desktop_config.json (Settings > Developer > Edit Config)", "mcpServers", false},
	{"claude-code", ".mcp.json in your project, or: claude mcp add stepjet -- COMMAND", "mcpServers", false},
	{"cursor", "~/.cursor/mcp.json, or .cursor/mcp.json in your project", "mcpServers", false},
	{"vscode", ".vscode/mcp.json in your project", "servers", true},
}

// installCommand prints what a client's configuration has to say.
func installCommand(s Surroundings) *cobra.Command {
	var names []string
	for _, c := range clients {
		names = append(names, c.name)
	}
	var expose string
	c := &cobra.Command{
		Use:   "install CLIENT",
		Short: "Print the entry of a client's configuration that starts \"stepjet mcp\"",
		Long: `Prints what the configuration of a client has to say so that it starts "stepjet mcp" with the same
server, tenant and data folder as this command. CLIENT is one of: ` + strings.Join(names, ", ") + `.
Nothing is written: put it into the file that is named on standard error.`,
		Example: `  stepjet mcp install claude-desktop
  stepjet mcp install vscode --server nats://host --expose 'web_*' > .vscode/mcp.json`,
		Args: cobra.ExactArgs(1), ValidArgs: names,
		RunE: s.Work(func(_ *cobra.Command, args []string) error { return s.install(args[0], expose) }),
	}
	c.Flags().StringVar(&expose, "expose", "", "registered tools to offer as tools of their own: a `selector`")
	return c
}

// line is a command as a person types it: what a shell would take for more than a word is quoted.
func (s Surroundings) line(command string, args []string) string {
	words := append([]string{command}, args...)
	for i, w := range words {
		if strings.IndexFunc(w, func(r rune) bool { return !plain(r) }) >= 0 {
			words[i] = s.Quote(w)
		}
	}
	return strings.Join(words, " ")
}

// plain reports whether no shell sees more than a letter in it.
func plain(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_./:", r)
}

func (s Surroundings) install(name, expose string) error {
	for _, c := range clients {
		if c.name != name {
			continue
		}
		command, err := os.Executable()
		if err != nil {
			command = "stepjet"
		}
		entry := struct {
			Type    string   `json:"type,omitempty"`
			Command string   `json:"command"`
			Args    []string `json:"args"`
		}{Command: command, Args: append([]string{"mcp"}, s.Arguments()...)}
		if c.typed {
			entry.Type = "stdio"
		}
		if expose != "" {
			entry.Args = append(entry.Args, "--expose", expose)
		}
		doc := map[string]any{c.key: map[string]any{"stepjet": entry}}
		enc := json.NewEncoder(s.Stdout)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		s.Say("into %s", strings.ReplaceAll(c.file, "COMMAND", s.line(command, entry.Args)))
		return enc.Encode(doc)
	}
	var names []string
	for _, c := range clients {
		names = append(names, c.name)
	}
	return fault.New(fault.InvalidConfig, "no client is known as %q", name).WithHint("%s", strings.Join(names, ", "))
}
