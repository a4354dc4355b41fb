package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/ui/index"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// Where there are more tools than can be told apart, their calls are handed out as those of others: all that were made are
// counted, once.
func TestCallsOfToolsThatAreNotToldApartAreThoseOfOthers(t *testing.T) {
	t.Parallel()
	l := looking{lines: newFollower(nil, nil)}
	ask := func(query string) (of figures, raw string) {
		t.Helper()
		asked := httptest.NewRequest(http.MethodGet, "/api/v1/figures"+query, nil)
		asked = asked.WithContext(context.WithValue(asked.Context(), principalKey{}, &everybody))
		answer, err := l.figures(nil, asked)
		require.NoError(t, err)
		body, err := json.Marshal(answer)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(body, &of))
		return of, string(body)
	}
	read := l.lines.index().Read()
	now, ended := time.Now().UTC(), 0
	tell := func(tools int) { // of runs with sixteen tools each, which nobody called before
		for range tools / outcome.HeadTools {
			h := outcome.Head{Status: outcome.Succeeded, Submitted: now, Finished: now, Calls: map[string]*outcome.Calls{}}
			for k := range outcome.HeadTools {
				name := fmt.Sprintf("tool-%d-%d-%s", ended, k, strings.Repeat("x", 100))
				h.Tools = append(h.Tools, name)
				h.Calls[name] = &outcome.Calls{Calls: 3, Failed: 1, Codes: map[fault.Code]int{fault.ToolFailed: 1}, Ran: outcome.Spans{20: 2}, Waited: outcome.Spans{4: 2}}
			}
			ended++
			read.Finished(index.Of(subjects.NewRun("acme", fmt.Sprint("r", ended)), uint64(ended), h))
		}
	}
	tell(10_000)
	f, raw := ask("?tenant=acme")
	require.Len(t, f.Tools, 10_000)
	require.NotContains(t, raw, `"others"`, "all are told apart")

	tell(60_000)
	f, _ = ask("?tenant=acme")
	require.NotNil(t, f.Others)
	require.Less(t, len(f.Tools), 70_000)
	require.Equal(t, 3*(70_000-len(f.Tools)), f.Others.Calls)
	require.Equal(t, 70_000-len(f.Tools), f.Others.Failed)
	require.Equal(t, map[fault.Code]int{fault.ToolFailed: f.Others.Failed}, f.Others.Codes)
	require.Empty(t, f.Others.Tool)
	require.InDelta(t, 32, f.Others.P50, 3)
	other, raw := ask("?tenant=beta")
	require.Empty(t, other.Tools)
	require.NotContains(t, raw, `"others"`, "they are another tenant's")
}
