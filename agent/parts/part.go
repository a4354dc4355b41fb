package parts

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// MaxPart is the most bytes of a part: a round has at most half of what a request may have, beside a head and a cut.
const MaxPart = 64 << 20

// maxRound is the highest number of a round.
const maxRound = 9_999

// Link names a part: where it lies, and the SHA-256, in hex, of its bytes.
type Link struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Part is a round that is over.
type Part struct {
	// Before is the part of the round before; nil for the first one.
	Before *Link `json:"before"`
	// Round is its number, from 0.
	Round int `json:"round"`
	// From is the first round that stands whole in a request that names this part.
	From int `json:"from"`
	// Head are the members that a request begins with, as an object. HeadIn names the part that has it. Both are absent
	// of a part that goes on as the one before.
	Head   json.RawMessage `json:"head"`
	HeadIn *Link           `json:"head_in"`
	// Cut stands in the place of the rounds before From.
	Cut []json.RawMessage `json:"cut"`
	// Entry is the round, as it stands among a request's rounds.
	Entry json.RawMessage `json:"entry"`
}

// Anew reports whether a request begins anew with the part.
func (p *Part) Anew() bool { return p.Head != nil || p.HeadIn != nil }

// Encode returns the bytes of a part. They begin with the part before.
func (p *Part) Encode() []byte {
	var o jsontape.ObjectWriter
	o.Add("before", p.Before.json())
	o.Int("round", int64(p.Round))
	o.Int("from", int64(p.From))
	if p.Head != nil {
		o.Add("head", p.Head)
	}
	if p.HeadIn != nil {
		o.Add("head_in", p.HeadIn.json())
	}
	if p.Cut != nil {
		o.Add("cut", jsontape.AppendArray(nil, p.Cut))
	}
	o.Add("entry", p.Entry)
	return o.JSON()
}

func (l *Link) json() []byte {
	if l == nil {
		return []byte("null")
	}
	var o jsontape.ObjectWriter
	o.Text("name", l.Name)
	o.Text("sha256", l.SHA256)
	return o.JSON()
}

// Digest returns the SHA-256 of a part's bytes, in hex.
func Digest(part []byte) string {
	sum := sha256.Sum256(part)
	return hex.EncodeToString(sum[:])
}

// Read reads a part that a link names: bytes of another digest are none.
func Read(raw []byte, l Link) (*Part, error) {
	if len(raw) > MaxPart {
		return nil, wrong("the part %q has %d bytes, at most %d are allowed", l.Name, len(raw), MaxPart)
	}
	if got := Digest(raw); got != l.SHA256 {
		return nil, wrong("the part %q has another SHA-256 than its link: %s", l.Name, got).
			WithHint("it was written by somebody else, read from another place, or written anew on the way; nothing of it is used")
	}
	var p Part
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, wrong("the part %q can't be read: %v", l.Name, err)
	}
	switch n, ok := roundOf(l.Name); {
	case !ok || n != p.Round:
		return nil, wrong("the part %q is that of round %d", l.Name, p.Round)
	case p.Round < 0 || p.Round > maxRound || p.From < 0 || p.From > p.Round || (p.Before == nil) != (p.Round == 0):
		return nil, wrong("the part %q has rounds that can't be", l.Name)
	case p.Round == 0 && !p.Anew() || p.Head != nil && !is(p.Head, '{') || !is(p.Entry, '{'):
		return nil, wrong("the part %q lacks its head or its entry", l.Name)
	}
	for _, other := range []*Link{p.Before, p.HeadIn} {
		if other != nil && !sameAgent(other.Name, l.Name) {
			return nil, wrong("the part %q names %q, which is none of the same agent", l.Name, other.Name)
		}
	}
	if n, _ := roundOf(l.Name); p.Before != nil {
		if before, _ := roundOf(p.Before.Name); before != n-1 {
			return nil, wrong("the part %q names %q as the one before", l.Name, p.Before.Name)
		}
	}
	return &p, nil
}

func wrong(format string, args ...any) *fault.Error {
	return fault.New(fault.InvalidArguments, format, args...)
}

func is(raw []byte, first byte) bool { return len(raw) > 0 && raw[0] == first }

// roundOf reads the number at the end of a part's name.
func roundOf(name string) (int, bool) {
	digits := name[strings.LastIndexByte(name, '.')+1:]
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == digits && len(digits) < len(name)
}

// sameAgent reports whether two parts are of the same agent of the same run: their names differ in the number alone.
func sameAgent(a, b string) bool {
	return a[:strings.LastIndexByte(a, '.')+1] == b[:strings.LastIndexByte(b, '.')+1] && strings.Contains(a, "/=part.")
}

// without returns an object without a member; the others stay as they are.
func without(object []byte, name string) json.RawMessage {
	var o jsontape.ObjectWriter
	jsontape.Members(object, func(key, value []byte) bool {
		if k := jsontape.Unquoted(key); k != name {
			o.Add(k, bytes.TrimSpace(value))
		}
		return true
	})
	return o.JSON()
}
