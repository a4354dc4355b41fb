package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"sync"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

// unmarshal reads arguments that fit the schema into a Go value. JSON Schema counts 5.0 as an integer, encoding/json
// doesn't: arguments fail only where they don't fit once whole numbers are written as such. Errors have code
// invalid_arguments.
func unmarshal(args json.RawMessage, into any) error {
	err := json.Unmarshal(args, into)
	if err == nil {
		return nil
	}
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) && strings.HasPrefix(mismatch.Value, "number") {
		if plain, ok := wholeNumbers(args); ok && json.Unmarshal(plain, into) == nil {
			return nil
		}
	}
	return fault.New(fault.InvalidArguments, "the arguments can't be read: %v", err)
}

// wholeNumbers rewrites numbers such as 5.0 and 1e3 as 5 and 1000; ok is false if args is not JSON.
func wholeNumbers(args []byte) (out []byte, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil, false
	}
	out, err := json.Marshal(rewrite(v))
	return out, err == nil
}

// rewrite walks a decoded value. Its depth is that of arguments: 64 at most, as a plan is checked.
func rewrite(v any) any {
	switch v := v.(type) {
	case json.Number:
		return whole(v)
	case []any:
		for i := range v {
			v[i] = rewrite(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = rewrite(v[k])
		}
	}
	return v
}

// whole writes a number without fraction and exponent if it is an integer of at most 64 bits, and leaves others alone.
func whole(n json.Number) json.Number {
	s := string(n)
	if !strings.ContainsAny(s, ".eE") || len(s) > 64 {
		return n
	}
	f, _, err := big.ParseFloat(s, 10, 256, big.ToNearestEven) // an exponent of any size costs no memory here
	if err != nil || !f.IsInt() || f.MantExp(nil) > 64 {
		return n
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(s), "e")
	if f.Sign() == 0 && strings.ContainsAny(mantissa, "123456789") {
		return n // not zero, only too small to tell
	}
	i, _ := f.Int(nil)
	return json.Number(i.String())
}

// encoder is a buffer with a JSON encoder on it, used again and again.
type encoder struct {
	buf bytes.Buffer
	enc *json.Encoder
}

// keptBuffer is the largest buffer, in bytes, that is kept for the next result.
const keptBuffer = 64 << 10

var encoders = sync.Pool{New: func() any {
	e := new(encoder)
	e.enc = json.NewEncoder(&e.buf)
	e.enc.SetEscapeHTML(false)
	return e
}}

// marshal writes a result as JSON, without escaping HTML. What can't be written is a defect of the tool: the error has
// code tool_terminal.
func marshal(v any) ([]byte, error) {
	e := encoders.Get().(*encoder)
	e.buf.Reset()
	if err := e.enc.Encode(v); err != nil {
		encoders.Put(e)
		return nil, fault.Wrap(fault.ToolTerminal, err, "the tool's result can't be written as JSON")
	}
	body := bytes.Clone(bytes.TrimSuffix(e.buf.Bytes(), []byte("\n")))
	if e.buf.Cap() <= keptBuffer {
		encoders.Put(e)
	}
	return body, nil
}

// shownViolations bounds how many violations of a schema an error names.
const shownViolations = 10

// checkArguments holds arguments against the tool's schema. It returns nil where they fit, else invalid_arguments with
// the first violations in the message.
func checkArguments(schema *tool.Schema, args []byte) *fault.Error {
	found := schema.Check(args, nil)
	if len(found) == 0 {
		return nil
	}
	return fault.New(fault.InvalidArguments, "the arguments don't fit the tool's input schema: %s", violations(found)).
		WithHint("%s", found[0].Hint)
}

// violations lists the first violations of a schema.
func violations(found []tool.Violation) string {
	var b strings.Builder
	for i, v := range found {
		if i == shownViolations {
			b.WriteString("; …")
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		if v.Pointer != "" {
			b.WriteString(v.Pointer + ": ")
		}
		b.WriteString(v.Message)
	}
	return b.String()
}
