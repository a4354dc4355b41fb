package session

import (
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/mcp/content"
)

// scripted is a connection whose server says what the test has written down.
type scripted struct {
	mcp.Connection
	says []jsonrpc.Message
}

func (s *scripted) Write(context.Context, jsonrpc.Message) error { return nil }

func (s *scripted) Read(context.Context) (jsonrpc.Message, error) {
	if len(s.says) == 0 {
		return nil, io.EOF
	}
	m := s.says[0]
	s.says = s.says[1:]
	return m, nil
}

func idOf(t *testing.T, n float64) jsonrpc.ID {
	t.Helper()
	id, err := jsonrpc.MakeID(n)
	require.NoError(t, err)
	return id
}

// Over one connection for all calls, a question is of a call where that is the only one; else nobody knows whose it is.
func TestWhoseQuestionItIs(t *testing.T) {
	t.Parallel()
	ask := func(method string) jsonrpc.Message {
		return &jsonrpc.Request{ID: idOf(t, 90), Method: method, Params: json.RawMessage(`{"message":"Where?"}`)}
	}
	c := &scripted{}
	conn := &tapped{Connection: c, session: &Session{}, waiting: map[jsonrpc.ID]*capture{}}
	read := func(m jsonrpc.Message) {
		c.says = append(c.says, m)
		_, err := conn.Read(t.Context())
		require.NoError(t, err)
	}
	first, second := newCapture(), newCapture()
	call := func(of *capture, n float64) {
		require.NoError(t, conn.Write(of.in(t.Context()), &jsonrpc.Request{ID: idOf(t, n), Method: "tools/call"}))
	}
	read(ask(content.Elicit)) // of none
	call(first, 1)
	read(ask(content.Elicit))
	read(ask("roots/list"))
	read(ask("ping"))
	call(second, 2)
	read(ask(content.Sample))
	require.Equal(t, []content.Question{{Method: content.Elicit, Message: "Where?"}}, first.questions())
	require.Empty(t, second.questions())

	read(&jsonrpc.Response{ID: idOf(t, 1), Result: json.RawMessage(`{}`)})
	for range 2 * mostQuestions {
		read(ask(content.Sample))
	}
	require.Len(t, first.questions(), 1, "it is over")
	require.Len(t, second.questions(), mostQuestions)
}
