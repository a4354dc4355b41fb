package worker

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// The test binary is a worker by itself where this names a server. It tells of each call on the subject begunSubject.
const (
	processURL   = "STEPJET_TEST_WORKER"
	begunSubject = "begun"
)

// processTools are two tools that take one step at a time, and one that takes many.
func processTools(call func(tool string)) func(*Worker) {
	host := func(w *Worker, name string, c tool.Orchestration) {
		Handle(w, name, func(context.Context, empty) (empty, error) { call(name); return empty{}, nil }, Contract(c))
	}
	return func(w *Worker) {
		host(w, "one", tool.Orchestration{Mode: tool.SequentialOnly})
		host(w, "late", tool.Orchestration{Mode: tool.SequentialOnly})
		host(w, "many", tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: 64})
	}
}

// workerProcess is what the process does.
func workerProcess(url string) error {
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		return err
	}
	defer nc.Close()
	log := &logBook{}
	w, err := New(nc, Config{Name: "paused", Slots: 64, Logger: log.logger()})
	if err != nil {
		return err
	}
	processTools(func(tool string) {
		_ = nc.Publish(begunSubject, []byte(tool))
		if tool == "late" { // as a program that the tool has started, which goes on while this process is stopped
			time.Sleep(time.Second)
		}
	})(w)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		<-w.Ready()
		_, _ = os.Stdout.WriteString("ready\n")
	}()
	go func() { // what it says is for the test to wait for
		for said := 0; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			all := log.String()
			_, _ = os.Stderr.WriteString(all[said:])
			said = len(all)
		}
	}()
	return w.Run(ctx)
}

// processWorker starts one and waits until it is ready. It ends with the test.
func (w *world) processWorker() (*exec.Cmd, *logBook) {
	w.t.Helper()
	said := &logBook{}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), processURL+"="+w.srv.URL())
	cmd.Stdout, cmd.Stderr = said, said
	require.NoError(w.t, cmd.Start())
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	w.eventually(func() bool { return strings.HasPrefix(said.String(), "ready\n") || said.count("\nready\n") > 0 }, "the process is not ready")
	return cmd, said
}

// halt returns once the process stands still. The signal is only asked for when it is sent: on a busy machine the
// process can still take a step and execute it before its threads come to it.
func (w *world) halt(cmd *exec.Cmd) {
	w.t.Helper()
	require.NoError(w.t, cmd.Process.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	_, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
	require.NoError(w.t, err)
	require.True(w.t, status.Stopped(), "the process has ended")
}

// doubts is what is logged of a delivery that is not trusted.
const doubts = "a delivery may be older than its lease"

// buffered reports whether all steps are soon in the hands of the worker that is stopped.
func (w *world) buffered(steps int) bool {
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if w.consumer("one").NumAckPending == 1 && w.consumer("many").NumAckPending == steps {
			return true
		}
	}
	return false
}

// A process that is stopped for three leases while steps lie in its buffers executes none of them when it goes on: they
// are in other hands, or done.
func TestAStoppedProcessExecutesNothingStale(t *testing.T) {
	t.Parallel()
	const lease, steps = 4 * time.Second, 16
	w := start(t, kv.Config{AckWait: lease}, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
	w.registrar()
	begun, err := w.nc.SubscribeSync(begunSubject)
	require.NoError(t, err)
	require.NoError(t, w.nc.Flush())
	cmd, said := w.processWorker()
	first := w.attempt("one", "r", "first")
	w.dispatch(first, `{}`)
	require.Nil(t, w.result(first).Error)
	m, err := begun.NextMsg(patient)
	require.NoError(t, err)
	require.Equal(t, "one", string(m.Data), "it takes steps")
	w.settled("one")

	var stopped time.Time
	var one subjects.Attempt
	var many []subjects.Attempt
	for round := 0; ; round++ { // until its requests live for long enough to be given all
		stopped = time.Now()
		w.halt(cmd)
		one = w.attempt("one", "r", fmt.Sprint("one", round))
		w.dispatch(one, `{}`)
		many = nil
		for i := range steps {
			many = append(many, w.attempt("many", "r", fmt.Sprintf("s%d-%d", round, i)))
			w.dispatch(many[i], `{}`)
		}
		if w.buffered(steps) {
			break
		}
		require.Less(t, round, 20, "the steps are not in its buffers")
		require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
		w.settled("one")
		w.settled("many")
	}
	for n, _, _ := begun.Pending(); n > 0; n-- { // of rounds that came to nothing
		_, err := begun.NextMsg(patient)
		require.NoError(t, err)
	}
	before := said.count(doubts)

	var calls atomic.Int32
	busy, done := make(chan struct{}), make(chan struct{})
	w.worker(Config{Name: "other"}, processTools(func(tool string) {
		calls.Add(1)
		if tool == "one" {
			close(busy)
			<-done
		}
	}))
	await(w, busy, "the step of the tool that takes one at a time comes to the other worker")
	for _, a := range many {
		require.Equal(t, "other", w.result(a).Worker)
	}
	time.Sleep(3*lease - time.Since(stopped))
	require.Nil(t, cmd.Process.Signal(syscall.SIGCONT))

	w.eventually(func() bool {
		n, _, err := begun.Pending()
		require.NoError(t, err)
		return n > 0 || said.count(doubts)-before > steps
	}, "it does nothing with its deliveries: %s", said)
	close(done)
	require.Equal(t, "other", w.result(one).Worker)
	w.settled("one")
	w.settled("many")
	n, _, err := begun.Pending()
	require.NoError(t, err)
	require.Zero(t, n, "it executed what others had: %s", said)
	require.EqualValues(t, steps+1, calls.Load())

	last := w.attempt("many", "r", "last") // it goes on with what is handed out from now on
	for i := 0; ; i++ {
		last.Step = "last" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		w.dispatch(last, `{}`)
		if w.result(last).Worker == "paused" {
			break
		}
		require.Less(t, i, 600, "it gets no more steps")
	}
}

// A process that is stopped while its tool goes on has its result recorded when it wakes, which is as good as
// another's. Its acknowledgement would take effect on the delivery of the worker that has the step by now: the place of
// a call that is at work would be free for one more.
func TestAStoppedProcessGivesNobodyElsesPlaceAway(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second
	w := start(t, kv.Config{AckWait: lease}, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
	w.registrar()
	begun, err := w.nc.SubscribeSync(begunSubject)
	require.NoError(t, err)
	require.NoError(t, w.nc.Flush())
	cmd, said := w.processWorker()
	first, second := w.attempt("late", "r", "first"), w.attempt("late", "r", "second")
	w.dispatch(first, `{}`)
	_, err = begun.NextMsg(patient)
	require.NoError(t, err)
	w.halt(cmd)
	if w.recorded(first) {
		t.Fatal("the process was stopped more than a second late")
	}

	calls, end := make(chan struct{}, 2), make(chan struct{})
	w.worker(Config{Name: "other"}, processTools(func(string) {
		calls <- struct{}{}
		<-end
	}))
	await(w, calls, "the step comes to the other worker")
	w.dispatch(second, `{}`)
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	require.Equal(t, "paused", w.result(first).Worker)
	w.eventually(func() bool { return said.count("the step is left to its next delivery") > 0 }, "it says nothing of its lease: %s", said)
	require.Equal(t, 1, w.consumer("late").NumAckPending)
	require.EqualValues(t, 1, w.consumer("late").NumPending, "the second step was handed out beside the first")
	require.Empty(t, calls)
	close(end)
	w.result(second)
	w.settled("late")
}
