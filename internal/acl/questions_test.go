package acl_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// waits until a run waits for so many answers, and returns them by step.
func (s *system) waits(c *client.Client, run string, n int) map[string]*outcome.Question {
	s.t.Helper()
	by := map[string]*outcome.Question{}
	require.Eventually(s.t, func() bool {
		all, err := c.Questions(s.ctx(), run)
		clear(by)
		for _, q := range all {
			by[q.Step] = q
		}
		return err == nil && len(by) == n
	}, 2*time.Minute, 20*time.Millisecond)
	return by
}

// guarded waits for an approval and for a value.
const guarded = `{"steps":[
	{"id":"pay","tool":"search","arguments":{"text":"paid"},"approval":{"ask":"Pay?"}},
	{"id":"name","tool":"ask","arguments":{"question":"Who?"}},
	{"id":"tell","tool":"fetch","arguments":{"text":"$ref:name"},"depends_on":["pay"]}],"output_steps":["pay","tell"]}`

// TestWhoMayAnswerWhat tries the two verbs under the printed credentials of each role.
func TestWhoMayAnswerWhat(t *testing.T) {
	t.Parallel()
	inEach(t, map[string]shape{"accounts": {}, "one account": {oneAccount: true}}, func(t *testing.T, s *system) {
		s.staff()
		agent := s.client("agent-acme", "acme")
		r, err := agent.Submit(s.ctx(), []byte(guarded), client.SubmitOptions{Run: "r"})
		require.NoError(t, err)
		asked := s.waits(agent, "r", 2)
		none, err := s.client("agent-other", "other").Questions(s.ctx(), "")
		require.NoError(t, err)
		require.Empty(t, none, "of another tenant")
		permission := func(err error, subject string) {
			t.Helper()
			require.Equal(t, fault.Permission, fault.CodeOf(err), "%v", err)
			require.ErrorContains(t, err, subject)
		}
		tries := func(user string) *client.Client {
			c, err := client.New(s.ctx(), s.trespass(user), client.Config{Tenant: "acme"})
			require.NoError(t, err)
			t.Cleanup(c.Close)
			return c
		}
		for _, user := range []string{"agent-acme", "viewer-acme", "operator-acme"} {
			_, err := tries(user).Approve(s.ctx(), asked["pay"], client.Answer{})
			permission(err, ".approve.acme.r")
			_, err = tries(user).Reject(s.ctx(), asked["pay"], client.Answer{})
			permission(err, ".approve.acme.r")
		}
		for _, user := range []string{"approver-acme", "viewer-acme", "operator-acme"} {
			_, err := tries(user).Answer(s.ctx(), asked["name"], json.RawMessage("1"), client.Answer{})
			permission(err, ".answer.acme.r")
		}
		// An agent that sends an approval by the verb that it may use is refused by the owner.
		disguised := *asked["pay"]
		disguised.Kind = outcome.Ask
		_, err = agent.Approve(s.ctx(), &disguised, client.Answer{})
		require.Equal(t, fault.Permission, fault.CodeOf(err), "%v", err)
		_, err = agent.Answer(s.ctx(), &disguised, json.RawMessage(`{"text":"x"}`), client.Answer{})
		require.Equal(t, fault.Permission, fault.CodeOf(err), "%v", err)

		approver := tries("approver-acme")
		_, err = approver.Submit(s.ctx(), []byte(guarded), client.SubmitOptions{Run: "own"})
		permission(err, "plan.submit.acme.own")
		permission(cancelled(approver.Cancel(s.ctx(), "r", "")), ".cancel.acme.r")
		require.Len(t, s.waits(agent, "r", 2), 2, "nothing of all that was an answer")

		_, err = agent.Answer(s.ctx(), asked["name"], json.RawMessage(`"Ada"`), client.Answer{})
		require.NoError(t, err)
		_, err = approver.Reject(s.ctx(), asked["pay"], client.Answer{Reason: "no", By: "me"})
		require.NoError(t, err)
		o, err := r.Wait(s.ctx())
		require.NoError(t, err)
		require.Equal(t, fault.Rejected, o.Errors[0].Code)
		require.Equal(t, !s.shape.oneAccount, !strings.Contains(o.Errors[0].Message, "(unverified)"), o.Errors[0].Message)
	})
}
