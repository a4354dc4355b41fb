package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// manyRuns writes documents of runs that are over, as orchestrators do.
func manyRuns(t *testing.T, nc *nats.Conn, n int) {
	t.Helper()
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(4096))
	require.NoError(t, err)
	began := time.Now().Add(-time.Hour)
	statuses := []outcome.RunStatus{outcome.Succeeded, outcome.Succeeded, outcome.Failed, outcome.Partial}
	for i := range n {
		r := subjects.NewRun([]string{"acme", "beta", "default"}[i%3], fmt.Sprint("order-", i))
		doc := &outcome.Run{
			Run: r.Plain(), Tenant: r.Tenant, Generation: uint64(i + 1), Status: statuses[i%4], Submitted: began, Started: began, Finished: began,
			Steps: []outcome.Step{{ID: "a", Tool: fmt.Sprint("tool-", i%40)}, {ID: "b", Tool: "mail"}},
		}
		m := &nats.Msg{
			Subject: subjects.BucketSubject(subjects.HistoryBucket, r.Key()), Header: wire.Documented(doc, nil), Data: []byte("{}"),
		}
		_, err := js.PublishMsgAsync(m, jetstream.WithStallWait(time.Minute))
		require.NoError(t, err)
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(5 * time.Minute):
		require.Fail(t, "the server does not store them")
	}
}

// proc reads a number of what the system knows of a process.
func proc(t *testing.T, pid int, file, pattern string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	require.NoError(t, err)
	m := regexp.MustCompile(pattern).FindStringSubmatch(string(text))
	require.NotNil(t, m, "%s", text)
	all := 0
	for _, digits := range m[1:] {
		n, err := strconv.Atoi(digits)
		require.NoError(t, err)
		all += n
	}
	return all
}

// TestTheBudgetsOfAHundredThousandRuns holds the process of the page against them: memory of its own (without the
// program's file, which the system reads from the disk when it likes), and the processor time of lists, since others work
// on the same machine.
func TestTheBudgetsOfAHundredThousandRuns(t *testing.T) {
	t.Parallel()
	const n = 100_000
	srv := natstest.Start(t, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
	nc := natstest.Connect(t, srv)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	store, err := kv.Setup(ctx, nc, kv.Config{})
	require.NoError(t, err)
	t.Cleanup(store.Close)
	manyRuns(t, nc, n)

	page := start(t, folder(t), "", "ui", "--server", srv.URL(), "--listen", "127.0.0.1:0")
	require.Eventually(t, func() bool { return address.MatchString(page.errs.String()) }, patience, 10*time.Millisecond)
	url := address.FindString(page.errs.String())
	type list struct {
		Runs    []struct{ Run string }
		Matched int
		Reading bool
	}
	ask := func(query string) (l list) {
		answer, err := http.Get(url + "/api/v1/runs?" + query) //nolint:noctx // it is on loopback
		require.NoError(t, err)
		defer answer.Body.Close()
		require.NoError(t, json.NewDecoder(answer.Body).Decode(&l))
		return l
	}
	require.Eventually(t, func() bool { l := ask(""); return l.Matched == n && !l.Reading }, 5*time.Minute, 100*time.Millisecond)
	ticks := func() int { return proc(t, page.Process.Pid, "stat", `\) \S (?:\S+ ){10}(\d+) (\d+) `) }
	read := ticks()
	each := func(query string, matched int) time.Duration {
		const asks = 20
		before := ticks()
		for range asks {
			l := ask(query)
			require.Equal(t, matched, l.Matched)
			require.NotEmpty(t, l.Runs)
		}
		return time.Duration(ticks()-before) * 10 * time.Millisecond / asks
	}
	list100, filter := each("limit=100", n), each("q=77&tool=tool-3&status=partial&tenant=acme", countedRuns(n))
	memory := proc(t, page.Process.Pid, "status", `RssAnon:\s+(\d+) kB`)
	t.Logf("read in %v of processor time; list %v, filter %v; %d MiB of its own", time.Duration(read)*10*time.Millisecond, list100, filter, memory>>10)
	require.Less(t, list100, 300*time.Millisecond)
	require.Less(t, filter, 100*time.Millisecond)
	require.Less(t, memory, 64<<10)
}

// countedRuns counts what the filter finds.
func countedRuns(n int) (found int) {
	for i := range n {
		if i%3 == 0 && i%40 == 3 && strings.Contains(fmt.Sprint("order-", i), "77") {
			found++
		}
	}
	return found
}
