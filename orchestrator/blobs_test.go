package orchestrator_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// A large result is read by who needs it, and by nobody else: its bytes pass the orchestrator for a reference or for
// the outcome, not because a step has it.
func TestALargeResultIsReadOnlyByWhoNeedsIt(t *testing.T) {
	t.Parallel()
	s := start(t)
	reads, err := s.nc.SubscribeSync(subjects.DirectRead(subjects.BlobsStream(""))) // each reader of an object asks once
	require.NoError(t, err)
	count := func() (n int) {
		for _, err := reads.NextMsg(200 * time.Millisecond); !errors.Is(err, nats.ErrTimeout); _, err = reads.NextMsg(200 * time.Millisecond) {
			require.NoError(t, err)
			n++
		}
		return n
	}
	big := `{"id":"big","tool":"big","arguments":{"bytes":1048576}}`

	o := s.run(`{"steps":[`+big+`,{"id":"then","tool":"echo","arguments":{"x":1},"depends_on":["big"]}],"output_steps":["then"]}`, "unread")
	require.Equal(t, outcome.Succeeded, o.Status, "%v", o.Errors)
	require.Zero(t, count(), "nobody needed it")
	big2 := s.history("default", "unread").Steps[0]
	require.EqualValues(t, 1048576+23, big2.Bytes)
	require.True(t, big2.Blob.Checked)

	o = s.run(`{"steps":[`+big+`,{"id":"n","tool":"echo","arguments":{"n":"$ref:big.n"}},{"id":"m","tool":"echo","arguments":{"m":"$ref:big.n"},"depends_on":["n"]}],"output_steps":["n","m"]}`, "referred")
	require.Equal(t, outcome.Succeeded, o.Status, "%v", o.Errors)
	n, _ := o.Results.Get("n")
	require.Equal(t, `{"n":1048576}`, string(n))
	require.Equal(t, 1, count(), "read once for both references")
}
