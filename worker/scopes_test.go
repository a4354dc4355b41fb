package worker

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// A worker takes the token of a step as it comes: its results, large ones too, its key and its cancels have it.
func TestAWorkerTakesStepsInScopes(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	keys := make(chan string, 10)
	begun := make(chan struct{}, 10)
	w.worker(Config{}, func(worker *Worker) {
		growing(worker)
		Handle(worker, "key", func(ctx context.Context, _ struct{}) (string, error) {
			info, _ := InfoFrom(ctx)
			keys <- info.Key
			return info.Step, nil
		})
		Handle(worker, "wait", func(ctx context.Context, _ struct{}) (string, error) {
			begun <- struct{}{}
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
	})
	for _, token := range []string{"map=3/fetch", "poll/=2/status", "a/=2/=plan"} {
		a := w.attempt("key", "r", token)
		w.dispatch(a, `{}`)
		require.Equal(t, `"`+token+`"`, string(w.result(a).Body))
		require.Equal(t, a.Key(), <-keys)

		b := w.attempt("grow", "large", token)
		w.dispatch(b, `{"size":300000}`)
		r := w.result(b)
		require.NotNil(t, r.Handle)
		require.Nil(t, wire.CheckResult(r.Handle, b, "", kv.MaxBlob))

		c := w.attempt("wait", "held", token)
		w.dispatch(c, `{}`)
		<-begun
		require.Eventually(t, func() bool { // it is at most once
			require.NoError(t, w.nc.Publish(subjects.Cancel(c), nil))
			return w.consumer("wait").NumAckPending == 0
		}, patient, 50*time.Millisecond)
	}
}
