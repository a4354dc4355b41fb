package wire

import (
	"encoding/json"

	"github.com/stepjet/stepjet/subjects"
)

// appendJSON writes a string as JSON.
func appendJSON(b []byte, s string) []byte {
	if subjects.Encode(s) == s { // nothing in it needs quoting
		return append(append(append(b, '"'), s...), '"')
	}
	quoted, _ := json.Marshal(s) // strings can't fail
	return append(b, quoted...)
}
