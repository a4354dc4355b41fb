package hosted

import (
	"bytes"
	"errors"
	"strings"

	"github.com/stepjet/stepjet/wire"
)

// tailLimit is how much of standard error, or of a response that reports an error, goes into a message, in bytes.
const tailLimit = 2 << 10

var errFull = errors.New("the output limit is reached")

// capture keeps what is written up to a limit. What goes beyond is refused, and full called once.
type capture struct {
	data  bytes.Buffer
	limit int64
	over  bool
	full  func()
}

// Write keeps b, or refuses it.
func (c *capture) Write(b []byte) (int, error) {
	if c.over {
		return 0, errFull
	}
	if int64(c.data.Len())+int64(len(b)) > c.limit {
		c.over = true
		c.data = bytes.Buffer{}
		c.full()
		return 0, errFull
	}
	return c.data.Write(b)
}

// tail keeps the end of what is written.
type tail struct {
	data  []byte
	limit int
	cut   bool
	clean *wire.Redactor // of the step's secrets; one that is cut through is seen only here
}

// Write keeps the last bytes.
func (t *tail) Write(b []byte) (int, error) {
	n := len(b)
	if len(b) > t.limit {
		b, t.cut, t.data = b[len(b)-t.limit:], true, t.data[:0]
	}
	if over := len(t.data) + len(b) - t.limit; over > 0 {
		t.data, t.cut = append(t.data[:0], t.data[over:]...), true
	}
	t.data = append(t.data, b...)
	return n, nil
}

// String returns the tail as valid text; an ellipsis says that something came before it.
func (t *tail) String() string {
	s := printable(string(t.data))
	if t.cut {
		return "…" + t.clean.Excerpt(s)
	}
	return s
}

// printable makes text of any bytes: invalid UTF-8 and control characters other than line breaks and tabs are replaced.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(strings.ReplaceAll(s, "\r\n", "\n"), "\uFFFD"))
}
