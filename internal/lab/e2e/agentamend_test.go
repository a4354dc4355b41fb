package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// plannerVariable holds the address of the server for which this program is to host a planner instead of its tests: one that
// can be killed.
const plannerVariable = "STEPJET_E2E_PLANNER"

const plannerReady = "the planner hosts its tool"

// amendedAgentRounds are how many rounds of the agent people amend.
const amendedAgentRounds = 3

// plansAlone hosts the planner until it is killed. Each of its rounds waits for a person, so that it can be amended meanwhile;
// in the end it puts forward what all calls of all rounds came to.
func plansAlone(url string) int {
	nc, err := nats.Connect(url, nats.MaxReconnects(-1))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	w, err := worker.New(nc, worker.Config{Name: fmt.Sprint("planner-", os.Getpid())})
	if err == nil {
		err = w.HandleRaw(&tool.Definition{Name: "devise", Orchestration: &tool.Orchestration{Request: tool.WholeRequest, TimeoutMS: 60_000}}, devise)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		<-w.Ready()
		fmt.Fprintln(os.Stderr, plannerReady)
	}()
	if err := w.Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

func devise(_ context.Context, sent json.RawMessage) (worker.Output, error) {
	var r struct {
		Round  int
		Rounds []struct {
			Records []struct {
				ID, Status string
				Result     json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(sent, &r); err != nil {
		return worker.Output{}, err
	}
	time.Sleep(200 * time.Millisecond) // so that it is killed while it is asked
	if r.Round < amendedAgentRounds {
		return worker.Output{Body: []byte(`{"steps":[{"id":"one","tool":"add","arguments":{"a":0,"b":1}},{"id":"hold","tool":"ask","arguments":{"question":"Is that all?"}}]}`)}, nil
	}
	all := map[string]json.RawMessage{}
	for n, of := range r.Rounds {
		for _, rec := range of.Records {
			if all[fmt.Sprintf("%d %s", n, rec.ID)] = rec.Result; rec.Status != "succeeded" {
				all[fmt.Sprintf("%d %s", n, rec.ID)] = []byte(`"` + rec.Status + `"`)
			}
		}
	}
	body, err := json.Marshal(map[string]any{"output": all})
	return worker.Output{Body: body}, err
}

// plannerProcess starts the planner as a process of its own.
func plannerProcess(t testing.TB, url string) *process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), plannerVariable+"="+url)
	p := launch(t, "planner", cmd)
	p.says(plannerReady)
	return p
}

// crew is what carries an agent: each is a process that is killed now and then, and begun again.
type crew struct {
	begin map[string]func() *process
	alive map[string]*process
}

func (c *crew) kill(who string) {
	c.alive[who].kill()
	c.alive[who] = c.begin[who]()
}

// TestAmendedRoundsOutliveWhoCarriesThem: several clients amend the rounds of an agent while its orchestrators, its planner and
// the worker of its tools are killed, one after the other, around the amendments and while the planner is asked. Each revision is
// of one amendment, each amendment has one revision, nothing is called twice, and the agent comes to what it comes to in peace.
func TestAmendedRoundsOutliveWhoCarriesThem(t *testing.T) {
	t.Parallel()
	const clients, each = 4, 5
	srv, url := server(t)
	c := &crew{alive: map[string]*process{}, begin: map[string]func() *process{
		"planner": func() *process { return plannerProcess(t, url) },
	}}
	for who, args := range map[string][]string{"first": {"orchestrator", "--ack-wait", "2s", "--name", "first"}, "second": {"orchestrator", "--ack-wait", "2s", "--name", "second"}, "worker": {"toolworker"}} {
		c.begin[who] = func() *process {
			p := begin(t, url, args[0], args[1:]...)
			p.says("msg=ready")
			return p
		}
	}
	for _, who := range []string{"first", "second", "worker", "planner"} {
		c.alive[who] = c.begin[who]()
	}
	nc, mine := connect(t, srv)
	_, err := mine.Submit(within(t, time.Minute), []byte(`{"steps":[{"id":"a","agent":{"planner":{"tool":"devise","mode":"plan"},"tools":["add","ask"]}}]}`), client.SubmitOptions{Run: "amended"})
	require.NoError(t, err)
	want := map[string]any{}
	victims := []string{"first", "planner", "worker", "second"}
	for round := range amendedAgentRounds {
		scope := subjects.Iteration("a", round)
		if round > 0 { // while its planner is asked, or just before
			time.Sleep(time.Duration(round) * 70 * time.Millisecond)
			c.kill("planner")
			c.kill(victims[(2*round)%4])
		}
		hold := asked(t, mine, "amended", 1)[scope+"/hold"]
		require.NotNil(t, hold, scope)
		s := &storm{t: t, run: "amended", scope: scope, clients: clients, each: each, whose: map[int]string{}}
		var all sync.WaitGroup
		for k := range clients {
			_, other := connect(t, srv)
			all.Go(func() { s.blow(other, k) })
		}
		for n, who := range victims {
			require.Eventually(t, func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return len(s.whose) > n*clients*each/5
			}, 2*time.Minute, time.Millisecond)
			c.kill(who)
		}
		all.Wait()
		require.Len(t, s.whose, clients*each, "each revision is of one amendment")
		want[fmt.Sprintf("%d one", round)] = map[string]any{"result": 1.0}
		want[fmt.Sprintf("%d hold", round)] = fmt.Sprint("yes ", round)
		for n, who := range s.whose {
			require.Equal(t, 1, strings.Count(who, " "), "revision %d is of %s", n, who)
			var k, i int
			_, err := fmt.Sscanf(who, "s%d_%d", &k, &i)
			require.NoError(t, err)
			want[fmt.Sprintf("%d s%d_%d", round, k, i)] = map[string]any{"result": float64(1000*k + i + 1)}
		}
		require.Eventually(t, func() bool {
			_, err := mine.Answer(within(t, time.Minute), hold, fmt.Appendf(nil, `"yes %d"`, round), client.Answer{})
			return err == nil
		}, time.Minute, 20*time.Millisecond)
	}
	r, err := mine.Attach("amended")
	require.NoError(t, err)
	o, err := r.Wait(within(t, 2*time.Minute))
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	var got map[string]any
	came, _ := o.Results.Get("a")
	require.NoError(t, json.Unmarshal(came, &got))
	require.Equal(t, want, got)

	doc, err := mine.Get(within(t, time.Minute), "amended")
	require.NoError(t, err)
	for _, st := range doc.Steps[0].Steps {
		require.LessOrEqual(t, st.Attempts, 1, "%s: a redelivery is no attempt", st.ID)
	}
	require.Equal(t, amendedAgentRounds*clients*each, amendRecords(t, nc, doc))
}

// amendRecords counts the records of amendments of a run.
func amendRecords(t testing.TB, nc *nats.Conn, doc *outcome.Run) (n int) {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	stream, err := js.Stream(within(t, time.Minute), subjects.LedgerStream(0))
	require.NoError(t, err)
	info, err := stream.Info(within(t, time.Minute), jetstream.WithSubjectFilter(subjects.GenerationFilter(subjects.NewRun(doc.Tenant, doc.Run), doc.Generation, 1)))
	require.NoError(t, err)
	for subject := range info.State.Subjects {
		if rec, ok := subjects.ParseRecord(subject); ok && rec.Kind == subjects.AmendKind {
			n++
		}
	}
	return n
}
