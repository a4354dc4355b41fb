package jsontape

import (
	"strconv"
	"strings"
)

// AppendToken appends one reference token of a JSON pointer (RFC 6901).
func AppendToken(b []byte, token string) []byte {
	token = strings.ToValidUTF8(token, "\uFFFD")
	b = append(b, '/')
	for i := 0; i < len(token); i++ {
		switch c := token[i]; c {
		case '~':
			b = append(b, '~', '0')
		case '/':
			b = append(b, '~', '1')
		default:
			b = append(b, c)
		}
	}
	return b
}

// AppendIndex appends the reference token of an array's item.
func AppendIndex(b []byte, i int) []byte { return strconv.AppendInt(append(b, '/'), int64(i), 10) }

var escapeToken, unescapeToken = strings.NewReplacer("~", "~0", "/", "~1"), strings.NewReplacer("~1", "/", "~0", "~")

// EscapeToken returns the reference token of a key, without the slash before it.
func EscapeToken(key string) string { return escapeToken.Replace(key) }

// UnescapeToken returns the key that a reference token stands for.
func UnescapeToken(token string) string { return unescapeToken.Replace(token) }
