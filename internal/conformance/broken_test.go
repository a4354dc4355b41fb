package conformance_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/internal/conformance"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
)

// quick makes waiting for what never comes short.
func quick(checks ...string) func(*conformance.Options) {
	return func(o *conformance.Options) { o.Only, o.Patience, o.Lease = checks, 4*time.Second, time.Second }
}

func find(t *testing.T, r *conformance.Report, name string) conformance.Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	require.FailNow(t, "no check "+name)
	panic("not reached")
}

// A worker written from the document alone conforms.
func TestAPlainWorkerConforms(t *testing.T) {
	t.Parallel()
	r := drive(t, rawWorker(""), func(*conformance.Options) {})
	for _, c := range r.Checks {
		require.NotEqual(t, conformance.Failed, c.Status, "%s: %v", c.Name, c.Findings)
		require.NotEqual(t, conformance.Skipped, c.Status, "%s: %s", c.Name, c.Why)
	}
	require.True(t, r.Conforms)
}

// Every bug is caught by the check that is meant for it, and nothing keeps that check from being made.
func TestBrokenWorkersAreCaught(t *testing.T) {
	t.Parallel()
	const failed, warned = conformance.Failed, conformance.Warned
	cases := []struct {
		bug, check string
		status     conformance.Status
		seen       string // part of what was found
	}{
		{"dies", "takes-steps", failed, "no such module"},
		{"silent", "takes-steps", failed, "it registered the tool"},
		{"own consumer", "takes-steps", failed, "CONSUMER.CREATE"},
		{"own consumer", "consumer", failed, "CONSUMER.CREATE"},
		{"no registration", "takes-steps", warned, "without having registered"},
		{"no expectation", "record", failed, "Expected-Last-Subject-Sequence"},
		{"message id", "record", failed, "Nats-Msg-Id"},
		{"doesn't wait", "record", failed, "without asking for a PubAck"},
		{"wraps", "record", failed, `{"result":`},
		{"leaks", "record", failed, "carries the step's context"},
		{"ack first", "ack", failed, "before it published"},
		{"no ack", "ack", failed, "handed out again"},
		{"latin1", "text", failed, "came back as"},
		{"floats", "numbers", warned, "came back as"},
		{"ignores errors", "error", failed, "leaves no record"},
		{"errors are data", "error", failed, "as a success"},
		{"text errors", "error", warned, "no envelope"},
		{"nak", "error", failed, "-NAK"},
		{"first attempts", "attempt", failed, "second attempt"},
		{"attempt one", "attempt", failed, "as that of the first"},
		{"remembers steps", "attempt", failed, "has no record"},
		{"tells secrets", "secrets", failed, "holds a secret"},
		{"long name", "record", failed, "has 300 bytes"},
		{"no deadline", "deadline", failed, "was not ended"},
		{"runs on", "stops", failed, "after its time was over"},
		{"runs on", "stops", failed, "had been cancelled"},
		{"acks at once", "holds", failed, "a step that had run out of time was acknowledged while its tool"},
		{"acks at once", "holds", failed, "a cancelled step was acknowledged"},
		{"waits for tools", "holds", failed, "was waited for"},
		{"holds for ever", "holds", failed, "held its slot for as long"},
		{"asks once", "pulls", failed, "no end and no heartbeat"},
		{"asks for long", "pulls", warned, "lives for 20s"},
		{"runs versions of words", "version", failed, "version junk"},
		{"", "redelivered", warned, "a run that is over"},
		{"constant nonce", "claim", failed, "the same nonce"},
		{"fetches ahead", "waiting", failed, "lost their lease"},
		{"inline", "large-result", failed, "in the ledger itself"},
		{"wrong sum", "large-result", failed, "can't be read"},
		{"refuses large", "large-result", warned, "too_large"},
		{"no chunks", "large-result", warned, "names no chunks"},
		{"no bucket", "bucket", warned, "where all tenants may read"},
		{"another's bucket", "bucket", failed, "which fails the step"},
		{"silent on oversize", "large-result", failed, "leaves no record"},
		{"inline", "huge-result", failed, "leaves no record"},
		{"silent on oversize", "huge-result", failed, "leaves no record"},
		{"no handle", "large-arguments", failed, "other arguments"},
		{"no heartbeat", "heartbeat", failed, "handed out again"},
		{"doesn't wait", "full-ledger", failed, "its result is lost"},
		{"acks whatever", "full-ledger", failed, "its result is lost"},
		{"dies of refusal", "full-ledger", warned, "executed again"},
		{"dies of refusal", "duplicate", warned, "handed out again"},
		{"insists", "decided", failed, "not acknowledged"},
		{"no cancel", "cancel", warned, "went on for"},
		{"no timeout", "timeout", failed, "was not ended"},
		{"begins late", "start-by", failed, "too late"},
		{"no claim", "claim", failed, "without a claim"},
		{"claims late", "claim", failed, "already run"},
		{"claim body", "claim", failed, "the claim says mine"},
		{"any version", "version", failed, "recorded a result"},
		{"acks versions", "version", failed, "is lost now"},
		{"dies of foreign", "foreign", warned, "come again"},
		{"forged", "foreign", warned, "another run's record"},
		{"hoards", "burst", failed, "while it worked on"},
		{"shares state", "burst", failed, "another step's result"},
		{"never ends", "drain", failed, "runs on"},
		{"drops on drain", "drain", failed, "not finished"},
		{"no look", "redelivered", warned, "done already"},
		{"no worker_lost", "poisoned", failed, "not survived"},
		{"ignores claims", "claimed", failed, "another worker may have executed"},
	}
	reports := make([]*conformance.Report, len(cases))
	var group errgroup.Group
	group.SetLimit(8) // they wait most of the time
	for i, c := range cases {
		group.Go(func() (err error) {
			reports[i], err = driven(t, rawWorker(c.bug), quick(c.check))
			return err
		})
	}
	require.NoError(t, group.Wait())
	for i, c := range cases {
		t.Run(c.bug+" "+c.check, func(t *testing.T) {
			t.Parallel()
			r := reports[i]
			got := find(t, r, c.check)
			require.Equal(t, c.status, got.Status, "%s %v", got.Why, got.Findings)
			require.Equal(t, c.status != failed, r.Conforms)
			all := ""
			for _, f := range got.Findings {
				all += f.Seen + "\n"
				require.NotEmpty(t, f.Advice)
			}
			require.Contains(t, all, c.seen)
			if c.check != "takes-steps" && c.bug != "own consumer" {
				require.Equal(t, conformance.Passed, find(t, r, "takes-steps").Status)
			}
		})
	}
}

// To publish a record again is no second execution: it is what a worker does that got no answer.
func TestARecordPublishedTwiceIsNoSecondExecution(t *testing.T) {
	t.Parallel()
	r := drive(t, rawWorker("publishes twice"), quick("heartbeat", "burst"))
	require.Equal(t, conformance.Passed, find(t, r, "heartbeat").Status, "%v", find(t, r, "heartbeat").Findings)
	require.Equal(t, conformance.Passed, find(t, r, "burst").Status, "%v", find(t, r, "burst").Findings)
}

// "nak" and its like show up in what the worker said to JetStream, whichever check provoked it.
func TestANakIsCaught(t *testing.T) {
	t.Parallel()
	r := drive(t, rawWorker("nak"), quick("error", "consumer"))
	require.Equal(t, conformance.Failed, find(t, r, "consumer").Status)
}

// A worker that somebody else started can't be restarted: those checks are left out, all others are made.
func TestAWorkerThatIsThereAlready(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	nc := natstest.Connect(t, srv)
	begun := make(chan struct{})
	go func() {
		defer close(begun)
		_ = stepjets(ctx, natstest.Connect(t, srv)) // waits until somebody answers its registration
	}()
	o := conformance.Options{Conn: nc}
	quick("record", "drain", "poisoned")(&o)
	r, err := conformance.Run(ctx, o)
	require.NoError(t, err)
	require.Equal(t, conformance.Passed, find(t, r, "record").Status)
	require.Equal(t, conformance.Skipped, find(t, r, "drain").Status)
	require.Equal(t, conformance.Skipped, find(t, r, "poisoned").Status)
	require.True(t, r.Conforms)
	cancel()
	<-begun
}
