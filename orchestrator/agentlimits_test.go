//go:build !race

package orchestrator_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
)

// TestARoundThatIsTooLarge is an answer of no use: its planner is told what to do, and the loop goes on. An answer has at most
// 4 MiB, but its record writes a sign that HTML knows with six.
func TestARoundThatIsTooLarge(t *testing.T) {
	t.Parallel()
	s := start(t)
	const most = 16 << 20
	few := strings.Repeat("<", 2<<20)
	x := s.plays("planner", fmt.Sprintf(`{"output":%q}`, few+few[:1<<20]), fmt.Sprintf(`{"output":%q}`, few))
	s.agent("talker", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["length"]}`)
	o := s.run(`{"steps":[{"id":"a","tool":"talker"},{"id":"n","tool":"length","arguments":{"text":"$ref:a"}}]}`, "large")
	require.JSONEq(t, fmt.Sprint(len(few)), result(t, o, "n"), "%s", o.JSON())
	require.Equal(t, []int{0, 1}, x.times())
	doc := s.history("default", "large")
	require.Len(t, doc.Steps[0].Refused, 1)
	require.Equal(t, 0, doc.Steps[0].Refused[0].Round)
	require.Len(t, doc.Steps[0].Refused[0].Problems, 1)
	p := doc.Steps[0].Refused[0].Problems[0]
	var bytes int
	_, err := fmt.Sscanf(p.Message, "the answer is too large to be run as one round: its record would have %d bytes", &bytes)
	require.NoError(t, err, p.Message)
	require.Greater(t, bytes, most)
	require.Equal(t, fault.Problem{Code: fault.LimitExceeded,
		Message: fmt.Sprintf("the answer is too large to be run as one round: its record would have %d bytes, at most %d are allowed", bytes, most),
		Hint:    "answer with less at a time, or refer to what results have instead of writing it"}, p)
	require.Contains(t, string(x.asked[1]["rounds"]), p.Message)
	require.Contains(t, string(x.asked[1]["rounds"]), p.Hint)
}

// TestAnAgentHearsAThousandWords and no more, whoever owns its run: who says another is told so and what to do, what was said before
// is answered as it was, and the loop goes on with all of them.
func TestAnAgentHearsAThousandWords(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.plays("planner", `{"steps":[{"id":"x","tool":"echo"}]}`, `{"output":"done"}`)
	asked, goOn := make(chan int), make(chan struct{})
	x.before = func(round int) { asked <- round; <-goOn }
	s.agent("hears", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["echo"]}`)
	say := func(n int) (*client.Heard, error) {
		return client.Say(ctx(t), s.client, "talks", client.Word{Step: "a", ID: fmt.Sprint("w", n), Text: fmt.Sprint("word ", n)})
	}
	r := s.submit(`{"steps":[{"id":"a","tool":"hears"}]}`, "talks")
	require.Zero(t, <-asked)
	for n := range 1000 {
		_, err := say(n)
		require.NoError(t, err, n)
	}
	none := func() {
		_, err := say(1000)
		require.Equal(t, fault.LimitExceeded, fault.CodeOf(err))
		require.Equal(t, "the agent was said 1000 things", fault.As(err).Message)
		require.Equal(t, "say several things at a time", fault.As(err).Hint)
		require.False(t, fault.As(err).Retryable)
		heard, err := say(999)
		require.NoError(t, err)
		require.True(t, heard.Already)
	}
	none()
	next := s.orchestrator()
	s.leave()
	s.leave = next
	none()
	goOn <- struct{}{}
	require.Equal(t, 1, <-asked)
	var told []struct{ Content string }
	require.NoError(t, json.Unmarshal(x.asked[len(x.asked)-1]["messages"], &told))
	require.Len(t, told, 1000)
	goOn <- struct{}{}
	require.JSONEq(t, `"done"`, result(t, s.wait(r), "a"))
}
