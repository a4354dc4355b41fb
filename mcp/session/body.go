package session

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxMessage is the largest message of an MCP server, in bytes: that of go-sdk.
const maxMessage = 16 << 20

var errHuge = errors.New("the answer is over 16 MiB")

// tapBody keeps the result that a response brings, in either of the forms of Streamable HTTP.
func tapBody(resp *http.Response, c *capture) (*http.Response, error) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "application/json":
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage+1))
		_ = resp.Body.Close() // all that is wanted of it is read
		if err == nil && len(body) > maxMessage {
			c.note(func(c *capture) { c.huge = true })
			err = errHuge
		}
		if err != nil {
			return nil, err
		}
		c.message(body)
		resp.Body = io.NopCloser(bytes.NewReader(body))
	case "text/event-stream":
		resp.Body = &eventTap{ReadCloser: resp.Body, capture: c}
	}
	return resp, nil
}

// message takes one message of the server, which may be an answer.
func (c *capture) message(raw []byte) {
	m, err := jsonrpc.DecodeMessage(raw)
	if err != nil {
		return
	}
	switch m := m.(type) {
	case *jsonrpc.Response:
		c.answered(m)
	case *jsonrpc.Request:
		c.asks(m)
	}
}

// eventTap reads server-sent events along with go-sdk: each line that begins with "data:" is one of a message, which an
// empty line ends.
type eventTap struct {
	io.ReadCloser
	capture *capture
	line    []byte // what has come of the line that has not ended
	data    []byte
}

// Read passes on what comes.
func (t *eventTap) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.follow(p[:n])
	if err == io.EOF { //nolint:errorlint // io.Reader's contract
		t.ended()
		t.event()
	}
	return n, err
}

func (t *eventTap) follow(b []byte) {
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			t.keep(b)
			return
		}
		t.keep(b[:end])
		t.ended()
		b = b[end+1:]
	}
}

// keep bounds what is held: go-sdk closes the connection at the same size.
func (t *eventTap) keep(b []byte) {
	if len(t.line)+len(t.data)+len(b) > maxMessage {
		t.capture.note(func(c *capture) { c.huge = true })
		t.line, t.data = nil, nil
		return
	}
	t.line = append(t.line, b...)
}

// ended takes a whole line.
func (t *eventTap) ended() {
	line := bytes.TrimSuffix(t.line, []byte("\r"))
	value, ok := bytes.CutPrefix(line, []byte("data:"))
	switch {
	case len(line) == 0:
		t.event()
	case ok:
		if len(t.data) > 0 {
			t.data = append(t.data, '\n')
		}
		t.data = append(t.data, bytes.TrimPrefix(value, []byte(" "))...)
	}
	t.line = t.line[:0]
}

func (t *eventTap) event() {
	if len(t.data) > 0 {
		t.capture.message(t.data)
		t.data = nil
	}
}
