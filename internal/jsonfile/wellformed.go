package jsonfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

const maxDepth = 64

// WellFormed notes what makes the file no JSON, and keys given twice, which a decoder would not notice.
func (p *Problems) WellFormed(raw []byte) bool {
	if !utf8.Valid(raw) {
		p.Add(fault.InvalidUTF8, "", "", "the file is not UTF-8")
		return false
	}
	s := jsontape.New(raw, maxDepth)
	defer s.Release()
	type key struct {
		at         int32
		path, name string
	}
	var twice []key
	s.Flaw = func(s *jsontape.Scanner, code fault.Code, k *jsontape.Span) {
		if code == fault.DuplicateKey {
			twice = append(twice, key{k.Start, s.Pointer("", k), k.Text(raw)})
		}
	}
	err := s.Scan()
	s.CloseAll()
	slices.SortFunc(twice, func(a, b key) int { return int(a.at - b.at) })
	for _, k := range twice {
		p.Add(fault.DuplicateKey, k.path, "", "the key %q is there twice", k.name)
	}
	if err != nil {
		p.Add(fault.MalformedJSON, "", "", "%s", malformed(raw))
	}
	return err == nil
}

// malformed says what is wrong with text that is no JSON, in the words of encoding/json.
func malformed(raw []byte) string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	for depth := 0; ; {
		token, err := dec.Token()
		switch token {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > maxDepth {
				err = fmt.Errorf("nested deeper than %d", maxDepth)
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Sprintf("not valid JSON: %v at %s", err, position(raw, dec.InputOffset()))
		}
		if depth == 0 {
			_, _ = dec.Token() // how far it comes is what is of use here
			return "something follows the JSON at " + position(raw, dec.InputOffset())
		}
	}
}

// position returns line and column of an offset, both from 1.
func position(raw []byte, offset int64) string {
	before := raw[:min(offset, int64(len(raw)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("line %d, column %d", line, column)
}
