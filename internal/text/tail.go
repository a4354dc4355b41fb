package text

import (
	"strings"
	"sync"
)

// tailSize is how much a Tail keeps, in bytes.
const tailSize = 2 << 10

// Tail keeps the last 2 KiB of what is written to it, which tell best why a program ended. It may be written to and read
// at the same time.
type Tail struct {
	mu   sync.Mutex
	kept []byte
}

// Write keeps the last bytes. It never fails.
func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	if over := len(t.kept) - tailSize; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(b), nil
}

// String returns what is kept, as valid text without white space around it.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(strings.TrimSpace(string(t.kept)), "\uFFFD")
}
