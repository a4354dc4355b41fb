package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/programs"
	"github.com/stepjet/stepjet/stepjettest"
	"github.com/stepjet/stepjet/worker"
)

var kills = flag.Int("kills", 10, "how often a server is killed in TestAKilledServerLosesNoTask")

// serving is a process of "stepjet mcp".
type serving struct {
	cmd *exec.Cmd
	url string
}

func startServing(t *testing.T, program, nats string) *serving {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "mcp", "--url", nats, "--listen", "127.0.0.1:0", "--expose", "*", "--task-after", "1ns")
	errs, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	s := &serving{cmd: cmd}
	lines := bufio.NewScanner(errs)
	for s.url == "" {
		require.True(t, lines.Scan(), "the server ended")
		if _, url, ok := strings.Cut(lines.Text(), "http://"); ok {
			s.url = "http://" + url
		}
	}
	go func() { _, _ = io.Copy(io.Discard, errs) }()
	return s
}

func (s *serving) kill() {
	_ = s.cmd.Process.Kill() // it may be dead
	_ = s.cmd.Wait()         // killed, as it says
}

// ask sends a request of 2026-07-28 and returns its result; ok is false where the server is gone.
func (s *serving) ask(ctx context.Context, method, name string, params map[string]any) (result map[string]json.RawMessage, ok bool) {
	meta := map[string]any{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientCapabilities": map[string]any{"extensions": map[string]any{"io.modelcontextprotocol/tasks": struct{}{}}},
	}
	if key, there := params["key"]; there {
		delete(params, "key")
		meta["io.stepjet/idempotency-key"] = key
	}
	params["_meta"] = meta
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return nil, false
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name,
	} {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, false
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, false
	}
	last := string(text)
	for line := range strings.Lines(last) {
		if data, found := strings.CutPrefix(strings.TrimSpace(line), "data: "); found {
			last = data
		}
	}
	var a struct{ Result map[string]json.RawMessage }
	return a.Result, json.Unmarshal([]byte(last), &a) == nil && a.Result != nil
}

// A server is killed around the moment in which it hands out a task. Whoever was given the handle gets the result from
// another server; whoever was not asks again under the same name, and nothing runs twice.
func TestAKilledServerLosesNoTask(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, programs.Build(dir, "./cmd/stepjet"))
	stack := stepjettest.New(t)
	var calls atomic.Int32
	stepjettest.Register(stack, "work", func(context.Context, struct{}) (string, error) {
		calls.Add(1)
		return "done", nil
	}, worker.Description("Works."))
	program := filepath.Join(dir, "stepjet")
	handed := 0
	for i := range *kills {
		s := startServing(t, program, stack.URL())
		params := func() map[string]any {
			return map[string]any{"name": "work", "arguments": struct{}{}, "key": fmt.Sprintf("call-%d", i)}
		}
		_, ok := s.ask(t.Context(), "tools/list", "", map[string]any{}) // so that it has connected
		require.True(t, ok)
		// Every other server is killed right after the handle, the others a little later each time: before the plan is
		// stored, in between, and at times after the handle.
		after := time.Duration(i%20) * 250 * time.Microsecond
		if i%2 == 0 {
			after = time.Minute
		}
		timer := time.AfterFunc(after, func() { _ = s.cmd.Process.Kill() })
		result, ok := s.ask(t.Context(), "tools/call", "work", params())
		timer.Stop()
		s.kill()
		next := startServing(t, program, stack.URL())
		var handle string
		if ok {
			_ = json.Unmarshal(result["taskId"], &handle) // a result that came at once has none
			handed++
		}
		require.Eventually(t, func() bool {
			if handle == "" {
				result, ok = next.ask(t.Context(), "tools/call", "work", params())
				if !ok || json.Unmarshal(result["taskId"], &handle) != nil {
					return ok && strings.Contains(string(result["content"]), "done")
				}
			}
			got, ok := next.ask(t.Context(), "tasks/get", handle, map[string]any{"taskId": handle})
			return ok && strings.Contains(string(got["result"]), "done")
		}, 30*time.Second, 20*time.Millisecond, "call %d", i)
		next.kill()
	}
	assert.Equal(t, *kills, int(calls.Load()), "each ran once")
	assert.GreaterOrEqual(t, handed, (*kills+1)/2, "those that were killed after the handle")
	t.Logf("%d of %d calls had their answer before the kill", handed, *kills)
}
