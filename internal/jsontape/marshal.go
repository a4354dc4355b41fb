package jsontape

import (
	"bytes"
	"encoding/json"
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
