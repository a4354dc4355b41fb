package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// serverVariable holds, as JSON, the options of a server that this program is to be instead of its tests: one that can be
// killed.
const serverVariable = "STEPJET_E2E_SERVER"

const serverReady = "the server takes connections"

// serve runs a server until standard input ends, which the test holds open.
func serve(text string) int {
	var o embedded.Options
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		_, err = embedded.Start(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintln(os.Stderr, serverReady)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// serverProcess starts a server as a process of its own.
func serverProcess(t testing.TB, o embedded.Options) *process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	text, err := json.Marshal(o)
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), serverVariable+"="+string(text))
	_, err = cmd.StdinPipe()
	require.NoError(t, err)
	p := launch(t, "server", cmd)
	p.says(serverReady)
	return p
}

// freeAddress returns one of the loopback interface that nobody listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// house is everything, each part a process of its own.
type house struct {
	t       testing.TB
	options embedded.Options
	all     []*process
}

func (h *house) start() {
	h.t.Helper()
	h.all = []*process{serverProcess(h.t, h.options)}
	url := "nats://" + h.options.Listen
	for _, args := range [][]string{{"orchestrator", "--name", "first"}, {"orchestrator", "--name", "second"}, {"toolworker"}} {
		p := begin(h.t, url, args[0], args[1:]...)
		p.says("msg=ready")
		h.all = append(h.all, p)
	}
}

// fall is kill -9 of everything, the server first.
func (h *house) fall() {
	for _, p := range h.all {
		require.NoError(h.t, p.cmd.Process.Kill())
	}
	for _, p := range h.all {
		<-p.gone
	}
}

// client connects to the server of now.
func (h *house) client() (*nats.Conn, *client.Client) {
	h.t.Helper()
	nc, err := nats.Connect("nats://"+h.options.Listen, nats.Timeout(time.Minute))
	require.NoError(h.t, err)
	h.t.Cleanup(nc.Close)
	c, err := client.New(within(h.t, time.Minute), nc, client.Config{})
	require.NoError(h.t, err)
	h.t.Cleanup(c.Close)
	return nc, c
}

// asked waits until a run waits for so many answers, and returns them by step.
func asked(t testing.TB, c *client.Client, run string, n int) map[string]*outcome.Question {
	t.Helper()
	by := map[string]*outcome.Question{}
	require.Eventually(t, func() bool {
		all, err := c.Questions(within(t, time.Minute), run)
		clear(by)
		for _, q := range all {
			by[q.Step] = q
		}
		return err == nil && len(by) == n
	}, 2*time.Minute, 20*time.Millisecond)
	return by
}

// waits is a run with an approval, one for each item, and a value that is asked for. What it adds is counted once.
const waits = `{"steps":[
	{"id":"order","tool":"add","arguments":{"a":40,"b":2}},
	{"id":"pay","tool":"add","arguments":{"a":"$ref:order.result","b":1},"approval":{"ask":"Pay ${ref:order.result}?"}},
	{"id":"each","tool":"add","approval":true,"for_each":{"in":[1,2]},"arguments":{"a":"$ref:item","b":"$ref:order.result"}},
	{"id":"name","tool":"ask","arguments":{"question":"Who?"}},
	{"id":"sum","tool":"add","arguments":{"a":"$ref:pay.result","b":"$ref:each[0].data.result"},"depends_on":["name"]}],
	"output_steps":["sum","name","each"]}`

// answers lets everything begin but the second item, by questions that may have been read before everything fell.
func answers(t testing.TB, c *client.Client, q map[string]*outcome.Question) {
	t.Helper()
	_, err := c.Approve(within(t, time.Minute), q["pay"], client.Answer{Arguments: json.RawMessage(`{"a":7,"b":1}`), By: "ann"})
	require.NoError(t, err)
	_, err = c.Approve(within(t, time.Minute), q["each=0"], client.Answer{By: "ann"})
	require.NoError(t, err)
	_, err = c.Answer(within(t, time.Minute), q["each=1"], json.RawMessage(`{"result":0}`), client.Answer{By: "ann"})
	require.NoError(t, err)
	_, err = c.Answer(within(t, time.Minute), q["name"], json.RawMessage(`"Ada"`), client.Answer{By: "ann"})
	require.NoError(t, err)
}

// told is what a run came to, but for how long it took.
func told(t testing.TB, c *client.Client, run string) string {
	t.Helper()
	r, err := c.Attach(run)
	require.NoError(t, err)
	o, err := r.Wait(within(t, 2*time.Minute))
	require.NoError(t, err)
	o.Run, o.Generation, o.Stats.ElapsedMS = "", 0, 0
	return string(o.JSON())
}

// TestApprovalsOutliveEverything: server, orchestrators and worker are killed while an approval waits. After the restart the
// same question stands, the answer to it decides, and the run comes to what it comes to when nobody dies.
func TestApprovalsOutliveEverything(t *testing.T) {
	t.Parallel()
	h := &house{t: t, options: embedded.Options{Dir: t.TempDir(), Listen: freeAddress(t)}}
	h.start()
	_, c := h.client()
	_, err := c.Submit(within(t, time.Minute), []byte(waits), client.SubmitOptions{Run: "calm"})
	require.NoError(t, err)
	answers(t, c, asked(t, c, "calm", 4))
	want := told(t, c, "calm")

	_, err = c.Submit(within(t, time.Minute), []byte(waits), client.SubmitOptions{Run: "hit"})
	require.NoError(t, err)
	before := asked(t, c, "hit", 4)
	for range 2 {
		h.fall()
		h.start()
	}
	nc, c := h.client()
	after := asked(t, c, "hit", 4)
	for step, q := range after {
		require.Equal(t, 1, q.Number, "%s is asked once", step)
		require.Equal(t, before[step].Digest, q.Digest, "the same of %s", step)
		require.Equal(t, before[step].Since, q.Since)
	}
	answers(t, c, before)
	require.Equal(t, want, told(t, c, "hit"))
	doc, err := c.Get(within(t, time.Minute), "hit")
	require.NoError(t, err)
	for _, s := range doc.Steps {
		require.LessOrEqual(t, s.Attempts, len(s.Items)+1, "%s: nothing was executed twice", s.ID)
	}
	require.Equal(t, "approved", doc.Steps[1].Answer.Decision)
	require.Equal(t, "ann", doc.Steps[1].Answer.By)
	requireAnswersOnce(t, nc, doc)
	asked(t, c, "hit", 0)
}

// requireAnswersOnce has the ledger hold one answer to each question of a run.
func requireAnswersOnce(t testing.TB, nc *nats.Conn, doc *outcome.Run) {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	stream, err := js.Stream(within(t, time.Minute), subjects.LedgerStream(0))
	require.NoError(t, err)
	of := subjects.GenerationFilter(subjects.NewRun(doc.Tenant, doc.Run), doc.Generation, 1)
	info, err := stream.Info(within(t, time.Minute), jetstream.WithSubjectFilter(of))
	require.NoError(t, err)
	numbers := map[string]int{}
	for subject := range info.State.Subjects {
		if rec, ok := subjects.ParseRecord(subject); ok && rec.Kind == subjects.AnswerKind {
			numbers[rec.Step] = max(numbers[rec.Step], rec.Number)
		}
	}
	require.Equal(t, map[string]int{"pay": 1, "each=0": 1, "each=1": 1, "name": 1}, numbers)
}
