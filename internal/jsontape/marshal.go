package jsontape

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Marshal returns the JSON of a value as encoding/json writes it, but without the escapes that only HTML needs: what
// people and models read should look as it was written. Errors are those of encoding/json.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// ObjectWriter writes an object whose members stand in the order in which they were added.
type ObjectWriter struct{ b []byte }

// Add adds a member; raw is JSON.
func (o *ObjectWriter) Add(name string, raw []byte) {
	sep := byte(',')
	if len(o.b) == 0 {
		sep = '{'
	}
	o.b = append(AppendQuoted(append(o.b, sep), name), ':')
	o.b = append(o.b, raw...)
}

// Text adds a member that is a string.
func (o *ObjectWriter) Text(name, text string) { o.Add(name, AppendQuoted(nil, text)) }

// Int adds a member that is a number.
func (o *ObjectWriter) Int(name string, n int64) { o.Add(name, strconv.AppendInt(nil, n, 10)) }

// JSON returns the object. The writer is used no more.
func (o *ObjectWriter) JSON() []byte {
	if len(o.b) == 0 {
		return []byte("{}")
	}
	return append(o.b, '}')
}

// Open returns the object without its end, so that members of another may follow. The writer is used no more.
func (o *ObjectWriter) Open() []byte { return o.b }

// AppendArray appends an array.
func AppendArray[S ~[]byte](dst []byte, items []S) []byte {
	dst = append(dst, '[')
	for i, x := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, x...)
	}
	return append(dst, ']')
}
