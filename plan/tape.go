package plan

// kind is the kind of a JSON value.
type kind uint8

const (
	kObject kind = iota + 1
	kArray
	kString
	kNumber
	kTrue
	kFalse
	kNull
)

func (k kind) String() string {
	return [...]string{"nothing", "an object", "an array", "a string", "a number", "true", "false", "null"}[k]
}

// flag is what the scanner noticed about a value, so that later passes can skip most of them.
type flag uint8

const (
	fEscaped flag = 1 << iota // a string with a backslash
	fDollar                   // a string with a "$", written so or as \u0024; an object with such a key
	fBadText                  // a string with invalid UTF-8 or a lone surrogate
)

// node is one value of a scanned document, or one key. They lie in the order of the text, so that the children of node i
// are i+1 up to next; in an object each key is followed by its value.
type node struct {
	start, end int32 // bytes, quotes included
	next       int32 // index of the first node behind this one and all within it
	kind       kind
	flags      flag
}
