//go:build !race

// Like the other tests of all headers, it reads the sources of the server.

package acl_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// TestNoHeaderSaysWhoApproves: whatever header an approver sends, and whatever it says of itself, the name that stands is the
// server's word, or nothing is approved. Each header has an item of its own to approve.
func TestNoHeaderSaysWhoApproves(t *testing.T) {
	t.Parallel()
	s := start(t, shape{})
	s.staff()
	headers := headersThatName("STEPJET", "orchestrator")
	list, err := json.Marshal(headers)
	require.NoError(t, err)
	agent := s.client("agent-acme", "acme")
	_, err = agent.Submit(s.ctx(), fmt.Appendf(nil, `{"steps":[{"id":"a","tool":"search","approval":true,"for_each":{"in":%s},"arguments":{"text":"x"}}]}`, list),
		client.SubmitOptions{Run: "r"})
	require.NoError(t, err)
	asked := s.waits(agent, "r", len(headers))
	nc, real, believed := s.trespass("approver-acme"), "approver-acme/"+s.public["approver-acme"], 0
	for i, h := range headers {
		m, err := nc.RequestMsg(&nats.Msg{Subject: subjects.API(subjects.NewRun("acme", "r"), subjects.VerbApprove), Header: h, Data: boasting(t, asked, i)}, 2*time.Minute)
		require.NoError(t, err, "%v", h)
		if refusal := wire.ParseRefusal(m.Header, m.Data); refusal != nil {
			require.Equal(t, fault.Permission, fault.CodeOf(refusal), "%v", h)
			continue
		}
		var reply wire.AnswerReply
		require.NoError(t, json.Unmarshal(m.Data, &reply))
		require.True(t, reply.Verified, "%v: nobody approves without a name", h)
		require.Equal(t, real, reply.By, "%v", h)
		believed++
	}
	require.GreaterOrEqual(t, believed, 2, "the server's word takes the place of what is said of itself, and of no header")
}

// boasting is an approval of an item by somebody who says that it is somebody else.
func boasting(t *testing.T, asked map[string]*outcome.Question, item int) []byte {
	t.Helper()
	step := fmt.Sprint("a=", item)
	body, err := wire.AnswerRequest{Step: step, Answer: wire.Answer{Digest: asked[step].Digest, Decision: wire.Approve, By: "boss", Verified: true}}.Body()
	require.NoError(t, err)
	return body
}

// TestNoBytesSayWhoApproves sends headers that no library writes: lines that end in LF alone, which the server does not take for
// lines and readers do, so that it leaves what it would replace; and ends of the header before the end, so that readers don't
// see what the server adds.
func TestNoBytesSayWhoApproves(t *testing.T) {
	t.Parallel()
	s := start(t, shape{})
	s.staff()
	forged := subjects.HeaderRequestInfo + `: {"acc":"STEPJET","user":"boss"}`
	blocks := []string{
		"NATS/1.0\r\n" + forged + "\r\n\r\n",
		"NATS/1.0\r\nX: y\n" + forged + "\r\n\r\n",
		"NATS/1.0\n" + forged + "\n\r\n",
		"NATS/1.0\n" + forged + "\n\n\r\n",
		"NATS/1.0\n" + forged + "\n:\r\n",
		"NATS/1.0\n" + forged + "\nX:\r\n",
		"NATS/1.0\n" + forged + "\nX\r\n",
		"NATS/1.0\n" + strings.Repeat("X:\n", 300) + forged + "\n\n\r\n",
		"NATS/1.0\r\n" + forged + "\n" + forged + "\n\r\n",
	}
	agent := s.client("agent-acme", "acme")
	list, err := json.Marshal(blocks)
	require.NoError(t, err)
	_, err = agent.Submit(s.ctx(), fmt.Appendf(nil, `{"steps":[{"id":"a","tool":"search","approval":true,"for_each":{"in":%s},"arguments":{"text":"x"}}]}`, list),
		client.SubmitOptions{Run: "r"})
	require.NoError(t, err)
	asked := s.waits(agent, "r", len(blocks))
	for i, block := range blocks {
		s.raw("approver-acme", subjects.API(subjects.NewRun("acme", "r"), subjects.VerbApprove), block, boasting(t, asked, i))
	}
	approver := s.client("approver-acme", "acme")
	for _, q := range s.left(approver, "r") {
		_, err := approver.Approve(s.ctx(), q, client.Answer{By: "boss"})
		require.NoError(t, err)
	}
	waiting, err := agent.Attach("r")
	require.NoError(t, err)
	_, err = waiting.Wait(s.ctx())
	require.NoError(t, err)
	doc, err := agent.Get(s.ctx(), "r")
	require.NoError(t, err)
	require.Len(t, doc.Steps[0].Items, len(blocks))
	for i, item := range doc.Steps[0].Items {
		require.NotNil(t, item.Answer, "%q", blocks[i])
		require.True(t, item.Answer.Verified, "%q: nobody approves without a name", blocks[i])
		require.Equal(t, "approver-acme/"+s.public["approver-acme"], item.Answer.By, "%q", blocks[i])
	}
}

// left returns what a run still waits for.
func (s *system) left(c *client.Client, run string) []*outcome.Question {
	s.t.Helper()
	all, err := c.Questions(s.ctx(), run)
	require.NoError(s.t, err)
	return all
}

// raw sends a request with a header as it is, byte for byte, as a user, and waits for its answer, or until the server has
// enough of it.
func (s *system) raw(user, subject, header string, body []byte) {
	t := s.t
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url(), "nats://"))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	lines := bufio.NewReader(conn)
	first, err := lines.ReadString('\n')
	require.NoError(t, err)
	var info struct{ Nonce string }
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(first, "INFO ")), &info))
	seed, err := os.ReadFile(s.seeds[user])
	require.NoError(t, err)
	pair, err := nkeys.FromSeed(seed)
	require.NoError(t, err)
	signed, err := pair.Sign([]byte(info.Nonce))
	require.NoError(t, err)
	inbox := s.grants[user].Inbox + ".raw"
	_, err = fmt.Fprintf(conn, "CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true,\"protocol\":1,\"nkey\":%q,\"sig\":%q}\r\nSUB %s 1\r\nHPUB %s %s %d %d\r\n%s%s\r\n",
		s.public[user], base64.RawURLEncoding.EncodeToString(signed), inbox, subject, inbox, len(header), len(header)+len(body), header, body)
	require.NoError(t, err)
	for {
		line, err := lines.ReadString('\n')
		switch {
		case err != nil || strings.HasPrefix(line, "MSG ") || strings.HasPrefix(line, "HMSG "):
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
			return
		case strings.HasPrefix(line, "PING"):
			_, _ = fmt.Fprint(conn, "PONG\r\n")
		}
	}
}

// headersThatName returns messages' headers that say that they come from an account and a user: of every header that is
// known, and of what looks like the server's own.
func headersThatName(account, user string) (all []nats.Header) {
	info := fmt.Sprintf(`{"acc":%q,"user":%q}`, account, user)
	for _, name := range known() {
		if !strings.HasPrefix(name, "Nats-Trace") && name != subjects.HeaderVersion { // the server answers a trace, and nobody what is of no version
			all = append(all, nats.Header{name: {info}})
		}
	}
	return append(all,
		nil, nats.Header{subjects.HeaderRequestInfo: {info, info}}, nats.Header{strings.ToLower(subjects.HeaderRequestInfo): {info}},
		nats.Header{"NATS-REQUEST-INFO": {info}}, nats.Header{"X": {"y"}, subjects.HeaderRequestInfo: {info}})
}
