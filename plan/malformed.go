package plan

import (
	"bytes"
	"fmt"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// malformed says where and why the text is not JSON, and what is usually behind it.
func (p *parser) malformed(body []byte, err *jsontape.SyntaxError) {
	if err.Deep {
		p.col.addf(fault.MalformedJSON, "", "flatten the arguments", "the JSON is nested more than %d deep, at %s", MaxDepth, position(body, err.At))
		return
	}
	p.col.addf(fault.MalformedJSON, "", syntaxHint(body, err.At), "not JSON at %s: %s", position(body, err.At), err.Message)
}

// position writes a place in a text as line and column, both from 1, the column in bytes.
func position(body []byte, at int) string {
	before := body[:min(at, len(body))]
	line := bytes.Count(before, []byte{'\n'}) + 1
	return fmt.Sprintf("line %d, column %d", line, len(before)-bytes.LastIndexByte(before, '\n'))
}

func syntaxHint(body []byte, at int) string {
	rest := body[min(at, len(body)):]
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return `the plan is empty; write {"steps": […]}`
	case bytes.HasPrefix(body, []byte("\xef\xbb\xbf")):
		return "remove the byte order mark before the first brace"
	case bytes.HasPrefix(bytes.TrimSpace(body), []byte("```")):
		return "send the JSON alone, without the ``` around it"
	case len(rest) == 0:
		return "the text is cut off: close all strings, brackets and braces"
	case rest[0] == '\'':
		return "JSON takes double quotes only"
	case bytes.HasPrefix(rest, []byte("//")), bytes.HasPrefix(rest, []byte("/*")), rest[0] == '#':
		return "JSON has no comments"
	case rest[0] == '}' || rest[0] == ']':
		return "is there a comma too many before it, or a bracket of the wrong kind?"
	case bytes.HasPrefix(rest, []byte("NaN")), bytes.HasPrefix(rest, []byte("Infinity")), bytes.HasPrefix(rest, []byte("-I")):
		return "JSON has neither NaN nor Infinity; write null or a string"
	case bytes.HasPrefix(rest, []byte("True")), bytes.HasPrefix(rest, []byte("False")), bytes.HasPrefix(rest, []byte("None")):
		return "JSON writes true, false and null"
	case rest[0] < 0x20:
		return `write \n, \t or \u00XX in a string`
	}
	return "send one JSON object (RFC 8259) and nothing else"
}
