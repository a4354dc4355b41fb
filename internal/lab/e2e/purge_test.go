package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/subjects"
)

// Runs that are over leave the ledger, and nobody notices: a program on its own connection, quiet servers, nothing
// killed.
func TestFinishedRunsLeaveTheLedger(t *testing.T) {
	t.Parallel()
	srv, url := server(t)
	orchestrator := begin(t, url, "orchestrator", "--grace", "1s")
	orchestrator.says("orchestrator started")
	begin(t, url, "toolworker").says("ready")
	nc, c := connect(t, srv)
	checkWork(t, c, submitWork(t, c, 20))
	js, err := nc.JetStream()
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := js.StreamInfo(subjects.LedgerStream(0))
		return err == nil && info.State.Msgs == 0
	}, 2*time.Minute, 50*time.Millisecond, "records stay")
	require.Zero(t, orchestrator.stop())
	require.NotContains(t, orchestrator.log.String(), "disconnected")
	require.NotContains(t, orchestrator.log.String(), "could not be purged")
}
