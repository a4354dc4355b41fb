package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/stepjet/stepjet/mcp/bridge"
	"github.com/stepjet/stepjet/worker"
)

// The chain: a server of another hand that has the suite's tools, bridged, whose calls are steps of runs that
// "stepjet mcp" serves. A bridge puts the name of the server before that of a tool, and the suite calls tools by
// names of its own; so what stands before them is taken off between "stepjet mcp" and the suite.

// chained is the name of the server in the chain.
const chained = "suite"

// Chain runs the chain with a program that serves the suite's tools on standard input and output, and calls do with the
// address where the suite finds them.
func Chain(ctx context.Context, program string, do func(url string) error) error {
	dir, err := os.MkdirTemp("", "stepjet-chain-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program, err = filepath.Abs(program)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "servers.json")
	servers, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{chained: map[string]any{ // it can be written
		"command": program, "x-stepjet": map[string]any{"isolation": "shared"},
	}}})
	if err := os.WriteFile(file, servers, 0o600); err != nil {
		return err
	}
	b, err := bridge.Open(ctx, bridge.Options{File: file, TrustFirstUse: true})
	if err != nil {
		return err
	}
	defer b.Close()
	return serveWith(ctx, func(w *worker.Worker) error { return b.Register(w) }, func(inner string) error {
		return renaming(ctx, inner, chained+"_", do)
	})
}

// renaming serves what a server of MCP serves, with the names of tools that begin with a prefix without it.
func renaming(ctx context.Context, inner, prefix string, do func(url string) error) error {
	target, err := url.Parse(inner)
	if err != nil {
		return err
	}
	names := renamer{prefix: prefix}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host // Host and Origin are the caller's, and judged
		},
		FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			r.Body = names.out(r.Body)
			r.Header.Del("Content-Length")
			r.ContentLength = -1
			return nil
		},
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &http.Server{ReadHeaderTimeout: witnessWithin, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if names.in(w, r) {
			proxy.ServeHTTP(w, r)
		}
	})}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	err = do("http://" + l.Addr().String() + target.Path)
	_ = s.Close() // streams that are open are of no use any more
	if e := <-served; err == nil && !errors.Is(e, http.ErrServerClosed) {
		err = e
	}
	return err
}

// renamer puts a prefix before the names of tools that are called, and takes it off those that are listed.
type renamer struct{ prefix string }

// own are the tools of "stepjet mcp" itself.
var own = []string{"execute_tool_plan", "search_tools", "get_plan_result", "cancel_plan"}

func (n renamer) full(name string) string {
	if slices.Contains(own, name) {
		return name
	}
	return n.prefix + name
}

// in renames the tool of a request; false where it was answered.
func (n renamer) in(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPost {
		return true
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the body can't be read", http.StatusBadRequest)
		return false
	}
	if renamed := n.call(body); renamed != nil {
		body = renamed
		if name := r.Header.Get("Mcp-Name"); name != "" {
			r.Header.Set("Mcp-Name", n.full(name))
		}
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return true
}

// call renames the tool of a call; nil for any other message.
func (n renamer) call(body []byte) []byte {
	var message, params map[string]json.RawMessage
	var method, name string
	for _, read := range []func() error{
		func() error { return json.Unmarshal(body, &message) },
		func() error { return json.Unmarshal(message["method"], &method) },
		func() error { return json.Unmarshal(message["params"], &params) },
		func() error { return json.Unmarshal(params["name"], &name) },
	} {
		if read() != nil {
			return nil // whose mistake that is, the server says
		}
	}
	if method != "tools/call" {
		return nil
	}
	params["name"], _ = json.Marshal(n.full(name)) // what was read can be written
	message["params"], _ = json.Marshal(params)
	body, _ = json.Marshal(message)
	return body
}

// out renames the tools of an answer, line by line as they come.
func (n renamer) out(body io.ReadCloser) io.ReadCloser {
	from, to := io.Pipe()
	go func() {
		lines := bufio.NewReader(body)
		for {
			line, err := lines.ReadBytes('\n')
			line = bytes.ReplaceAll(line, []byte(`"name":"`+n.prefix), []byte(`"name":"`))
			if _, e := to.Write(line); e != nil {
				err = e
			}
			if err != nil {
				_ = body.Close() // the reader has what there is, or is gone
				to.CloseWithError(err)
				return
			}
		}
	}()
	return from
}
