package parts

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// Carry returns a request that names a part with the bytes of that part in it, as "content" of "part": who is sent it reads
// them there, and not by the name. A request that names none stays as it is.
func Carry(request, part []byte) []byte {
	i := jsontape.Member(request, 0, "part")
	if i < 0 {
		return request
	}
	closing := jsontape.SkipValue(request, i) - 1
	return slices.Concat(request[:closing], []byte(`,"content":`), part, request[closing:])
}

// carried is how the parts of a request are read that has the bytes of the one it names. They count for what their digest
// says, as those do that are read elsewhere.
func carried(l Link, content []byte, others Fetch) Fetch {
	return func(ctx context.Context, name string) ([]byte, error) {
		switch {
		case name == l.Name:
			return content, nil
		case others == nil:
			return nil, unknown(name)
		}
		return others(ctx, name)
	}
}

// inRequest returns the part that a request names, and its bytes where the request has them.
func inRequest(request []byte) (l Link, content []byte, named bool, err error) {
	if !bytes.Contains(request, []byte(`"part"`)) {
		return l, nil, false, nil // most don't: they are not read twice
	}
	var r struct {
		Part *struct {
			Link
			Content json.RawMessage `json:"content"`
		} `json:"part"`
	}
	if err := json.Unmarshal(request, &r); err != nil {
		return l, nil, false, wrong("the request can't be read: %v", err)
	}
	if r.Part == nil {
		return l, nil, false, nil
	}
	if _, ok := roundOf(r.Part.Name); !ok || !sameAgent(r.Part.Name, r.Part.Name) {
		return l, nil, true, wrong("%q is no name of a part", r.Part.Name)
	}
	if is(r.Part.Content, '{') {
		content = r.Part.Content
	}
	return r.Part.Link, content, true, nil
}
