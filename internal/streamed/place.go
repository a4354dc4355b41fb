package streamed

import (
	"bytes"
	"fmt"

	"github.com/stepjet/stepjet/internal/text"
)

// place names where in the plan the reader is: line and column from 1, the column in bytes.
func (r *Reader) place() string {
	before := r.text[:max(len(r.text)-1, 0)]
	return fmt.Sprintf("line %d, column %d", bytes.Count(before, []byte{'\n'})+1, len(before)-bytes.LastIndexByte(before, '\n'))
}

// short bounds what a message repeats of the text.
func short(s string) string { return text.Clip(s, 80) }
