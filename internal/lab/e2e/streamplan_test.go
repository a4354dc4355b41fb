package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// writerVariable says which tool this program is to host instead of its tests, at which server, and in which directory it says what it
// does and waits for what it may: "compose" is a planner that writes slowly, "look" a tool.
const writerVariable = "STEPJET_E2E_WRITER"

const writerReady = "it hosts its tool"

// hostsAlone hosts one of them until it is killed.
func hostsAlone(text string) int {
	name, rest, _ := strings.Cut(text, " ")
	url, dir, _ := strings.Cut(rest, " ")
	nc, err := nats.Connect(url, nats.MaxReconnects(-1))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	w, err := worker.New(nc, worker.Config{Name: fmt.Sprint(name, "-", os.Getpid())})
	d := &tool.Definition{Name: name, Orchestration: &tool.Orchestration{TimeoutMS: 60_000, Retry: &tool.Retry{MaxAttempts: 5}}}
	does := map[string]func(context.Context, json.RawMessage) (worker.Output, error){"compose": compose(dir), "look": look(dir)}
	if name == "compose" {
		d.Orchestration.Request = tool.WholeRequest
	}
	if err == nil {
		err = w.HandleRaw(d, does[name])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		<-w.Ready()
		fmt.Fprintln(os.Stderr, writerReady)
	}()
	if err := w.Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

// until waits for a file.
func until(ctx context.Context, path string) error {
	for {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// compose writes the same answer each time: the beginning of it at once, the end when it may.
func compose(dir string) func(context.Context, json.RawMessage) (worker.Output, error) {
	return func(ctx context.Context, sent json.RawMessage) (worker.Output, error) {
		var r struct {
			Round int
			Began []struct{ ID string }
		}
		if err := json.Unmarshal(sent, &r); err != nil {
			return worker.Output{}, err
		}
		if r.Round > 0 {
			return worker.Output{Body: []byte(`{"output":["$ref:r0.a.n","$ref:r0.b.n","$ref:r0.c.n"]}`)}, nil
		}
		for _, b := range r.Began {
			if err := appendLine(filepath.Join(dir, "told"), b.ID); err != nil {
				return worker.Output{}, err
			}
		}
		steps := worker.NewStream(ctx)
		const begins = `{"steps":[{"id":"a","tool":"look","arguments":{"n":1,"as":"a"}},{"id":"b","tool":"look","arguments":{"n":"$ref:a.n","as":"b"}}`
		const ends = `,{"id":"c","tool":"look","arguments":{"n":"$ref:b.n","as":"c"}}]}`
		steps.Text(begins)
		if err := until(ctx, filepath.Join(dir, "write on")); err != nil {
			return worker.Output{}, err
		}
		steps.Text(ends)
		return worker.Output{Body: []byte(begins + ends)}, nil
	}
}

// look says that it was called, and answers when it may.
func look(dir string) func(context.Context, json.RawMessage) (worker.Output, error) {
	return func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
		var in struct {
			N  int
			As string
		}
		if err := json.Unmarshal(args, &in); err != nil {
			return worker.Output{}, err
		}
		if err := appendLine(filepath.Join(dir, "called"), in.As); err != nil {
			return worker.Output{}, err
		}
		if err := until(ctx, filepath.Join(dir, "answer "+in.As)); err != nil {
			return worker.Output{}, err
		}
		return worker.Output{Body: fmt.Appendf(nil, `{"n":%d}`, 10*in.N)}, nil
	}
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// TestAStreamedRoundOutlivesWhoCarriesIt: while a planner writes, its worker, that of its tool and the only orchestrator are killed with -9, when
// a step that had begun is being made, or is over and the next one is. The agent comes to what it comes to in peace. No call is made
// twice, but the one at which its worker was killed.
func TestAStreamedRoundOutlivesWhoCarriesIt(t *testing.T) {
	t.Parallel()
	for _, victim := range []string{"orchestrator", "compose", "look"} {
		for _, at := range []string{"a", "b"} {
			t.Run(victim+" while "+at+" is made", func(t *testing.T) {
				t.Parallel()
				streamedRoundOutlives(t, victim, at)
			})
		}
	}
}

func streamedRoundOutlives(t *testing.T, victim, at string) {
	srv, url := server(t)
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	hosts := func(name string) func() *process {
		return func() *process {
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), writerVariable+"="+name+" "+url+" "+dir)
			p := launch(t, name, cmd)
			p.says(writerReady)
			return p
		}
	}
	c := &crew{alive: map[string]*process{}, begin: map[string]func() *process{"compose": hosts("compose"), "look": hosts("look"), "orchestrator": func() *process {
		p := begin(t, url, "orchestrator", "--ack-wait", "2s")
		p.says("msg=ready")
		return p
	}}}
	for _, who := range []string{"orchestrator", "compose", "look"} {
		c.alive[who] = c.begin[who]()
	}
	lines := func(name string) (all []string) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if !errors.Is(err, os.ErrNotExist) {
			require.NoError(t, err)
		}
		return strings.Fields(string(text))
	}
	let := func(name string) { require.NoError(t, appendLine(filepath.Join(dir, name), "")) }
	_, mine := connect(t, srv)
	r, err := mine.Submit(within(t, time.Minute), []byte(`{"steps":[{"id":"a","agent":{"planner":{"tool":"compose","mode":"plan"},"tools":["look"],"stream_plan":true}}]}`), client.SubmitOptions{Run: "streamed"})
	require.NoError(t, err)
	begun := func(id string) {
		require.Eventually(t, func() bool { return len(lines("called")) > 0 && lines("called")[len(lines("called"))-1] == id }, time.Minute, 5*time.Millisecond)
	}
	begun("a")
	if at == "b" {
		let("answer a")
		begun("b")
	}
	c.kill(victim)
	if at == "a" && victim == "compose" { // what had begun goes on meanwhile, and is over before the next attempt or behind its beginning
		let("answer a")
	}
	if victim == "compose" {
		require.Eventually(t, func() bool { return len(lines("told")) > 0 }, 2*time.Minute, 5*time.Millisecond, "the next attempt is told what had begun")
	}
	for _, name := range []string{"answer a", "answer b", "answer c", "write on"} {
		let(name)
	}
	o, err := r.Wait(within(t, 2*time.Minute))
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	got, _ := o.Results.Get("a")
	require.JSONEq(t, `[10,100,1000]`, string(got))
	times := map[string]int{}
	for _, id := range lines("called") {
		times[id]++
	}
	want := map[string]int{"a": 1, "b": 1, "c": 1}
	if victim == "look" {
		want[at] = 2 // of a tool that is not at_most_once
	}
	require.Equal(t, want, times)
	if victim == "compose" {
		require.Subset(t, lines("told"), []string{at}, "of what had begun the next attempt is told")
	} else {
		require.Empty(t, lines("told"))
	}
}
