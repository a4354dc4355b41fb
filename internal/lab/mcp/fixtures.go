// Package mcp holds Stepjet's server of the Model Context Protocol against the protocol's own conformance suite: it hosts
// the tools that the suite wants to find, runs the suite, and reads its checks one by one.
package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// pixel is a PNG of one pixel, silence a WAV of no length; both as base64.
const (
	pixel   = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	silence = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
)

// fixture is a tool that the suite wants to find.
type fixture struct {
	definition string
	do         func(ctx context.Context, arguments json.RawMessage) (string, error)
}

// says returns what a tool says that does nothing else.
func says(result string) func(context.Context, json.RawMessage) (string, error) {
	return func(context.Context, json.RawMessage) (string, error) { return result, nil }
}

// content is a result that is content of MCP.
func content(items string) func(context.Context, json.RawMessage) (string, error) {
	return says(`{"content":[` + items + `]}`)
}

const (
	mixed = `{"type":"text","text":"Multiple content types test:"},{"type":"image","data":"` + pixel + `","mimeType":"image/png"},` +
		`{"type":"resource","resource":{"uri":"test://mixed-content-resource","mimeType":"application/json","text":"{\"test\":\"data\",\"value\":123}"}}`
	schema2020 = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"address":{"type":"object",` +
		`"$anchor":"addressDef","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},"properties":{"name":{"type":"string"},` +
		`"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string"},"phone":{"type":"string"},"email":{"type":"string"}},` +
		`"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]},{}]}],"if":{"properties":{"contactMethod":{"const":"phone"}},` +
		`"required":["contactMethod"]},"then":{"required":["phone"]},"else":{},"additionalProperties":false}`
)

var fixtures = []fixture{
	{`{"name":"greet","description":"Greets.","inputSchema":{"type":"object","properties":{"name":{"type":"string"}}},"x-orchestration":{"task":"never"}}`, greet},
	{`{"name":"slow_compute","description":"Takes its time.","inputSchema":{"type":"object","properties":{"seconds":{"type":"number"},"label":{"type":"string"}}}}`, slow},
	{`{"name":"failing_job","description":"Fails.","x-orchestration":{"task":"required"}}`, failing},
	{`{"name":"protocol_error_job","description":"Fails as a server of MCP does.","x-orchestration":{"task":"always"}}`, protocolError},
	{`{"name":"confirm_delete","description":"Asks first.","inputSchema":{"type":"object","properties":{"filename":{"type":"string"}}},"x-orchestration":{"approval":"always","task":"always"}}`, says(`"deleted"`)},
	{`{"name":"test_custom_headers","description":"Has a header.","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}`, says(`"fine"`)},
	{`{"name":"test_missing_capability","description":"Is a task and nothing else.","x-orchestration":{"task":"required"}}`, says(`"fine"`)},
	{`{"name":"test_elicitation","description":"Asks first.","inputSchema":{"type":"object","properties":{"message":{"type":"string"}}},"x-orchestration":{"approval":"always"}}`, says(`"fine"`)},
	{`{"name":"test_logging_tool","description":"Logs nothing."}`, says(`"fine"`)},
	{`{"name":"test_streaming_elicitation","description":"Asks first.","x-orchestration":{"approval":"always"}}`, says(`"fine"`)},
	{`{"name":"test_input_required_result_elicitation","description":"Asks first.","x-orchestration":{"approval":"always"}}`, says(`"Hello"`)},
	{`{"name":"test_input_required_result_request_state","description":"Asks first.","x-orchestration":{"approval":"always"}}`, says(`"state-ok"`)},
	{`{"name":"test_input_required_result_tampered_state","description":"Asks first.","x-orchestration":{"approval":"always"}}`, says(`"fine"`)},
	{`{"name":"test_input_required_result_capabilities","description":"Asks first.","x-orchestration":{"approval":"always"}}`, says(`"fine"`)},
	{`{"name":"test_simple_text","description":"A text."}`, says(`"This is a simple text response for testing."`)},
	{`{"name":"test_image_content","description":"An image."}`, content(`{"type":"image","data":"` + pixel + `","mimeType":"image/png"}`)},
	{`{"name":"test_audio_content","description":"A sound."}`, content(`{"type":"audio","data":"` + silence + `","mimeType":"audio/wav"}`)},
	{`{"name":"test_embedded_resource","description":"A resource."}`, content(`{"type":"resource","resource":{"uri":"test://embedded-resource","mimeType":"text/plain","text":"This is an embedded resource content."}}`)},
	{`{"name":"test_multiple_content_types","description":"Several kinds."}`, content(mixed)},
	{`{"name":"test_error_handling","description":"Fails."}`, failing},
	{`{"name":"test_tool_with_progress","description":"Takes its time.","x-orchestration":{"task":"never"}}`, func(ctx context.Context, _ json.RawMessage) (string, error) {
		return `"done"`, pause(ctx, 2*time.Second)
	}},
	{`{"name":"json_schema_2020_12_tool","description":"Has a schema of 2020-12.","inputSchema":` + schema2020 + `}`, says(`"fine"`)},
}

func greet(_ context.Context, arguments json.RawMessage) (string, error) {
	var in struct{ Name string }
	if err := json.Unmarshal(arguments, &in); err != nil {
		return "", err
	}
	text, err := json.Marshal(fmt.Sprintf("Hello, %s!", in.Name))
	return string(text), err
}

func slow(ctx context.Context, arguments json.RawMessage) (string, error) {
	var in struct{ Seconds float64 }
	if err := json.Unmarshal(arguments, &in); err != nil {
		return "", err
	}
	return `"computed"`, pause(ctx, time.Duration(in.Seconds*float64(time.Second)))
}

// pause is how long a tool works.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func failing(ctx context.Context, _ json.RawMessage) (string, error) {
	if err := pause(ctx, time.Second); err != nil {
		return "", err
	}
	return "", fault.New(fault.ToolTerminal, "This tool intentionally returns an error for testing")
}

func protocolError(ctx context.Context, _ json.RawMessage) (string, error) {
	if err := pause(ctx, time.Second/2); err != nil {
		return "", err
	}
	f := fault.New(fault.ToolTerminal, "the server behind the tool answered with an error")
	f.Details = json.RawMessage(`{"jsonrpc":{"code":-32603,"message":"internal error"}}`)
	return "", f
}

// Host registers the tools.
func Host(w *worker.Worker) error {
	for _, f := range fixtures {
		def, err := tool.ParseDefinition([]byte(f.definition))
		if err != nil {
			return err
		}
		err = w.HandleRaw(def, func(ctx context.Context, arguments json.RawMessage) (worker.Output, error) {
			result, err := f.do(ctx, arguments)
			return worker.Output{Body: []byte(result)}, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
