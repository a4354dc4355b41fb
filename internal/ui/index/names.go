package index

import (
	"encoding/binary"
	"strings"
)

// names numbers the names of tools. A line's tools are packed as their numbers, one varint each: so they take two bytes where
// each of a hundred thousand runs calls others of a thousand, and not the half of what the page may have.
type names struct {
	numbers map[string]uint64
	all     []string
}

// number returns that of a tool that some line has.
func (n *names) number(tool string) (uint64, bool) {
	number, ok := n.numbers[tool]
	return number, ok
}

func (n *names) pack(tools []string) string {
	var packed []byte
	for _, tool := range tools {
		number, ok := n.number(tool)
		if !ok {
			if n.numbers == nil {
				n.numbers = map[string]uint64{}
			}
			tool = strings.Clone(tool) // not a part of a larger text
			number = uint64(len(n.all))
			n.numbers[tool], n.all = number, append(n.all, tool)
		}
		packed = binary.AppendUvarint(packed, number)
	}
	return string(packed)
}

func (n *names) unpack(packed string) (tools []string) {
	for number := range numbers(packed) {
		tools = append(tools, n.all[number])
	}
	return tools
}

// holds reports whether a number is among those that are packed.
func holds(packed string, wanted uint64) bool {
	for number := range numbers(packed) {
		if number == wanted {
			return true
		}
	}
	return false
}

// numbers returns those that are packed.
func numbers(packed string) func(yield func(uint64) bool) {
	return func(yield func(uint64) bool) {
		for len(packed) > 0 {
			number, shift := uint64(0), 0
			for packed[0] >= 0x80 {
				number |= uint64(packed[0]&0x7f) << shift
				packed, shift = packed[1:], shift+7
			}
			number |= uint64(packed[0]) << shift
			packed = packed[1:]
			if !yield(number) {
				return
			}
		}
	}
}
