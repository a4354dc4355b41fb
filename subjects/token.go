package subjects

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Limits of names, in bytes.
const (
	MaxStepID   = 64
	MaxToolName = 128
	MaxRunID    = 128
	MaxTenant   = 64
	maxClient   = 64
	maxDurable  = 200 // the server's own limit is 255
)

// DefaultTenant is the tenant of those who name none.
const DefaultTenant = "default"

// ValidTenant reports whether s is a tenant: [A-Za-z0-9_-]{1,64}.
func ValidTenant(s string) bool { return word(s, MaxTenant) }

// ValidStepID reports whether s is a step id: [A-Za-z0-9_-]{1,64}.
func ValidStepID(s string) bool { return word(s, MaxStepID) }

// ValidTool reports whether s is a tool name: 1 to 128 of [A-Za-z0-9_.:/-].
func ValidTool(s string) bool {
	for i := range len(s) {
		if c := s[i]; !IsPlain(c) && c != '.' && c != ':' && c != '/' {
			return false
		}
	}
	return s != "" && len(s) <= MaxToolName
}

// ValidRun reports whether s is a run id: 1 to 128 bytes of any kind.
func ValidRun(s string) bool { return len(s) >= 1 && len(s) <= MaxRunID }

// ValidClient reports whether s is a client's token: [A-Za-z0-9_-]{1,64}.
func ValidClient(s string) bool { return word(s, maxClient) }

// word reports whether s is 1 to most of the bytes that stand for themselves.
func word(s string, most int) bool { //nolint:unparam // each kind of name has a limit of its own, though they are equal
	for i := range len(s) {
		if !IsPlain(s[i]) {
			return false
		}
	}
	return s != "" && len(s) <= most
}

const upperHex = "0123456789ABCDEF"

// IsPlain reports whether c stands for itself wherever it is written: [A-Za-z0-9_-]. Step ids are made of nothing else.
func IsPlain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// Encode makes one safe subject token of any string: [A-Za-z0-9_-] as is, every other byte as =XX.
func Encode(s string) string {
	n := 0
	for i := 0; i < len(s); i++ {
		if !IsPlain(s[i]) {
			n++
		}
	}
	if n == 0 {
		return s
	}
	b := make([]byte, 0, len(s)+2*n)
	for i := 0; i < len(s); i++ {
		if c := s[i]; IsPlain(c) {
			b = append(b, c)
		} else {
			b = append(b, '=', upperHex[c>>4], upperHex[c&15])
		}
	}
	return string(b)
}

// Decode is the inverse of Encode. Only the canonical encoding is valid: upper-case hex, and no byte encoded that can
// stand for itself.
func Decode(token string) (string, bool) {
	if token == "" {
		return "", false
	}
	if strings.IndexByte(token, '=') < 0 {
		for i := 0; i < len(token); i++ {
			if !IsPlain(token[i]) {
				return "", false
			}
		}
		return token, true
	}
	b := make([]byte, 0, len(token))
	for i := 0; i < len(token); i++ {
		c := token[i]
		if IsPlain(c) {
			b = append(b, c)
			continue
		}
		if c != '=' || i+2 >= len(token) {
			return "", false
		}
		hi, lo := strings.IndexByte(upperHex, token[i+1]), strings.IndexByte(upperHex, token[i+2])
		if hi < 0 || lo < 0 {
			return "", false
		}
		d := byte(hi<<4 | lo)
		if IsPlain(d) {
			return "", false
		}
		b = append(b, d)
		i += 2
	}
	return string(b), true
}

// Partitions is the number of partitions that runs are spread over. It never changes.
const Partitions = 64

// Partition returns the partition of an encoded run id: what the server's {{partition(64,n)}} computes of that token.
func Partition(run string) int {
	h := uint32(2166136261) // FNV-1a; hash/fnv would allocate
	for i := range len(run) {
		h = (h ^ uint32(run[i])) * 16777619
	}
	return int(h % Partitions)
}

// ToolPartition returns the partition whose owner looks after a tool: one of all orchestrators does.
func ToolPartition(tool string) int { return Partition(Encode(tool)) }

// Durable returns the name of a tool's durable consumer: the encoded tool name, or a hash where that is too long.
func Durable(tool string) string {
	if t := Encode(tool); len(t) <= maxDurable {
		return t
	}
	sum := sha256.Sum256([]byte(tool))
	return "h=" + hex.EncodeToString(sum[:])
}
