package jsontape

import (
	"sync"

	"github.com/stepjet/stepjet/fault"
)

// frame is an object or array that is not closed yet.
type frame struct {
	node  int32 // on the tape
	keys  int32 // of an object: where its keys begin in scanner.keys
	index int32 // of an array: the element that is being read
	kind  Kind
	flags Flags
	key   Span // of an object: the key that is being read
}

// SyntaxError says where a text stops being JSON.
type SyntaxError struct {
	At      int
	Message string
	Deep    bool // nothing is wrong but the depth
}

// Scanner checks a JSON text in one pass and without recursion: grammar, depth, UTF-8, surrogates, and keys used twice,
// compared after unescaping. It holds no more than one frame for each open object or array, so that a text nested half
// a million deep costs Limit frames and an error.
type Scanner struct {
	Cursor
	Limit  int    // how deep the text may nest; the root counts one
	Record bool   // a tape is wanted
	Tape   []Node // the caller may set one to be written over; it is the caller's to keep
	// Flaw is told of what is wrong but leaves the text readable: invalid_utf8 and duplicate_key. key is set where it
	// concerns a key of the innermost object. Without it, the first flaw and its pointer are kept in First and Where.
	Flaw  func(s *Scanner, code fault.Code, key *Span)
	First fault.Code
	Where string

	stack []frame
	keys  []Span // of all open objects
	dup   keySet
}

var scanners = sync.Pool{New: func() any { return &Scanner{} }}

// maxKept bounds what a scanner keeps between uses, in entries.
const maxKept = 1 << 12

// New returns a scanner of a text that may nest limit deep. Release it after use.
func New(src []byte, limit int) *Scanner {
	s := scanners.Get().(*Scanner)
	s.Cursor, s.Limit, s.Record, s.Flaw, s.First, s.Where = Cursor{Src: src}, limit, false, nil, "", ""
	s.stack, s.keys = s.stack[:0], s.keys[:0]
	return s
}

// Release hands the scanner back for others to use.
func (s *Scanner) Release() {
	s.Src, s.Tape, s.Flaw = nil, nil, nil
	if cap(s.keys) > maxKept {
		s.keys = nil
	}
	if cap(s.stack) > maxKept {
		s.stack = nil
	}
	s.dup.trim()
	scanners.Put(s)
}

// What the scanner may read next.
const (
	wantValue = iota
	wantFirstValue
	wantKey
	wantFirstKey
	wantSeparator
)

// Scan reads one value and the white space around it, and nothing else.
func (s *Scanner) Scan() *SyntaxError {
	state := wantValue
	for {
		s.Space()
		if s.At >= len(s.Src) {
			return s.fail("the text ends too early")
		}
		c := s.Src[s.At]
		var err *SyntaxError
		switch state {
		case wantFirstKey, wantKey:
			if c == '}' && state == wantFirstKey {
				s.close()
				state = wantSeparator
			} else if err = s.key(c); err == nil {
				state = wantValue
			}
		case wantFirstValue, wantValue:
			if c == ']' && state == wantFirstValue {
				s.close()
				state = wantSeparator
			} else {
				state, err = s.value(c)
			}
		default:
			state, err = s.separator(c)
		}
		if err != nil {
			return err
		}
		if len(s.stack) == 0 {
			s.Space()
			if s.At < len(s.Src) {
				return s.fail("there is more behind the end of the JSON value")
			}
			return nil
		}
	}
}

func (s *Scanner) fail(message string) *SyntaxError { return &SyntaxError{At: s.At, Message: message} }

// key reads a key and its colon.
func (s *Scanner) key(c byte) *SyntaxError {
	if c != '"' {
		return s.fail("a key in double quotes is expected here")
	}
	start := s.At
	flags, bad := s.Quoted()
	if bad != "" {
		return s.fail(bad)
	}
	top := &s.stack[len(s.stack)-1]
	top.key = Span{int32(start + 1), int32(s.At - 1), flags}
	top.flags |= flags & Dollar
	s.keys = append(s.keys, top.key)
	s.add(String, start, flags)
	if flags&BadText != 0 {
		s.report(fault.InvalidUTF8, &top.key)
	}
	s.Space()
	if s.At >= len(s.Src) || s.Src[s.At] != ':' {
		return s.fail(`a ":" is expected here`)
	}
	s.At++
	return nil
}

// value reads a scalar, or the opening of an object or array.
func (s *Scanner) value(c byte) (state int, err *SyntaxError) {
	start := s.At
	switch {
	case c == '"':
		flags, bad := s.Quoted()
		if bad != "" {
			return 0, s.fail(bad)
		}
		s.add(String, start, flags)
		if flags&BadText != 0 {
			s.report(fault.InvalidUTF8, nil)
		}
	case c == '{':
		return wantFirstKey, s.open(Object)
	case c == '[':
		return wantFirstValue, s.open(Array)
	case c == '-' || c >= '0' && c <= '9':
		flags, ok := s.Number()
		if !ok {
			return 0, s.fail("this is not a JSON number")
		}
		s.add(Number, start, flags)
	case c == 't' && s.Word("true"):
		s.add(True, start, 0)
	case c == 'f' && s.Word("false"):
		s.add(False, start, 0)
	case c == 'n' && s.Word("null"):
		s.add(Null, start, 0)
	default:
		return 0, s.fail("a value is expected here")
	}
	return wantSeparator, nil
}

// separator reads a comma or the end of the innermost object or array.
func (s *Scanner) separator(c byte) (state int, err *SyntaxError) {
	top := &s.stack[len(s.stack)-1]
	switch {
	case c == ',' && top.kind == Object:
		s.At++
		return wantKey, nil
	case c == ',':
		s.At++
		top.index++
		return wantValue, nil
	case c == '}' && top.kind == Object, c == ']' && top.kind == Array:
		s.close()
		return wantSeparator, nil
	case top.kind == Object:
		return 0, s.fail(`a "," or "}" is expected here`)
	}
	return 0, s.fail(`a "," or "]" is expected here`)
}

func (s *Scanner) open(k Kind) *SyntaxError {
	if len(s.stack) >= s.Limit {
		return &SyntaxError{At: s.At, Message: "the JSON is nested too deep", Deep: true}
	}
	s.stack = append(s.stack, frame{node: int32(len(s.Tape)), keys: int32(len(s.keys)), kind: k})
	if s.Record {
		s.Tape = append(s.Tape, Node{Start: int32(s.At), Kind: k})
	}
	s.At++
	return nil
}

func (s *Scanner) close() {
	top := &s.stack[len(s.stack)-1]
	s.At++
	if top.kind == Object {
		if own := s.keys[top.keys:]; len(own) > 1 {
			s.dup.find(s.Src, own, func(k *Span) { s.report(fault.DuplicateKey, k) })
		}
		s.keys = s.keys[:top.keys]
	}
	if s.Record {
		n := &s.Tape[top.node]
		n.End, n.Next, n.Flags = int32(s.At), int32(len(s.Tape)), top.flags
	}
	s.stack = s.stack[:len(s.stack)-1]
}

// CloseAll closes what a text that broke off has left open, so that keys used twice in it are reported too.
func (s *Scanner) CloseAll() {
	for len(s.stack) > 0 {
		s.close()
	}
}

func (s *Scanner) add(k Kind, start int, flags Flags) {
	if s.Record {
		s.Tape = append(s.Tape, Node{int32(start), int32(s.At), int32(len(s.Tape)) + 1, k, flags})
	}
}

func (s *Scanner) report(code fault.Code, key *Span) {
	switch {
	case s.Flaw != nil:
		s.Flaw(s, code, key)
	case s.First == "":
		s.First, s.Where = code, s.Pointer("", key)
	}
}

// Pointer returns the JSON pointer of what is being read, behind a prefix. key is set for a key of the innermost
// object.
func (s *Scanner) Pointer(prefix string, key *Span) string {
	b := []byte(prefix)
	for i := range s.stack {
		f := &s.stack[i]
		if f.kind == Array {
			b = AppendIndex(b, int(f.index))
			continue
		}
		k := f.key
		if key != nil && i == len(s.stack)-1 {
			k = *key
		}
		b = AppendToken(b, k.Text(s.Src))
	}
	return string(b)
}
