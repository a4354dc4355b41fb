package model

import (
	"bytes"
	"encoding/json"
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
