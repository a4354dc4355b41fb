package plan

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// Place is where in the text of a plan a value stands.
type Place struct {
	Offset int `json:"offset"` // of its first byte, from 0
	End    int `json:"end"`    // behind its last byte
	Line   int `json:"line"`   // from 1
	Column int `json:"column"` // in characters, from 1
}

// Locate returns where in the text of a plan, with steps or of the state dialect, the values stand that JSON pointers
// (RFC 6901) lead to, such as those of Problems: a place for each, in their order. That of a member is its value's; of
// what is absent that of the object or list which should hold it, the last on the way; and of what stands within a
// string, the string's. Of keys that are written twice the last counts.
//
// Of a text that is no JSON each place is the byte at which that shows.
func Locate(text []byte, pointers ...string) []Place {
	s := jsontape.New(text, maxTolerated)
	defer s.Release()
	s.Record = true
	err := s.Scan()
	places := make([]Place, len(pointers))
	for i, pointer := range pointers {
		if err != nil {
			at := min(err.At, len(text))
			places[i] = placeOf(text, at, at)
			continue
		}
		n := &s.Tape[follow(text, s.Tape, pointer)]
		places[i] = placeOf(text, int(n.Start), int(n.End))
	}
	return places
}

// follow returns the last node on the way of a pointer that is there.
func follow(text []byte, tape []jsontape.Node, pointer string) (at int32) {
	for _, token := range strings.Split(pointer, "/")[1:] {
		below := child(text, tape, at, jsontape.UnescapeToken(token))
		if below == 0 {
			return at
		}
		at = below
	}
	return at
}

// child returns the value of a key of an object, or an item of a list; 0 where there is none.
func child(text []byte, tape []jsontape.Node, of int32, token string) (found int32) {
	end := tape[of].Next
	switch tape[of].Kind {
	case jsontape.Object:
		for k := of + 1; k < end; k = tape[k+1].Next {
			key := tape[k].Inside()
			if key.Text(text) == token {
				found = k + 1
			}
		}
	case jsontape.Array:
		n := 0
		for v := of + 1; v < end; v = tape[v].Next {
			if strconv.Itoa(n) == token {
				return v
			}
			n++
		}
	default: // nothing is within
	}
	return found
}

func placeOf(text []byte, from, end int) Place {
	before := text[:from]
	start := bytes.LastIndexByte(before, '\n') + 1
	return Place{
		Offset: from, End: end, Line: bytes.Count(before, []byte{'\n'}) + 1, Column: utf8.RuneCount(before[start:]) + 1,
	}
}
