package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/outcome"
)

// developing runs "stepjet dev" as a process of its own and gives its URL.
func developing(t *testing.T, data string, args ...string) (p *process, url string) {
	t.Helper()
	p = start(t, data, "", append([]string{"dev", "-o", "json", "--listen", "127.0.0.1:0"}, args...)...)
	var up struct{ URL, Data string }
	require.Eventually(t, func() bool {
		return json.Unmarshal([]byte(p.out.String()), &up) == nil && up.URL != ""
	}, patience, 10e6, "%v", &p.errs)
	require.Equal(t, data, up.Data)
	return p, up.URL
}

func TestDevServesTheOtherCommands(t *testing.T) {
	t.Parallel()
	data := folder(t)
	p, url := developing(t, data)

	stdout, stderr, code := execute(t, data, "", "submit", "-o", "json", "--run", "a b", examples+"weather.json")
	require.Equal(t, 0, code, stderr)
	require.JSONEq(t, `{"run":"a b","tenant":"default","attached":false}`, stdout)
	stdout, stderr, code = execute(t, data, "", "watch", "a b", "-o", "json")
	require.Equal(t, 0, code, stderr)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.Len(t, lines, 6, stdout) // start, four steps, end
	var last client.Event
	require.NoError(t, json.Unmarshal([]byte(lines[5]), &last))
	require.Equal(t, outcome.Succeeded, last.Outcome.Status)

	// By its URL too, as another tenant, with none of the others' runs.
	stdout, _, code = execute(t, folder(t), "", "list", "--server", url, "--tenant", "acme", "-o", "json")
	require.Zero(t, code)
	require.Equal(t, "[]\n", stdout)
	stdout, stderr, code = execute(t, folder(t), "", "validate", "--url", url, "-o", "json", "testdata/plans/invalid.json")
	require.Equal(t, 2, code)
	require.Empty(t, stderr, "tools are checked against the registry")
	require.Contains(t, stdout, "unknown_tool")

	// Cancel.
	stdout, _, code = execute(t, data, slowest, "submit", "--run", "slow", "-")
	require.Zero(t, code)
	require.Equal(t, "slow\n", stdout)
	_, _, code = execute(t, data, "", "get", "slow", "--wait", "100ms")
	require.Equal(t, 124, code)
	stdout, stderr, code = execute(t, data, "", "cancel", "slow", "nobody", "--by", "Ada")
	require.Equal(t, 1, code, "one of them isn't there")
	require.Contains(t, stdout, "slow  cancelled")
	require.Contains(t, stderr, "not_found:")
	_, stderr, code = execute(t, data, "", "get", "slow", "--wait", "30s", "--outcome")
	require.Equal(t, 1, code, stderr)
	stdout, _, code = execute(t, data, "", "get", "slow")
	require.Zero(t, code)
	require.Contains(t, stdout, "stopped by  Ada")
	_, stderr, code = execute(t, data, "", "cancel", "slow")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "already_finished:")
	for _, args := range [][]string{{"get", "nobody"}, {"watch", "nobody"}, {"get", "nobody", "--wait", "10s"}} {
		_, stderr, code = execute(t, data, "", args...)
		require.Equal(t, 1, code, args)
		require.Contains(t, stderr, "not_found:", args)
	}
	stdout, _, code = execute(t, data, "", "list", "--status", "cancelled", "-o", "json")
	require.Zero(t, code)
	require.Equal(t, 1, strings.Count(stdout, `"run":`))

	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, p.end(t), p.errs.String())
	// It is gone, but its data is there, and is served by whoever asks.
	stdout, stderr, code = execute(t, data, "", "get", "a b", "--step", "compare", "-o", "json")
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stdout, `"result":{"result":"Tokyo is 8.5 degrees warmer`)
}

const slowest = `{"steps":[{"id":"a","tool":"sleep","arguments":{"ms":600000}}]}`

// What is large goes from worker to dependent to the outcome on standard output, and to any client of NATS.
func TestLargeResults(t *testing.T) {
	t.Parallel()
	data := folder(t)
	_, url := developing(t, data)
	piece := strings.Repeat("0123456789abcdef", 8<<10) // 128 KiB
	refs := strings.TrimSuffix(strings.Repeat(`"$ref:piece.result",`, 16), ",")
	plan := fmt.Sprintf(`{"steps":[{"id":"piece","tool":"text_concat","arguments":{"parts":[%q]}},
		{"id":"large","tool":"text_concat","arguments":{"parts":[%s]}},
		{"id":"length","tool":"text_length","arguments":{"text":"$ref:large.result"}},
		{"id":"same","tool":"echo","arguments":"{\"all\":\"$ref:large\"}"}],"output_steps":["large","length","same"]}`, piece, refs)
	stdout, stderr, code := execute(t, data, plan, "run", "--run", "large", "-o", "json", "-")
	require.Equal(t, 0, code, stderr)
	o := decode(t, stdout)
	want := `{"result":"` + strings.Repeat(piece, 16) + `"}`
	large, _ := o.Results.Get("large")
	require.True(t, want == string(large), "2 MiB, byte for byte")
	length, _ := o.Results.Get("length")
	require.JSONEq(t, `{"result":2097152}`, string(length))
	same, _ := o.Results.Get("same")
	require.True(t, `{"all":`+want+`}` == string(same))
	require.True(t, strings.TrimSuffix(stdout, "\n") == stock(t, url, "large"), "a stock client reads the same outcome")

	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, `,{"id":"s%d","tool":"echo","arguments":{"i":%d}}`, i, i)
	}
	stdout, stderr, code = execute(t, data, `{"steps":[`+b.String()[1:]+`]}`, "run", "--run", "wide", "-o", "json", "-q", "-")
	require.Equal(t, 0, code, stderr)
	o = decode(t, stdout)
	require.Len(t, o.Results, 10_000)
	for i, r := range o.Results {
		require.Equal(t, fmt.Sprintf("s%d", i), r.Step)
		require.Equal(t, fmt.Sprintf(`{"i":%d}`, i), string(r.JSON))
	}
	require.True(t, strings.TrimSuffix(stdout, "\n") == stock(t, url, "wide"))
}

// stock reads the outcome of a run with nothing but a NATS client: a key of the history bucket, and its blob if it is
// large.
func stock(t *testing.T, url, run string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	history, err := js.KeyValue(ctx, "history")
	require.NoError(t, err)
	entry, err := history.Get(ctx, "default."+run)
	require.NoError(t, err)
	raw := entry.Value()
	var head struct {
		Blob *struct{ Name string } `json:"blob"`
	}
	require.NoError(t, json.Unmarshal(raw, &head))
	if head.Blob != nil {
		blobs, err := js.ObjectStore(ctx, "blobs")
		require.NoError(t, err)
		raw, err = blobs.GetBytes(ctx, head.Blob.Name)
		require.NoError(t, err)
	}
	var doc struct {
		Outcome json.RawMessage `json:"outcome"`
	}
	require.NoError(t, json.NewDecoder(bytes.NewReader(raw)).Decode(&doc))
	return string(doc.Outcome)
}

func TestDevWithItsOwnTools(t *testing.T) {
	t.Parallel()
	data := folder(t)
	tools := filepath.Join(t.TempDir(), "tools.json")
	require.NoError(t, os.WriteFile(tools, []byte(`{"tools":[{"builtin":"echo"}]}`), 0o600))
	developing(t, data, "--tools", tools)
	listed, _, code := execute(t, data, "", "tools", "list", "-o", "json")
	require.Zero(t, code)
	require.Equal(t, 1, strings.Count(listed, `"name":`))
	// Tools of one's own come with a toolworker of one's own, which joins the Stepjet that runs there.
	own := filepath.Join(t.TempDir(), "own.json")
	require.NoError(t, os.WriteFile(own, []byte(`{"tools":[{"builtin":"all"}]}`), 0o600))
	stdout, stderr, code := execute(t, data, "", "run", "--tools", own, "-o", "json", examples+"weather.json")
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stderr, "joining")
	require.Equal(t, outcome.Succeeded, decode(t, stdout).Status)

	// What is wrong with servers of MCP is said, as a worker says it.
	servers := filepath.Join(t.TempDir(), ".mcp.json")
	require.NoError(t, os.WriteFile(servers, []byte(`{"mcpServers":{"gone":{"command":"/nowhere/at/all"}}}`), 0o600))
	_, stderr, code = execute(t, folder(t), "", "dev", "--mcp", servers)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, `level=WARN msg="an MCP server can't be reached`)
	require.Contains(t, stderr, "server=gone")
	require.Contains(t, stderr, "no tool of the MCP servers")

	require.NoError(t, os.WriteFile(tools, []byte(`{"tools":[{"builtin":"ekko"},{"name":"x"}]}`), 0o600))
	_, stderr, code = execute(t, folder(t), "", "dev", "--tools", tools)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "/tools/0")
	require.Contains(t, stderr, "/tools/1")
}
