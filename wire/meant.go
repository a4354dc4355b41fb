package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/stepjet/stepjet/fault"
)

// meantKey is the member of a request about a run that says which run of its id is meant.
const meantKey = "generation"

// For returns a request about a run, a JSON object, that says which run of its id is meant; as it is for whichever has the id,
// which is 0. An orchestrator of before takes it for that.
func For(generation uint64, request []byte) []byte {
	if generation == 0 || len(request) == 0 || request[0] != '{' {
		return request
	}
	rest := bytes.TrimSpace(request[1:])
	said := strconv.AppendUint([]byte(`{"`+meantKey+`":`), generation, 10)
	if rest[0] != '}' {
		said = append(said, ',')
	}
	return append(said, rest...)
}

// Meant returns the generation of the run that a request is about; 0 where it says nothing of that. Errors: InvalidValue for
// what is no number from 1. What else is wrong with it is for its own reader to say.
func Meant(request []byte) (uint64, error) {
	var of struct {
		Generation *uint64 `json:"generation"`
	}
	var typed *json.UnmarshalTypeError
	switch err := json.Unmarshal(request, &of); {
	case errors.As(err, &typed) && typed.Field == meantKey, err == nil && of.Generation != nil && *of.Generation == 0:
		return 0, fault.New(fault.InvalidValue, "%q says which run of the id is meant, and is no generation", meantKey).
			WithHint("it is a number: the seq in the acknowledgement of the run's plan")
	case err != nil || of.Generation == nil:
		return 0, nil
	}
	return *of.Generation, nil
}
