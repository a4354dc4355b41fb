package ui_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/internal/ui"
	"github.com/stepjet/stepjet/subjects"
)

// list is what is looked at of a page of runs.
type list struct {
	Runs []struct {
		Key, Run, Tenant, Status string
		Attention                bool
		Steps, Succeeded, Failed int
		Tools                    []string
		FailedAt                 string `json:"failed_at"`
	}
	Next    string
	Matched int
	Counts  map[string]int
	Reading bool
}

// sheet is what is looked at of a run.
type sheet struct {
	Key, Run, Tenant, Status string
	Tools, Statuses, Codes   []string
	Steps                    struct {
		ID                                   []string
		Tool, Status, Code, Attempts, Parent []int
		Ready, Started, Ended, Decided       []float64
		Deps                                 [][]int
		Tries                                map[int][]float64
	}
}

func (s *sheet) status(i int) string { return s.Statuses[s.Steps.Status[i]] }

const mixed = `{"steps":[
	{"id":"a","tool":"echo","arguments":{"n":12345678901234567890}},
	{"id":"each","tool":"echo","for_each":{"in":[1,2,3]},"arguments":{"i":"$ref:item","a":"$ref:a.n"}},
	{"id":"no","tool":"fail","arguments":{"message":"<b>no</b>","terminal":true}},
	{"id":"after","tool":"echo","arguments":{"from":"$ref:no"}},
	{"id":"sub","plan":{"output_steps":["y"],"steps":[{"id":"x","tool":"echo","arguments":{"v":1}},{"id":"y","tool":"echo","arguments":{"v":"$ref:x.v"}}]}}],
	"output_steps":["each","after"]}`

// settled waits until the list shows so many runs that are over.
func (w *world) settled(n int) (l list) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		l = get[list](w, "runs?limit=500")
		return !l.Reading && l.Matched >= n && l.Counts["running"] == 0
	}, patience, 10*time.Millisecond)
	return l
}

func TestWhatThePageShows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	key := w.run("default", "mixed/1", mixed)
	w.run("acme", "good", `{"steps":[{"id":"a","tool":"echo","arguments":{}}]}`)
	l := w.settled(2)
	require.Equal(t, "mixed/1", l.Runs[0].Run, "what needs attention comes first")
	require.True(t, l.Runs[0].Attention)
	require.Equal(t, "default.mixed=2F1", key)
	require.Equal(t, key, l.Runs[0].Key)
	require.Equal(t, []string{"echo", "fail"}, l.Runs[0].Tools)
	require.Equal(t, "no", l.Runs[0].FailedAt)
	require.Equal(t, 7, l.Runs[0].Steps, "with those of the plan within")
	require.Equal(t, map[string]int{"partial": 1, "succeeded": 1}, l.Counts)
	require.Len(t, get[list](w, "runs?tenant=acme").Runs, 1)
	require.Len(t, get[list](w, "runs?q=MIXED").Runs, 1)
	require.Len(t, get[list](w, "runs?tool=fail&status=partial,failed").Runs, 1)
	require.Empty(t, get[list](w, "runs?from=2100-01-01T00:00:00Z").Runs)
	first := get[list](w, "runs?limit=1")
	require.Equal(t, "good", get[list](w, "runs?limit=1&after="+first.Next).Runs[0].Run)

	s := get[sheet](w, "runs/"+key)
	require.Equal(t, []string{"a", "each", "no", "after", "sub", "each=0", "each=1", "each=2", "sub/x", "sub/y"}, s.Steps.ID)
	require.Equal(t, []int{-1, -1, -1, -1, -1, 1, 1, 1, 4, 4}, s.Steps.Parent)
	require.Equal(t, [][]int{{}, {0}, {}, {2}, {}, {}, {}, {}, {}, {8}}, s.Steps.Deps)
	require.Equal(t, "failed", s.status(2))
	require.Equal(t, "skipped", s.status(3))
	require.Equal(t, "tool_terminal", s.Codes[s.Steps.Code[2]])
	require.Equal(t, -1, s.Steps.Code[0])
	require.GreaterOrEqual(t, s.Steps.Decided[9], s.Steps.Ready[8])
	require.Negative(t, s.Steps.Started[3], "it never began")

	type value struct {
		Text  string
		Bytes int
		Cut   bool
	}
	type detail struct {
		ID, Again         string
		Arguments, Result *value
		Error             *fault.Error
	}
	d := get[detail](w, "runs/"+key+"/steps/a")
	require.JSONEq(t, `{"n":12345678901234567890}`, d.Arguments.Text)
	require.Contains(t, d.Result.Text, "12345678901234567890", "no digit is lost on the way")
	require.NotEmpty(t, get[detail](w, "runs/"+key+"/steps/each%3D1").Arguments.Text)
	require.NotEmpty(t, get[detail](w, "runs/"+key+"/steps/sub%2Fy").Result.Text)
	d = get[detail](w, "runs/"+key+"/steps/no")
	require.Equal(t, "<b>no</b>", d.Error.Message)
	again := post[begun](w, "runs?run=again", d.Again)
	require.Equal(t, "again", again.Run)

	raw := w.request(http.MethodGet, "/api/v1/runs/"+w.run("default", "typo", `{"steps":[{"id":"a","tool":"nobody"}]}`), nil)
	rejected := read[struct {
		Status   string
		Problems []fault.Problem
		Steps    map[string]json.RawMessage
	}](w, raw)
	require.Equal(t, fault.UnknownTool, rejected.Problems[0].Code)
	require.Len(t, rejected.Steps, 12)
	for name, list := range rejected.Steps {
		require.Equal(t, "[]", string(list), name)
	}

	for path, status := range map[string]int{
		"runs/default.nobody": 404, "runs/x": 400, "runs/a.b.c": 400, "runs/default.=41": 400, "runs?status=odd": 400,
		"runs?limit=0": 400, "runs?from=today": 400, "runs?after=x": 400, "runs/" + key + "/steps/nobody": 404,
		"tools?tenant=no/tenant": 400, "nothing": 404,
	} {
		refused(w, w.request(http.MethodGet, "/api/v1/"+path, nil), status)
	}
}

// begun names a run.
type begun struct{ Key, Run string }

func TestWhatIsLarge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	long := strings.Repeat("x", 300<<10)
	key := w.run("default", "large", `{"steps":[{"id":"a","tool":"echo","arguments":{"text":"`+long+`"}},{"id":"b","tool":"echo","arguments":{"a":"$ref:a"}}],"output_steps":["b"]}`)
	for _, step := range []string{"a", "b"} {
		d := get[struct {
			Arguments, Result struct {
				Text  string
				Bytes int
				Cut   bool
			}
		}](w, "runs/"+key+"/steps/"+step)
		require.True(t, d.Arguments.Cut && d.Result.Cut)
		require.Len(t, d.Result.Text, 64<<10)
		require.Greater(t, d.Result.Bytes, 300<<10)
	}
}

func TestWhatThePageDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := post[begun](w, "runs?tenant=acme&run=slow", `{"steps":[{"id":"a","tool":"sleep","arguments":{"ms":600000}}]}`)
	require.Equal(t, begun{"acme.slow", "slow"}, run)
	require.Equal(t, "running", get[sheet](w, "runs/acme.slow").Status)
	refused(w, w.request(http.MethodPost, "/api/v1/runs/acme.slow/retry", nil), http.StatusServiceUnavailable) // it is not over
	post[begun](w, "runs/acme.slow/cancel", "")
	require.Eventually(t, func() bool { return get[sheet](w, "runs/acme.slow").Status == "cancelled" }, patience, 10*time.Millisecond)
	require.Equal(t, "cancelled", w.settled(1).Runs[0].Status)
	e := refused(w, w.request(http.MethodPost, "/api/v1/runs/acme.slow/cancel", nil), http.StatusConflict)
	require.Equal(t, fault.AlreadyFinished, e.Code)

	key := w.run("acme", "bad", `{"steps":[{"id":"ok","tool":"echo"},{"id":"a","tool":"fail","arguments":{"message":"no","terminal":true},"depends_on":["ok"]}]}`)
	require.Equal(t, "acme.bad=2E2", post[begun](w, "runs/"+key+"/retry", `{}`).Key)
	require.Equal(t, "acme.bad=2E2", post[begun](w, "runs/"+key+"/retry", "").Key, "asking twice is asking once")
	require.Equal(t, "acme.bad=2E2=2Efrom-ok", post[begun](w, "runs/"+key+"/retry", `{"from":"ok"}`).Key)

	good := post[struct{ Problems []fault.Problem }](w, "validate", `{"steps":[{"id":"a","tool":"echo"}]}`)
	require.Empty(t, good.Problems)
	bad := post[struct{ Problems []fault.Problem }](w, "validate", `{"steps":[{"id":"a","tool":"nobody"}]}`)
	require.Equal(t, fault.UnknownTool, bad.Problems[0].Code)
	refused(w, w.request(http.MethodPost, "/api/v1/runs", make([]byte, 3<<20)), http.StatusRequestEntityTooLarge)
	refused(w, w.request(http.MethodPost, "/api/v1/runs?run=bad&tenant=acme", []byte(`{"steps":[{"id":"a","tool":"echo"}]}`)), http.StatusConflict)
	refused(w, w.request(http.MethodPost, "/api/v1/runs/"+key+"/retry", []byte(`[`)), http.StatusBadRequest)

	type tools struct {
		Tools  []struct{ Name string }
		Demand struct{ Tools []struct{ Tool string } }
	}
	all := get[tools](w, "tools?tenant=acme")
	require.NotEmpty(t, all.Tools)
	require.Len(t, all.Demand.Tools, len(all.Tools))
	type letters struct {
		Letters []struct {
			Key, Step, Tool string
			Error           fault.Error
		}
	}
	require.Eventually(t, func() bool { return len(get[letters](w, "dead?tenant=acme").Letters) > 0 }, patience, 10*time.Millisecond)
	letter := get[letters](w, "dead?tool=fail").Letters[0]
	require.Equal(t, "fail", letter.Tool)
	require.Equal(t, fault.ToolTerminal, letter.Error.Code)
	require.Empty(t, get[letters](w, "dead?tool=echo").Letters)
	called := post[begun](w, "dead/retry", fmt.Sprintf(`{"key":%q,"step":%q}`, letter.Key, letter.Step))
	require.True(t, strings.HasPrefix(called.Run, "dead/"), called.Run)
	require.Eventually(t, func() bool { return get[sheet](w, "runs/"+called.Key).Status == "failed" }, patience, 10*time.Millisecond)
	refused(w, w.request(http.MethodPost, "/api/v1/dead/retry", []byte(`{"key":"acme.nobody","step":"a"}`)), http.StatusNotFound)
	refused(w, w.request(http.MethodPost, "/api/v1/dead/retry", []byte(`{"key":"x","step":"a"}`)), http.StatusBadRequest)

	// Several in one request: each is made, and made once, though it is named twice.
	type several struct {
		Called  int
		Refused []struct {
			Key, Step string
			Error     fault.Error
		}
	}
	one := fmt.Sprintf(`{"key":%q,"step":%q}`, letter.Key, letter.Step)
	answered := post[several](w, "dead/retry", `{"letters":[`+one+`,`+one+`,{"key":"acme.nobody","step":"a"},{"key":"x","step":"a"}]}`)
	require.Equal(t, 2, answered.Called)
	require.Len(t, answered.Refused, 2)
	codes := map[string]fault.Code{}
	for _, x := range answered.Refused {
		codes[x.Key] = x.Error.Code
	}
	require.Equal(t, map[string]fault.Code{"acme.nobody": fault.NotFound, "x": fault.InvalidID}, codes)
	require.Zero(t, post[several](w, "dead/retry", `{"letters":[]}`).Called)
	refused(w, w.request(http.MethodPost, "/api/v1/dead/retry", fmt.Appendf(nil, `{"key":%q,"step":"a","letters":[]}`, letter.Key)), http.StatusUnprocessableEntity)
	many := strings.TrimSuffix(strings.Repeat(one+",", 501), ",")
	refused(w, w.request(http.MethodPost, "/api/v1/dead/retry", []byte(`{"letters":[`+many+`]}`)), http.StatusRequestEntityTooLarge)
}

// What runs hold is anybody's text: it comes as JSON that no browser takes for anything else, under a policy that lets
// nothing in.
func TestHostileTextsAreData(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	hostile := `<script>alert(1)</script>"'&` + "\u2028\u0000</style>"
	body, err := json.Marshal(hostile)
	require.NoError(t, err)
	for i, id := range []string{`<img src=x onerror=alert(1)>`, "../../etc", "..", ".", "a/b?c#d%2F", "a\nb"} {
		key := w.run("default", id, fmt.Sprintf(`{"steps":[{"id":"a","tool":"echo","arguments":{"v":%s}},{"id":"b","tool":"fail","arguments":{"message":%s,"terminal":true}}]}`, body, body))
		require.Equal(t, subjects.NewRun("default", id).Key(), key)
		answer := w.request(http.MethodGet, "/api/v1/runs/"+key, nil)
		require.Equal(t, "application/json", answer.Header.Get("Content-Type"))
		require.Equal(t, "nosniff", answer.Header.Get("X-Content-Type-Options"))
		require.Equal(t, id, read[sheet](w, answer).Run)
		d := get[struct{ Error fault.Error }](w, "runs/"+key+"/steps/b")
		require.Equal(t, hostile, d.Error.Message)
		l := w.settled(i + 1)
		require.Len(t, l.Runs, i+1)
	}
	for _, path := range []string{"/", "/runs/default.=3Cimg=20src", "/app.js", "/app.css", "/icon.svg", "/api/v1/runs"} {
		answer := w.request(http.MethodGet, path, nil)
		require.Equal(t, http.StatusOK, answer.StatusCode, path)
		policy := answer.Header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
			require.Contains(t, policy, part, path)
		}
		require.NotContains(t, policy, "unsafe")
	}
}

// A page that was away for a while finds all that happened, as one that was there does.
func TestThePageReadsWhatWasThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.client("acme")
	for i := range 20 {
		_, err := c.Run(w.ctx(), []byte(`{"steps":[{"id":"a","tool":"echo"}]}`), client.SubmitOptions{Run: fmt.Sprint(i)})
		require.NoError(t, err)
	}
	before := w.settled(20)
	w.serve(nil)
	after := w.settled(20)
	require.Equal(t, before.Runs, after.Runs)
}

// A server that went is told, and what is shown is right again once it is back.
func TestTheListOutlivesItsServer(t *testing.T) {
	t.Parallel()
	w := &world{t: t}
	dir, listen := t.TempDir(), "127.0.0.1:0"
	up := func() *dev.Stack {
		var stack *dev.Stack
		require.Eventually(t, func() (ok bool) { // the port may not be free at once
			var err error
			stack, err = dev.Start(w.ctx(), dev.Options{Dir: dir, Listen: listen, Tools: "../../examples/tools.json"})
			return err == nil
		}, patience, 50*time.Millisecond)
		t.Cleanup(stack.Stop)
		return stack
	}
	w.stack = up()
	listen = strings.TrimPrefix(w.stack.URL(), "nats://")
	nc, err := nats.Connect(w.stack.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	w.serve(func(c *ui.Config) { c.Conn = nc })
	w.run("default", "before", `{"steps":[{"id":"a","tool":"echo"}]}`)
	w.settled(1)
	w.stack.Stop()
	require.Eventually(t, func() bool {
		l := get[struct{ Trouble *fault.Error }](w, "runs")
		return l.Trouble != nil && l.Trouble.Code == fault.NoConnection
	}, patience, 10*time.Millisecond)
	require.Len(t, get[list](w, "runs").Runs, 1, "what was known is shown")
	w.stack = up()
	w.run("default", "after", `{"steps":[{"id":"a","tool":"echo"}]}`)
	require.Eventually(t, func() bool {
		l := get[struct {
			list
			Trouble *fault.Error
		}](w, "runs")
		return l.Trouble == nil && l.Matched == 2
	}, patience, 10*time.Millisecond)
}
