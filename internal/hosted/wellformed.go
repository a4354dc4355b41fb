package hosted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/stepjet/stepjet/fault"
)

// wellFormed notes what makes the file no JSON, and keys given twice, which a decoder would not notice.
func (p *Problems) wellFormed(raw []byte) bool {
	if !utf8.Valid(raw) {
		p.add(fault.InvalidUTF8, "", "", "the file is not UTF-8")
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := p.walk(dec, "", 0); err != nil {
		p.add(fault.MalformedJSON, "", "", "not valid JSON: %v at %s", err, position(raw, dec.InputOffset()))
		return false
	}
	if _, err := dec.Token(); err != io.EOF {
		p.add(fault.MalformedJSON, "", "", "something follows the JSON at %s", position(raw, dec.InputOffset()))
		return false
	}
	return true
}

const maxDepth = 64

func (p *Problems) walk(dec *json.Decoder, path string, depth int) error {
	token, err := dec.Token()
	if err != nil {
		return notEOF(err)
	}
	open, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if depth >= maxDepth {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	seen := map[string]bool{}
	for i := 0; dec.More(); i++ {
		at := under(path, strconv.Itoa(i))
		if open == '{' {
			key, err := dec.Token()
			if err != nil {
				return notEOF(err)
			}
			name, _ := key.(string)
			at = under(path, name)
			if seen[name] {
				p.add(fault.DuplicateKey, at, "", "the key %q is there twice", name)
			}
			seen[name] = true
		}
		if err := p.walk(dec, at, depth+1); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return notEOF(err)
}

func notEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// position gives line and column of an offset, both from 1.
func position(raw []byte, offset int64) string {
	before := raw[:min(offset, int64(len(raw)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("line %d, column %d", line, column)
}
