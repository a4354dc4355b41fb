package jsontape

// Kind is the kind of a JSON value.
type Kind uint8

// The kinds.
const (
	Object Kind = iota + 1
	Array
	String
	Number
	True
	False
	Null
)

// String names a kind as messages do: "an object".
func (k Kind) String() string {
	return [...]string{"nothing", "an object", "an array", "a string", "a number", "true", "false", "null"}[k]
}

// Flags are what was noticed about a value while it was read, so that later passes can skip most of them.
type Flags uint8

// The flags.
const (
	Escaped  Flags = 1 << iota // a string with a backslash
	Dollar                     // a string with a "$", written so or as \u0024; an object with such a key
	BadText                    // a string with invalid UTF-8 or a lone surrogate
	Fraction                   // a number with a "."
	Exponent                   // a number with an "e"
)

// Node is one value of a scanned document, or one key. They lie in the order of the text, so that the children of node
// i are i+1 up to Next; in an object each key is followed by its value.
type Node struct {
	Start, End int32 // bytes, quotes included
	Next       int32 // index of the first node behind this one and all within it
	Kind       Kind
	Flags      Flags
}

// Inside returns what stands between the quotes of a string's node.
func (n *Node) Inside() Span { return Span{n.Start + 1, n.End - 1, n.Flags} }

// Span is a string in the source, without its quotes.
type Span struct {
	Start, End int32
	Flags      Flags
}

// Text returns the text that a string stands for.
func (s Span) Text(src []byte) string {
	raw := src[s.Start:s.End]
	if s.Flags&Escaped != 0 {
		return string(AppendUnescaped(nil, raw))
	}
	return string(raw)
}
