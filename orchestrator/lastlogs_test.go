package orchestrator

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/outcome"
)

// TestLogsThereIsNoRoomFor are the oldest, of all agents together.
func TestLogsThereIsNoRoomFor(t *testing.T) {
	t.Parallel()
	all := []outcome.ToolLog{{Purpose: "one"}, {Purpose: "two"}, {Purpose: "six"}}
	list, err := json.Marshal(all)
	require.NoError(t, err)
	each, err := json.Marshal(all[0])
	require.NoError(t, err)
	room := 2*len(each) + 1
	logs, before := lastLogs(list, &room)
	require.Equal(t, 1, before)
	require.Equal(t, []string{"two", "six"}, []string{logs[0].Purpose, logs[1].Purpose})
	logs, before = lastLogs(list, &room)
	require.Empty(t, logs)
	require.Equal(t, 3, before)
	logs, before = lastLogs([]byte("[]"), &room)
	require.Empty(t, logs)
	require.Zero(t, before)
}
