package model

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// encode writes a value as JSON without escaping HTML: what a model reads should look as it was written. Values of this
// package can all be written.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// compact returns JSON without spaces, null for nothing.
func compact(raw []byte) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil || b.Len() == 0 {
		return json.RawMessage("null")
	}
	return b.Bytes()
}

// body is a JSON object whose members stand in the order in which they were added: that of a map or of a foreign
// struct could change, and with it the prefix that a prompt cache knows.
type body struct{ b bytes.Buffer }

func (o *body) add(name string, v any) {
	sep := byte(',')
	if o.b.Len() == 0 {
		sep = '{'
	}
	o.b.WriteByte(sep)
	o.b.Write(encode(name))
	o.b.WriteByte(':')
	o.b.Write(encode(v))
}

func (o *body) json() []byte { return append(o.b.Bytes(), '}') }

func compactOrNil(raw json.RawMessage) json.RawMessage {
	if isNull(raw) {
		return nil
	}
	return compact(raw)
}

// count is a number of tokens, however it is written (12.0, 1.2e1, "12"): a part of a token is one. What is no number, and one below
// zero, is none. An answer that is there is not thrown away for how its provider counts.
type count int64

// maxCount is more tokens than any answer has, and few enough that sums of them are none below zero.
const maxCount = 1 << 50

// UnmarshalJSON reads any value.
func (c *count) UnmarshalJSON(raw []byte) error {
	v, err := strconv.ParseFloat(strings.TrimSpace(strings.Trim(string(raw), `"`)), 64)
	if *c = 0; err == nil && v > 0 {
		*c = count(math.Ceil(min(v, maxCount)))
	}
	return nil
}
