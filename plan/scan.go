package plan

import (
	"sync"

	"github.com/stepjet/stepjet/fault"
)

// MaxDepth is how deep JSON may nest, in plans and in tools' outputs; the root counts one.
const MaxDepth = 64

// frame is an object or array that is not closed yet.
type frame struct {
	node  int32 // on the tape
	keys  int32 // of an object: where its keys begin in scanner.keys
	index int32 // of an array: the element that is being read
	kind  kind
	flags flag
	key   span // of an object: the key that is being read
}

// span is a string in the source, without its quotes.
type span struct {
	start, end int32
	flags      flag
}

// syntaxError says where a text stops being JSON.
type syntaxError struct {
	at      int
	message string
	deep    bool // nothing wrong but the depth
}

// scanner checks a JSON text in one pass and without recursion: grammar, depth, UTF-8, surrogates, and keys used twice,
// compared after unescaping. It records a tape of nodes if asked to. It holds no more than one frame for each open
// object or array, so that a text nested half a million deep costs 64 frames and an error.
type scanner struct {
	src    []byte
	i      int
	limit  int // of depth
	record bool
	tape   []node
	stack  []frame
	keys   []span // of all open objects
	dup    keySet
	// flaw is told of what is wrong but leaves the text readable: invalid_utf8 and duplicate_key. key is set where it
	// concerns a key of the innermost object. Without it, the first flaw and its pointer are kept.
	flaw  func(s *scanner, code fault.Code, key *span)
	first fault.Code
	where string
}

var scanners = sync.Pool{New: func() any { return &scanner{} }}

// maxKept bounds what a scanner keeps between uses, in entries.
const maxKept = 1 << 12

func newScanner(src []byte) *scanner {
	s := scanners.Get().(*scanner)
	s.src, s.i, s.limit, s.record, s.flaw, s.first, s.where = src, 0, MaxDepth, false, nil, "", ""
	s.stack, s.keys = s.stack[:0], s.keys[:0]
	return s
}

// release gives the scanner back; its tape is the caller's to keep.
func (s *scanner) release() {
	s.src, s.tape, s.flaw = nil, nil, nil
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

// document scans one value and the white space around it, and nothing else.
func (s *scanner) document() *syntaxError {
	state := wantValue
	for {
		s.space()
		if s.i >= len(s.src) {
			return s.fail("the text ends too early")
		}
		c := s.src[s.i]
		var err *syntaxError
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
			s.space()
			if s.i < len(s.src) {
				return s.fail("there is more behind the end of the JSON value")
			}
			return nil
		}
	}
}

func (s *scanner) fail(message string) *syntaxError { return &syntaxError{at: s.i, message: message} }

func (s *scanner) space() {
	for s.i < len(s.src) {
		switch s.src[s.i] {
		case ' ', '\n', '\t', '\r':
			s.i++
		default:
			return
		}
	}
}

// key reads a key and its colon.
func (s *scanner) key(c byte) *syntaxError {
	if c != '"' {
		return s.fail("a key in double quotes is expected here")
	}
	start := s.i
	flags, err := s.str()
	if err != nil {
		return err
	}
	top := &s.stack[len(s.stack)-1]
	top.key = span{int32(start + 1), int32(s.i - 1), flags}
	top.flags |= flags & fDollar
	s.keys = append(s.keys, top.key)
	s.add(kString, start, flags)
	if flags&fBadText != 0 {
		s.report(fault.InvalidUTF8, &top.key)
	}
	s.space()
	if s.i >= len(s.src) || s.src[s.i] != ':' {
		return s.fail(`a ":" is expected here`)
	}
	s.i++
	return nil
}

// value reads a scalar, or the opening of an object or array.
func (s *scanner) value(c byte) (state int, err *syntaxError) {
	start := s.i
	switch {
	case c == '"':
		flags, err := s.str()
		if err != nil {
			return 0, err
		}
		s.add(kString, start, flags)
		if flags&fBadText != 0 {
			s.report(fault.InvalidUTF8, nil)
		}
	case c == '{':
		return wantFirstKey, s.open(kObject)
	case c == '[':
		return wantFirstValue, s.open(kArray)
	case c == '-' || c >= '0' && c <= '9':
		end, ok := numberEnd(s.src, s.i)
		s.i = end
		if !ok {
			return 0, s.fail("this is not a JSON number")
		}
		s.add(kNumber, start, 0)
	case c == 't' && s.word("true"):
		s.add(kTrue, start, 0)
	case c == 'f' && s.word("false"):
		s.add(kFalse, start, 0)
	case c == 'n' && s.word("null"):
		s.add(kNull, start, 0)
	default:
		return 0, s.fail("a value is expected here")
	}
	return wantSeparator, nil
}

// str reads a string from its opening quote on.
func (s *scanner) str() (flag, *syntaxError) {
	end, flags, bad := scanString(s.src, s.i+1)
	s.i = end
	if bad != "" {
		return 0, s.fail(bad)
	}
	s.i++
	return flags, nil
}

func (s *scanner) word(w string) bool {
	if len(s.src)-s.i < len(w) || string(s.src[s.i:s.i+len(w)]) != w {
		return false
	}
	s.i += len(w)
	return true
}

// separator reads a comma or the end of the innermost object or array.
func (s *scanner) separator(c byte) (state int, err *syntaxError) {
	top := &s.stack[len(s.stack)-1]
	switch {
	case c == ',' && top.kind == kObject:
		s.i++
		return wantKey, nil
	case c == ',':
		s.i++
		top.index++
		return wantValue, nil
	case c == '}' && top.kind == kObject, c == ']' && top.kind == kArray:
		s.close()
		return wantSeparator, nil
	case top.kind == kObject:
		return 0, s.fail(`a "," or "}" is expected here`)
	}
	return 0, s.fail(`a "," or "]" is expected here`)
}

func (s *scanner) open(k kind) *syntaxError {
	if len(s.stack) >= s.limit {
		return &syntaxError{at: s.i, message: "the JSON is nested too deep", deep: true}
	}
	s.stack = append(s.stack, frame{node: int32(len(s.tape)), keys: int32(len(s.keys)), kind: k})
	if s.record {
		s.tape = append(s.tape, node{start: int32(s.i), kind: k})
	}
	s.i++
	return nil
}

func (s *scanner) close() {
	top := &s.stack[len(s.stack)-1]
	s.i++
	if top.kind == kObject {
		if own := s.keys[top.keys:]; len(own) > 1 {
			s.dup.find(s.src, own, func(k *span) { s.report(fault.DuplicateKey, k) })
		}
		s.keys = s.keys[:top.keys]
	}
	if s.record {
		n := &s.tape[top.node]
		n.end, n.next, n.flags = int32(s.i), int32(len(s.tape)), top.flags
	}
	s.stack = s.stack[:len(s.stack)-1]
}

func (s *scanner) add(k kind, start int, flags flag) {
	if s.record {
		s.tape = append(s.tape, node{int32(start), int32(s.i), int32(len(s.tape)) + 1, k, flags})
	}
}

func (s *scanner) report(code fault.Code, key *span) {
	switch {
	case s.flaw != nil:
		s.flaw(s, code, key)
	case s.first == "":
		s.first, s.where = code, s.pointer("", key)
	}
}

// pointer gives the JSON pointer of what is being read, behind a prefix. key is set for a key of the innermost object.
func (s *scanner) pointer(prefix string, key *span) string {
	b := []byte(prefix)
	for i := range s.stack {
		f := &s.stack[i]
		if f.kind == kArray {
			b = appendIndex(b, int(f.index))
			continue
		}
		k := f.key
		if key != nil && i == len(s.stack)-1 {
			k = *key
		}
		b = appendToken(b, spanText(s.src, k))
	}
	return string(b)
}
