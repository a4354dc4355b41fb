package plan

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// MaxDepth is how deep JSON may nest, in plans and in tools' outputs; the root counts one.
const MaxDepth = 64

// MaxOutput is the largest output of a tool and the largest resolved arguments of a step, in bytes: 64 MiB.
const MaxOutput = 64 << 20

// maxTolerated is the depth beyond MaxDepth up to which a text is still read to see whether it is JSON at all.
const maxTolerated = 1 << 18

// Output returns the JSON value that a tool's output stands for (plan language, "A tool's output is"). text says that
// its content type was text/plain: then it is a string, also when it is empty. Otherwise it is the JSON that it is, or
// a string where it is not JSON, or null where it is empty.
//
// The result shares the memory of body where that is JSON already, without the white space around it. The error has
// code tool_terminal: the output is not UTF-8 or holds half a surrogate pair, is JSON with a key used twice in one
// object or nested more than MaxDepth deep, or is larger than MaxOutput (code too_large).
func Output(body []byte, text bool) ([]byte, *fault.Error) {
	switch {
	case len(body) > MaxOutput:
		return nil, fault.New(fault.TooLarge, "the output has %d bytes, at most %d are allowed", len(body), MaxOutput).
			WithHint("return a part of it, or a place to fetch it from")
	case text:
		return quote(body)
	case len(body) == 0:
		return []byte("null"), nil
	}
	first, where, err := check(body, MaxDepth)
	if err != nil && err.Deep {
		if _, _, again := check(body, maxTolerated); again == nil || again.Deep {
			return nil, terminal("is JSON nested more than %d deep", MaxDepth).WithHint("return flatter data, or the inner part as a string")
		}
	}
	switch {
	case err != nil:
		return quote(body)
	case first == fault.DuplicateKey:
		return nil, terminal("is JSON with a key used twice in one object, at %q", clip(where)).WithHint("return each key once")
	case first == fault.InvalidUTF8:
		return nil, terminal("is JSON with text that is not valid UTF-8 or half a surrogate pair, at %q", clip(where)).WithHint("return text as UTF-8")
	}
	return trimWhite(body), nil
}

// check scans a text and gives the first flaw that leaves it readable, and where it is.
func check(body []byte, limit int) (first fault.Code, where string, err *jsontape.SyntaxError) {
	s := jsontape.New(body, limit)
	defer s.Release()
	err = s.Scan()
	return s.First, s.Where, err
}

func terminal(format string, args ...any) *fault.Error {
	return fault.New(fault.ToolTerminal, "the tool's output %s", fmt.Sprintf(format, args...))
}

// quote makes a JSON string of text.
func quote(text []byte) ([]byte, *fault.Error) {
	if !utf8.Valid(text) {
		return nil, terminal("is not valid UTF-8").WithHint("return binary data as base64, or a place to fetch it from")
	}
	size := jsontape.EscapedSize(text) + 2
	if size > MaxOutput {
		return nil, fault.New(fault.TooLarge, "the output has %d bytes as a JSON string, at most %d are allowed", size, MaxOutput).
			WithHint("return a part of it, or a place to fetch it from")
	}
	b := make([]byte, 0, size)
	b = append(b, '"')
	b = jsontape.AppendEscaped(b, text)
	return append(b, '"'), nil
}

func trimWhite(b []byte) []byte { return bytes.Trim(b, " \t\r\n") }
