package machine

import (
	"encoding/binary"
	"hash"
)

// digestText adds a text, with its length, so that no two lists of texts are one.
func digestText(h hash.Hash, text string) {
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text))))
	h.Write([]byte(text))
}
