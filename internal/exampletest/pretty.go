package exampletest

import (
	"bytes"
	"encoding/json"
)

// width is the longest line that an object or an array is written into.
const width = 120

// Pretty writes JSON for people: what fits into a line stays in one, the rest is broken up. Numbers, strings and the
// order of keys stay as they are; what is no JSON is returned unchanged.
func Pretty(raw []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return append(pretty(nil, b.Bytes(), 0, 0), '\n')
}

// pretty appends compact JSON; used is how much of the line is taken already.
func pretty(out, raw []byte, indent, used int) []byte {
	if line := inline(raw); used+len(line) <= width || len(raw) <= 2 || raw[0] != '{' && raw[0] != '[' {
		return append(out, line...)
	}
	out = append(out, raw[0])
	for i, member := range members(raw) {
		if i > 0 {
			out = append(out, ',')
		}
		out = newline(out, indent+2)
		key := keyLength(member)
		if key > 0 {
			out = append(append(out, member[:key]...), ' ')
		}
		out = pretty(out, member[key:], indent+2, indent+2+key+len(" ,"))
	}
	return append(newline(out, indent), raw[len(raw)-1])
}

func newline(out []byte, indent int) []byte {
	return append(append(out, '\n'), bytes.Repeat([]byte{' '}, indent)...)
}

// inline sets spaces after colons and commas.
func inline(raw []byte) []byte {
	out := make([]byte, 0, len(raw)+16)
	scan(raw, func(i, _ int) {
		out = append(out, raw[i])
		if raw[i] == ',' || raw[i] == ':' {
			out = append(out, ' ')
		}
	}, func(from, to int) { out = append(out, raw[from:to]...) })
	return out
}

// members returns what stands between the commas of an object or an array.
func members(raw []byte) (all [][]byte) {
	from := 1
	scan(raw, func(i, depth int) {
		if raw[i] == ',' && depth == 1 || i == len(raw)-1 {
			all = append(all, raw[from:i])
			from = i + 1
		}
	}, func(int, int) {})
	return all
}

// keyLength returns the length of a member's key with its colon; 0 for an element of an array.
func keyLength(member []byte) (n int) {
	scan(member, func(i, depth int) {
		if member[i] == ':' && depth == 0 && n == 0 {
			n = i + 1
		}
	}, func(int, int) {})
	return n
}

// scan goes through compact JSON: byte by byte, with the depth there, and over strings as a whole.
func scan(raw []byte, each func(i, depth int), str func(from, to int)) {
	depth := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			from := i
			for i++; raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
			str(from, i+1)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		each(i, depth)
	}
}
