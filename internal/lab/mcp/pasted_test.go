package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/programs"
)

// shopVariable makes the test's program an MCP server on stdio; its value is the currency that it counts in.
const shopVariable = "LAB_TEST_SHOP"

func TestMain(m *testing.M) {
	if currency := os.Getenv(shopVariable); currency != "" {
		if err := serveShop(currency); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serveShop serves two tools on standard input and output until the input ends.
func serveShop(currency string) error {
	s := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	type article struct {
		Article string `json:"article"`
	}
	type price struct {
		Price    int    `json:"price"`
		Currency string `json:"currency"`
		PID      string `json:"pid"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "price", Description: "Returns what an article costs."},
		func(_ context.Context, _ *mcp.CallToolRequest, in article) (*mcp.CallToolResult, price, error) {
			return nil, price{len(in.Article), currency, strconv.Itoa(os.Getpid())}, nil
		})
	type sums struct {
		Of []int `json:"of"`
	}
	type sum struct {
		Sum int `json:"sum"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "sum", Description: "Adds prices."},
		func(_ context.Context, _ *mcp.CallToolRequest, in sums) (*mcp.CallToolResult, sum, error) {
			n := 0
			for _, x := range in.Of {
				n += x
			}
			return nil, sum{n}, nil
		})
	return s.Run(context.Background(), &mcp.StdioTransport{})
}

// within is what it may take from a pasted file to the first plan.
const within = time.Minute

// pasted is a folder in which somebody has pasted a file of servers.
type pasted struct {
	t            *testing.T
	dir, program string
}

func (p *pasted) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(p.t.Context(), p.program, args...)
	cmd.Dir = p.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "TMPDIR=" + os.TempDir(), "STEPJET_DATA=" + filepath.Join(p.dir, "data"), "CURRENCY=crowns",
	}
	return cmd
}

// says runs a command to its end and returns what it printed.
func (p *pasted) says(stdin string, args ...string) string {
	p.t.Helper()
	var out, errs bytes.Buffer
	cmd := p.command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	require.NoError(p.t, cmd.Run(), "%s: %s %s", args, &out, &errs)
	return out.String()
}

// Somebody pastes the .mcp.json of their client and runs a plan over its tools: two commands, and no minute until the
// outcome is there.
func TestFromAPastedFileToTheFirstPlan(t *testing.T) {
	p := &pasted{t: t, dir: t.TempDir()}
	require.NoError(t, programs.Build(p.dir, "./cmd/stepjet"))
	p.program = filepath.Join(p.dir, "stepjet")
	self, err := os.Executable()
	require.NoError(t, err)

	began := time.Now()
	file, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"shop": map[string]any{
		"type": "stdio", "command": self, "args": []string{}, "env": map[string]string{shopVariable: "${CURRENCY:-pounds}"},
	}}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(p.dir, ".mcp.json"), file, 0o600))

	dev := p.command("dev", "--mcp", ".mcp.json", "--listen", "127.0.0.1:0", "--ui", "off", "-o", "json")
	var errs bytes.Buffer
	dev.Stderr = &errs
	out, err := dev.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, dev.Start())
	over := false
	end := func() {
		if !over {
			over = true
			_ = dev.Process.Signal(syscall.SIGTERM) // it may have ended
			require.NoError(t, dev.Wait(), "%s", &errs)
		}
	}
	t.Cleanup(end)
	var up struct{ URL string }
	require.NoError(t, json.NewDecoder(out).Decode(&up))

	require.Contains(t, p.says("", "tools", "list"), "shop_price")
	said := p.says(`{"steps": [
		{"id": "tea", "tool": "shop_price", "arguments": {"article": "tea"}},
		{"id": "coffee", "tool": "shop_price", "arguments": {"article": "coffee"}},
		{"id": "both", "tool": "shop_sum", "arguments": {"of": ["$ref:tea.price", "$ref:coffee.price"]}}],
		"output": {"sum": "$ref:both.sum", "in": "$ref:tea.currency", "pid": "$ref:tea.pid"}}`, "run", "-o", "json", "-")
	took := time.Since(began)
	t.Logf("the outcome was there after %s", took)
	var o struct {
		Status string
		Output struct {
			Sum     int
			In, PID string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(said), &o), said)
	require.Equal(t, "succeeded", o.Status, said)
	require.Equal(t, 9, o.Output.Sum)
	require.Equal(t, "crowns", o.Output.In)
	require.LessOrEqual(t, took, within)
	lock, err := os.ReadFile(filepath.Join(p.dir, "mcp.lock"))
	require.NoError(t, err)
	require.Contains(t, string(lock), `"price"`, "what was agreed to is kept")

	pid, err := strconv.Atoi(o.Output.PID)
	require.NoError(t, err)
	shop, err := os.FindProcess(pid)
	require.NoError(t, err)
	const zero = syscall.Signal(0) // asks whether it is there
	require.NoError(t, shop.Signal(zero), "the server is a process of its own")
	end()
	require.Eventually(t, func() bool { return errors.Is(shop.Signal(zero), os.ErrProcessDone) }, within, 10*time.Millisecond, "it ends with dev")
}
