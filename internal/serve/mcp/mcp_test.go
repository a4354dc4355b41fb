package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/serve/files"
)

// command is the command with nothing around it.
func command(t *testing.T, out *bytes.Buffer, args ...string) error {
	t.Helper()
	return saying(t, out, &bytes.Buffer{}, args...)
}

// saying is the command, and what it says beside its result.
func saying(t *testing.T, out, said *bytes.Buffer, args ...string) error {
	t.Helper()
	c := Command(Surroundings{
		Stdin: bytes.NewReader(nil), Stdout: out, Tenant: func() string { return "default" },
		Logger:    func() *slog.Logger { return slog.New(slog.DiscardHandler) },
		Say:       func(format string, a ...any) { fmt.Fprintf(said, format, a...) },
		Quote:     func(s string) string { return "<" + s + ">" },
		Arguments: func() []string { return []string{"--url", "nats://host", "--data", "/a folder"} },
		Work:      func(do func(*cobra.Command, []string) error) func(*cobra.Command, []string) error { return do },
		Open: func(context.Context, string, files.Tenant) (*client.Client, func(), error) {
			return nil, nil, errors.New("nothing is opened")
		},
	})
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(args)
	return c.ExecuteContext(t.Context())
}

func TestWhatAClientsConfigurationSays(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	for client, key := range map[string]string{
		"claude-desktop": "mcpServers", "claude-code": "mcpServers", "cursor": "mcpServers", "vscode": "servers",
	} {
		var out, said bytes.Buffer
		require.NoError(t, saying(t, &out, &said, "install", client, "--expose", "seats_*,book"))
		var doc map[string]map[string]struct {
			Type    string
			Command string
			Args    []string
		}
		require.NoError(t, json.Unmarshal(out.Bytes(), &doc))
		entry := doc[key]["stepjet"]
		assert.Equal(t, self, entry.Command)
		assert.Equal(t, []string{"mcp", "--url", "nats://host", "--data", "/a folder", "--expose", "seats_*,book"}, entry.Args)
		if client == "claude-code" {
			assert.Contains(t, said.String(), self+" mcp --url nats://host --data </a folder> --expose <seats_*,book>", "a shell takes it as it is")
		}
		assert.Equal(t, client == "vscode", entry.Type == "stdio")
	}
	assert.Equal(t, fault.InvalidConfig, fault.CodeOf(command(t, &bytes.Buffer{}, "install", "emacs")))
}

func TestWrongSettingsAreFoundBeforeAnythingIsOpened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	auth := write("auth.json", `{"tokens": [{"sha256": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae", "tenant": "a", "scopes": ["plans:run"]}]}`)
	for _, args := range [][]string{
		{"--max-result", "much"}, {"--max-result", "0"}, {"--max-result", "10GiB"}, {"--max-result", "12 B"},
		{"--hold", "1ms"}, {"--task-after", "-1s"},
		{"--key-file", write("none", "")}, {"--key-file", filepath.Join(dir, "absent")},
		{"--auth", write("empty.json", "{}")}, {"--auth", auth},
		{"--tenants", write("tenants.json", "[]")},
		{"--context", "bad key"}, {"--context-claim", "sub"}, {"--context-header", "X-Up"},
		{"--listen", "0.0.0.0:0"},
	} {
		assert.Equal(t, fault.InvalidConfig, fault.CodeOf(command(t, &bytes.Buffer{}, args...)), args)
	}
	assert.Equal(t, fault.InvalidValue, fault.CodeOf(command(t, &bytes.Buffer{}, "--expose", "/(/")))
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"48KiB": 48 << 10, "1MiB": 1 << 20, "100B": 100, "5000": 5000, "2 KiB": 2048} {
		n, err := size(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, n)
	}
}

func TestOnlyTenantsWithCredentialsAreServed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tenants.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"acme": {"creds": "acme.creds", "approver": "boss.creds"}}`), 0o600))
	all, err := files.Tenants(path)
	require.NoError(t, err)
	var asked string
	o := &opener{creds: all, strict: true, s: Surroundings{Open: func(_ context.Context, _ string, as files.Tenant) (*client.Client, func(), error) {
		asked = as.Creds
		return nil, func() {}, nil
	}}}
	_, err = o.client(t.Context(), "acme")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(filepath.Dir(path), "acme.creds"), asked)
	_, err = o.approver(t.Context(), "acme")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(filepath.Dir(path), "boss.creds"), asked)
	_, err = o.client(t.Context(), "other")
	assert.Equal(t, fault.Permission, fault.CodeOf(err))
	o.close()
}
