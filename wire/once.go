package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
)

// readOnce reads a request of a person's or an agent's, of which nothing may be taken for something else: no key twice, of
// which the one would count that is read last, and none in other letters, which not every reader takes for the same. what
// names the request in errors, keys are the members that it may have; others are left to newer versions.
func readOnce(body []byte, what string, keys []string, r any) *fault.Error {
	var typed *json.UnmarshalTypeError
	switch err := json.Unmarshal(body, r); {
	case errors.As(err, &typed) && typed.Field == "":
		return fault.New(fault.InvalidValue, "%s is no JSON object, but %s", what, typed.Value)
	case errors.As(err, &typed):
		return fault.New(fault.InvalidValue, "%q of %s can't be %s", typed.Field, what, typed.Value)
	case err != nil:
		return fault.New(fault.InvalidValue, "%s can't be read: %v", what, err)
	}
	seen := map[string]bool{}
	for _, key := range keysOf(body) {
		for _, known := range keys {
			if key != known && strings.EqualFold(key, known) {
				return fault.New(fault.InvalidValue, "%s has %q, which is written %q", what, text.Clip(key, 64), known)
			}
		}
		if seen[key] {
			return fault.New(fault.InvalidValue, "%s has the key %q twice", what, text.Clip(key, 64))
		}
		seen[key] = true
	}
	return nil
}

// keysOf returns the keys of a JSON object as they stand there.
func keysOf(object []byte) (keys []string) {
	d := json.NewDecoder(bytes.NewReader(object))
	_, _ = d.Token() // it was read before: there is nothing that can't be
	for d.More() {
		key, _ := d.Token()
		name, _ := key.(string)
		keys = append(keys, name)
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return keys
		}
	}
	return keys
}
