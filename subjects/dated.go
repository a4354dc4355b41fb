package subjects

import (
	"encoding/binary"
	"encoding/hex"
	"time"
)

// MadeAt returns the moment at which a run id says that it was made: that of a UUID of version 7 (RFC 9562, section
// 5.7), written in its 36 characters and in lower case, to the millisecond. ok is false for every other id.
func MadeAt(id string) (at time.Time, ok bool) {
	if len(id) != 36 || id[8] != '-' || id[13] != '-' || id[14] != '7' || id[18] != '-' || id[23] != '-' {
		return time.Time{}, false
	}
	for i := range len(id) {
		if c := id[i]; c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return time.Time{}, false
		}
	}
	var ms [8]byte // the first 48 bits
	if _, err := hex.Decode(ms[2:6], []byte(id[:8])); err != nil {
		return time.Time{}, false
	}
	if _, err := hex.Decode(ms[6:8], []byte(id[9:13])); err != nil {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(ms[:]))), true
}
