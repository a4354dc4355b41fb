package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/serve"
)

// typed is a command of stepjet's as documents write it: in a line of a shell block, or between back quotes.
var typed = regexp.MustCompile("(?m)(?:^|`|/bin/|[;&|(] *)stepjet ((?:[a-z][a-z-]*|--[a-z][a-z-]*)(?:[ =][^`\n#|&;)]*)?)")

// TestCommandsOfDocumentsExist: what a document says to type is a command with these flags.
func TestCommandsOfDocumentsExist(t *testing.T) {
	t.Parallel()
	root := (&app{env: Env{Getenv: nowhere(t)}}).root()
	found := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md", "examples/*.md", "examples/*/*.md", "deploy/*.md", "skills/*/*.md"} {
		files, err := filepath.Glob("../../" + pattern)
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range typed.FindAllStringSubmatch(string(text), -1) {
				if strings.HasPrefix(m[1], "context secret ") { // the label of sealed secrets
					continue
				}
				found++
				if flaw := flawOf(root, strings.Fields(m[1])); flaw != "" {
					assert.Fail(t, flaw, "%s: stepjet %s", file, m[1])
				}
			}
		}
	}
	require.Greater(t, found, 100)
}

// flawOf says what is wrong with a command line, "" of one that could be typed.
func flawOf(root *cobra.Command, words []string) string {
	c, rest, err := root.Find(words)
	if err != nil {
		return err.Error()
	}
	if c == root && !strings.HasPrefix(words[0], "--") && words[0] != "help" {
		return "there is no such command"
	}
	if c != root && c.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return c.CommandPath() + " has no " + rest[0]
	}
	switch c.Name() { // they read their flags themselves
	case "orchestrator":
		if c.Parent() == root {
			c = serve.Orchestrator(c.Name())
		}
	case "worker":
		if c.Parent() == root {
			c = serve.Worker(c.Name())
		}
	}
	for _, w := range rest {
		name, _, _ := strings.Cut(strings.TrimPrefix(w, "--"), "=")
		if w == "--" {
			return ""
		}
		if strings.HasPrefix(w, "--") && c.Flags().Lookup(name) == nil && c.InheritedFlags().Lookup(name) == nil && name != "help" {
			return "it has no flag --" + name
		}
	}
	return ""
}

func TestCommandsThatDoNotExistAreCaught(t *testing.T) {
	t.Parallel()
	root := (&app{env: Env{Getenv: nowhere(t)}}).root()
	require.Empty(t, flawOf(root, []string{"run", "--wait", "1s", "plan.json"}))
	require.NotEmpty(t, flawOf(root, []string{"walk"}))
	require.NotEmpty(t, flawOf(root, []string{"run", "--weight"}))
	require.NotEmpty(t, flawOf(root, []string{"tools", "bury"}))
	require.Equal(t, "get RUN -o json ", typed.FindStringSubmatch("x\n./bin/stepjet get RUN -o json # now")[1])
}

// TestThePlansOfTheSkillAreRight: a model copies what it is shown, so each plan of skills/ can be run as it stands.
func TestThePlansOfTheSkillAreRight(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../skills/stepjet/SKILL.md")
	require.NoError(t, err)
	head, body, found := strings.Cut(strings.TrimPrefix(string(text), "---\n"), "\n---\n")
	require.True(t, found)
	require.Regexp(t, `(?s)^name: stepjet\ndescription: .{100,999}$`, head, "what a model decides by whether to read on")
	require.Less(t, len(body), 16<<10)
	plans := regexp.MustCompile("(?s)\n```json\n(.*?)```").FindAllStringSubmatch(body, -1)
	require.Len(t, plans, 3)
	for i, m := range plans {
		file := filepath.Join(t.TempDir(), "plan.json")
		require.NoError(t, os.WriteFile(file, []byte(m[1]), 0o600))
		out, errs, code := command(t, "", "run", "--dry-run", "--tools", "../../examples/tools.json", file)
		require.Zero(t, code, "plan %d: %s%s", i, out, errs)
		out, errs, code = command(t, "", "run", "--wait", "2m", "-o", "json", file)
		require.Zero(t, code, "plan %d: %s%s", i, out, errs)
	}
}

// TestTheListForModelsIsShortAndLeadsSomewhere: llms.txt is read whole, and what it names is there.
func TestTheListForModelsIsShortAndLeadsSomewhere(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../llms.txt")
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), 4096)
	require.Regexp(t, `(?s)^# Stepjet\n\n> .+?\n\n.+?\n\n## `, string(text))
	links := regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(string(text), -1)
	named := map[string]bool{}
	for _, m := range links {
		named[m[1]] = true
		_, err := os.Stat("../../" + m[1])
		require.NoError(t, err)
	}
	pages, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	for _, page := range pages {
		switch name := "docs/" + filepath.Base(page); name {
		case "docs/groups.md", "docs/mutations.md": // parts of what is told elsewhere
		default:
			require.True(t, named[name], "llms.txt does not name %s", name)
		}
	}
}
