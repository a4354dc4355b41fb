package bridge

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/stepjettest"
	"github.com/stepjet/stepjet/worker"
)

var kills = flag.Int("kills", 3, "how often TestKilledBridges kills a worker")

// workerVariable makes the test's program a worker with a bridge; its value is the file of servers.
const workerVariable = "BRIDGE_TEST_WORKER"

func runWorker(file string) error {
	nc, err := nats.Connect(os.Getenv("NATS_URL"))
	if err != nil {
		return err
	}
	b, err := Open(context.Background(), Options{File: file, TrustFirstUse: true})
	if err != nil {
		return err
	}
	w, err := worker.New(nc, worker.Config{})
	if err == nil {
		err = b.Register(w)
	}
	if err != nil {
		return err
	}
	go func() {
		<-w.Ready()
		fmt.Println("ready")
	}()
	return w.Run(context.Background())
}

// spawn starts a worker in a process of its own and waits until it takes steps.
func spawn(t *testing.T, url, file string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), workerVariable+"="+file, "NATS_URL="+url)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	ready := make([]byte, len("ready"))
	_, err = out.Read(ready)
	require.NoError(t, err)
	return cmd
}

// A worker that is killed in the middle of a call loses nothing: the same attempt is handed out again, and no process
// of its servers is left.
func TestKilledBridges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := fileOf(t, map[string]any{"s": childEntry(t, dir)})
	w := &world{Stack: stepjettest.New(t), t: t, file: file}
	var runs []*client.Run
	for i := range *kills {
		name := fmt.Sprint("k", i)
		cmd := spawn(t, w.URL(), file)
		run, err := w.Client().Submit(w.ctx(), []byte(`{"steps":[{"id":"s","tool":"s_waits","arguments":{"name":"`+name+`"}}]}`), client.SubmitOptions{})
		require.NoError(t, err)
		runs = append(runs, run)
		w.eventually("the call begins", func() bool { return exists(filepath.Join(dir, name+".began")) })
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".go"), nil, 0o600))
	}
	last := spawn(t, w.URL(), file)
	for _, run := range runs {
		end, err := run.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, outcome.Succeeded, end.Status, "%s", end.JSON())
		doc, err := w.Client().Get(w.ctx(), run.ID())
		require.NoError(t, err)
		require.Equal(t, 1, doc.Steps[0].Attempts, "the same attempt")
	}
	require.NoError(t, last.Process.Kill())
	_ = last.Wait()
	require.Len(t, pids(t, dir), *kills+1)
	w.eventually("no process is left", func() bool {
		for _, pid := range pids(t, dir) {
			if p, err := os.FindProcess(pid); err == nil && p.Signal(zero) == nil {
				return false
			}
		}
		return true
	})
}

// What a call costs: to the server itself, as a run of one step, and in a run of 200 beside each other.
func BenchmarkBridge(b *testing.B) {
	dir := b.TempDir()
	w := start(b, map[string]any{"s": childEntry(b, dir)})
	args := json.RawMessage(`{"a":1}`)
	b.Run("direct", func(b *testing.B) {
		var echo *bridged
		for _, t := range w.bridge.tools {
			if t.name == "echo" {
				echo = t
			}
		}
		for b.Loop() {
			if _, err := echo.call(context.Background(), args); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("step", func(b *testing.B) {
		for b.Loop() {
			w.succeeds("s_echo", `{"a":1}`)
		}
	})
	for _, tool := range []string{"s_echo", "none"} {
		b.Run("wide200/"+tool, func(b *testing.B) {
			if tool == "none" {
				w.Host(func(worker_ *worker.Worker) {
					worker.Handle(worker_, "none", func(_ context.Context, in map[string]int) (map[string]int, error) { return in, nil })
				})
			}
			plan := `{"steps":[`
			for i := range 200 {
				if i > 0 {
					plan += ","
				}
				plan += fmt.Sprintf(`{"id":"s%d","tool":"%s","arguments":{"a":%d}}`, i, tool, i)
			}
			plan += `]}`
			for b.Loop() {
				if out := w.Run(plan); out.Status != outcome.Succeeded {
					b.Fatalf("%s", out.JSON())
				}
			}
		})
	}
}
