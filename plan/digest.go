package plan

import (
	"crypto/sha256"
	"encoding/hex"
)

// Digest returns the SHA-256 of a plan's bytes, in hex. Two plans are the same if and only if their bytes are (plan
// language, "conflict"): white space and the order of keys count.
func Digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
