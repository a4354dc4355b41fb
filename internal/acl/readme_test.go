package acl_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/cli"
)

// asked is a command line that is tried under a role.
type asked struct {
	users []string // under whose permissions it has to work
	args  string   // what follows "stepjet"; FILE:x is a file of the test's
}

// commands are those of the README, by their first words. Without users a command asks no server of Stepjet's.
var commands = map[string][]asked{
	"run":            {{[]string{"agent-acme"}, "run FILE:plan.json --run read-me"}, {[]string{"agent-acme", "viewer-acme"}, "run FILE:plan.json --dry-run"}},
	"list":           {{[]string{"agent-acme", "viewer-acme", "approver-acme"}, "list"}},
	"get":            {{[]string{"agent-acme", "viewer-acme", "approver-acme"}, "get read-me"}},
	"retry":          {{[]string{"agent-acme"}, "retry failed"}},
	"dead list":      {{[]string{"agent-acme", "viewer-acme", "approver-acme"}, "dead list"}},
	"tools apply":    {{[]string{"operator"}, "tools apply FILE:tools.json"}},
	"tools override": {{[]string{"operator"}, "tools override search --set max_concurrency=8"}, {[]string{"operator-acme"}, "tools override search --tenant-only --set timeout_ms=60000"}},
	"tools export":   {{[]string{"agent-acme", "viewer-acme", "approver-acme", "operator-acme", "operator"}, "tools export --form openai"}, {[]string{"agent-acme"}, "tools export --form anthropic --meta"}},
	"tools list":     {{[]string{"operator-acme", "operator", "agent-acme", "viewer-acme", "approver-acme"}, "tools list"}},
	"doctor":         {{[]string{"doctor"}, "doctor"}},
	"workers":        {{[]string{"doctor"}, "workers"}},
	"provision":      {{[]string{"doctor"}, "provision"}},
	"validate":       {}, "keys new": {}, "graph": {}, "dev": {}, "eval": {}, "acl system": {}, "tenant add": {{[]string{"doctor"}, "tenant add acme"}}, "conformance worker": {}, "version": {}, "bench": {}, "orchestrator": {}, "worker": {}, "mcp": {}, "init": {},
}

// others are not in the README, and work under their roles all the same.
var others = []asked{
	{[]string{"agent-acme"}, "submit FILE:plan.json --run submitted"}, {[]string{"agent-acme", "viewer-acme", "approver-acme"}, "watch read-me"},
	{[]string{"operator-acme", "operator", "viewer-acme", "approver-acme"}, "tools show search"},
	{[]string{"agent-acme", "approver-acme", "viewer-acme", "operator-acme"}, "questions list"},
	{[]string{"operator"}, "tools remove mine"}, {[]string{"doctor"}, "doctor --fix"},
}

var commandLine = regexp.MustCompile(`\bstepjet ((?:[a-z]+)(?: [a-z]+)?)`)

// TestEveryCommandOfTheReadmeHasARole: a command that is added there has to be tried under its role here.
func TestEveryCommandOfTheReadmeHasARole(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, line := range strings.Split(string(text), "\n") {
		if !strings.Contains(line, "bin/stepjet ") && !strings.Contains(line, "`stepjet ") {
			continue
		}
		for _, m := range commandLine.FindAllStringSubmatch(line, -1) {
			first, _, _ := strings.Cut(m[1], " ")
			_, two := commands[m[1]]
			_, one := commands[first]
			require.True(t, one || two, "README.md has %q: say under which role it is tried", "stepjet "+m[1])
			seen[m[1]], seen[first] = true, true
		}
	}
	for name, of := range commands {
		require.True(t, len(of) == 0 || seen[name], "%s is tried and stands no more in README.md", name)
	}
}

// TestEveryCommandWorksUnderItsPrintedRole runs them one after the other, as a person would.
func TestEveryCommandWorksUnderItsPrintedRole(t *testing.T) {
	t.Parallel()
	inEach(t, map[string]shape{"accounts": {shards: 1}, "accounts, four shards": {shards: 4}, "declared tenants": {shards: 1, declared: true}, "one account": {shards: 1, oneAccount: true}}, func(t *testing.T, s *system) {
		s.staff()
		dir := t.TempDir()
		for file, text := range map[string]string{
			"plan.json": ownRecord, "tools.json": `{"tools":[{"name":"mine","description":"d","inputSchema":{"type":"object"}}]}`,
			"failing.json": `{"steps":[{"id":"a","tool":"fetch","arguments":{"fail":"until let"},"retry":{"max_attempts":1}}]}`,
		} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
		}
		said, code := s.types("agent-acme", dir, "run FILE:failing.json --run failed")
		require.Equal(t, 1, code, said)
		close(s.let)
		for _, name := range []string{"run", "list", "get", "retry", "dead list", "tools apply", "tools override", "tools export", "doctor", "provision"} {
			s.tryAll(dir, commands[name])
		}
		if s.shape.declared {
			said, code := s.types("doctor", dir, commands["tenant add"][0].args) // it prints permissions, of which nothing is to be read here
			require.Zero(t, code, said)
			s.tryAll(dir, []asked{{[]string{"doctor"}, "tenant list"}})
		}
		s.tryAll(dir, others)
	})
}

func (s *system) tryAll(dir string, list []asked) {
	s.t.Helper()
	for _, x := range list {
		for _, user := range x.users {
			said, code := s.types(user, dir, x.args)
			require.Zero(s.t, code, "%s, as %s: %s", x.args, user, said)
			for _, refused := range []string{"permission", "may not publish", "may not subscribe", "could not look", "problem "} {
				require.NotContains(s.t, said, refused, "%s, as %s", x.args, user)
			}
		}
	}
}

// types runs a command as a user, and gives all that it says.
func (s *system) types(user, dir, line string) (said string, code int) {
	s.t.Helper()
	args := strings.Fields(strings.ReplaceAll(line, "FILE:", dir+"/"))
	args = append(args, "--server", s.url(), "--nkey", s.seeds[user], "--inbox-prefix", s.grants[user].Inbox)
	if !strings.HasPrefix(line, "doctor") {
		args = append(args, "--tenant", "acme")
	}
	var out bytes.Buffer
	code = cli.Main(s.ctx(), cli.Env{Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }})
	return out.String(), code
}

// TestADryRunPublishesNothing: what an agent's program sends for it are requests that read, and nothing else.
func TestADryRunPublishesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, shape{})
	s.staff()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plan.json"), []byte(ownRecord), 0o600))
	said, code := s.types("agent-acme", dir, "run FILE:plan.json --dry-run")
	require.Zero(t, code, said)
	require.Contains(t, said, "search", "the registry was read")
	published := s.book.of(s.public["agent-acme"], "PUB")
	require.NotEmpty(t, published)
	for _, subject := range published {
		require.Regexp(t, `^\$(JS\.API\.(STREAM\.INFO|DIRECT\.GET)\.|SYS\.REQ\.USER\.INFO$)`, subject)
	}
	said, code = s.types("agent-acme", dir, "list -o json")
	require.Zero(t, code, said)
	require.NotContains(t, said, `"run"`, "no run is stored")
}
