package mcp

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/mcp/bridge"
	"github.com/stepjet/stepjet/plan"
)

// The suite has scenarios for clients too: it serves, and looks at what a client sends. The client is the bridge, whose
// calls are steps of runs.

// clientline is the baseline of the bridge as a client.
//
//go:embed suite/client.txt
var clientline string

// clientScenarios are those that are about what the bridge does: no sign-on, no questions, no streams that are resumed.
var clientScenarios = []string{
	"tools_call", "request-metadata", "http-standard-headers", "http-custom-headers", "http-invalid-tool-headers",
	"json-schema-ref-no-deref", "json-schema-2020-12-preservation",
}

const clientRevision = "2026-07-28"

// RunClient runs the suite's scenarios for clients against the bridge. self is a command that takes the address of a
// server, and calls AsClient.
func RunClient(ctx context.Context, folder, self string, out io.Writer) (*Tally, error) {
	results, err := os.MkdirTemp("", "stepjet-mcp-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(results) }()
	for _, scenario := range clientScenarios {
		said, err := node(ctx, folder, suiteProgram, "client", "--command", self, "--scenario", scenario, "--spec-version", clientRevision,
			"--output-dir", results).CombinedOutput()
		if err != nil { // its checks say what was not as it should be
			_, _ = fmt.Fprintf(out, "%s: %v\n%s\n", scenario, err, lastLines(said))
		}
	}
	scenarios, err := readChecks(results)
	if err != nil {
		return nil, err
	}
	for _, scenario := range clientScenarios {
		if scenarios[scenario] == nil {
			scenarios[scenario] = []check{{ID: "ran", Status: "FAILURE", Message: "there are no checks"}}
		}
	}
	return judge(scenarios, clientline, clientRevision, out)
}

// lastLines are the last of what a program said.
func lastLines(said []byte) string {
	const most = 15
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

// asked is a call that a scenario wants.
type asked struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// AsClient bridges the server of a scenario and makes the calls that it wants, each as a run.
func AsClient(ctx context.Context, url, scenario, wants string) error {
	dir, err := os.MkdirTemp("", "stepjet-client-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "servers.json")
	servers, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{chained: map[string]any{ // it can be written
		"url": url, "x-stepjet": map[string]any{"allow_private": true},
	}}})
	if err := os.WriteFile(file, servers, 0o600); err != nil {
		return err
	}
	b, err := bridge.Open(ctx, bridge.Options{File: file, TrustFirstUse: true, Logger: warnings()})
	if err != nil {
		if listed(scenario) && fault.CodeOf(err) == fault.InvalidConfig {
			return nil // none of its tools can be hosted, which is as it should be
		}
		return err
	}
	defer b.Close()
	calls, err := callsOf(b, scenario, wants)
	if err != nil || len(calls) == 0 {
		return err
	}
	return whole(ctx, "client", b.Register, func(c *client.Client) error { return callAll(ctx, c, calls) })
}

// callAll runs a plan for each call, one after the other.
func callAll(ctx context.Context, c *client.Client, calls []asked) error {
	for _, call := range calls {
		arguments, err := plan.Escape(call.Arguments)
		if err != nil {
			return err
		}
		body := fmt.Appendf(nil, `{"steps":[{"id":"a","tool":%q,"arguments":%s,"retry":{"max_attempts":1}}]}`, chained+"_"+call.Name, arguments)
		end, err := c.Run(ctx, body, client.SubmitOptions{})
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(os.Stderr, "%s: %s\n", call.Name, end.JSON()) // a call that is refused may be what is wanted
	}
	return nil
}

// listed reports whether all that a scenario wants is that tools are listed.
func listed(scenario string) bool {
	return scenario == "request-metadata" || scenario == "json-schema-ref-no-deref"
}

// callsOf are the calls that a scenario wants.
func callsOf(b *bridge.Bridge, scenario, wants string) (calls []asked, err error) {
	none := json.RawMessage("{}")
	switch scenario {
	case "tools_call":
		return []asked{{"add_numbers", json.RawMessage(`{"a":5,"b":3}`)}}, nil
	case "http-custom-headers":
		var context struct{ ToolCalls []asked }
		err := json.Unmarshal([]byte(wants), &context)
		return context.ToolCalls, err
	case "http-standard-headers", "http-invalid-tool-headers":
		for _, d := range b.Definitions() {
			name, _ := strings.CutPrefix(d.Name, chained+"_")
			if scenario == "http-invalid-tool-headers" {
				none = json.RawMessage(`{"region":"us-west1"}`)
			}
			calls = append(calls, asked{name, none})
		}
		return calls, nil
	case "json-schema-2020-12-preservation":
		for _, d := range b.Definitions() {
			if d.Name == chained+"_json_schema_2020_12_tool" {
				return []asked{{"json_schema_echo", append(append([]byte(`{"schema":`), d.InputSchema...), '}')}}, nil
			}
		}
		return nil, errors.New("the tool whose schema is looked at is not there")
	}
	return nil, nil // to connect and to list is all
}
