package parts

import (
	"container/list"
	"context"
	"sync"
)

// DefaultKept is how many bytes of parts a worker keeps: 256 MiB.
const DefaultKept = 256 << 20

// Keeper keeps parts by their digests, those that were used last, up to a number of bytes. It is safe for concurrent
// use.
type Keeper struct {
	most  int
	mu    sync.Mutex
	size  int
	known map[string]*list.Element // by digest
	used  *list.List               // of *kept; the front was used last
}

type kept struct {
	digest string
	part   *Part
	bytes  int
}

// NewKeeper returns a keeper of at most so many bytes.
func NewKeeper(most int) *Keeper {
	return &Keeper{most: most, known: map[string]*list.Element{}, used: list.New()}
}

// part returns the part that a link names, from what is kept or by fetch.
func (k *Keeper) part(ctx context.Context, l Link, fetch Fetch) (*Part, error) {
	if p := k.lookup(l); p != nil {
		return p, nil
	}
	if fetch == nil {
		return nil, unknown(l.Name)
	}
	raw, err := fetch(ctx, l.Name)
	if err != nil {
		return nil, err
	}
	p, err := Read(raw, l)
	if err != nil {
		return nil, err
	}
	k.keep(l.SHA256, p, len(raw))
	return p, nil
}

func unknown(name string) error {
	return wrong("the part %q is not known here", name).WithHint("parts are read by workers of planners")
}

// Keep keeps a part that was just made, or read elsewhere. Bytes that are not what the link says are not kept.
func (k *Keeper) Keep(l Link, raw []byte) error {
	p, err := Read(raw, l)
	if err == nil {
		k.keep(l.SHA256, p, len(raw))
	}
	return err
}

// lookup returns what is kept; nil for what is not, and for a part whose round is another than its link's name says:
// its bytes are right, but a request that calls it so is not.
func (k *Keeper) lookup(l Link) *Part {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, ok := k.known[l.SHA256]
	if !ok {
		return nil
	}
	p := e.Value.(*kept).part
	if n, ok := roundOf(l.Name); !ok || n != p.Round || p.Before != nil && !sameAgent(p.Before.Name, l.Name) {
		return nil
	}
	k.used.MoveToFront(e)
	return p
}

func (k *Keeper) keep(digest string, p *Part, bytes int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known[digest] != nil || bytes > k.most {
		return
	}
	k.known[digest] = k.used.PushFront(&kept{digest, p, bytes})
	for k.size += bytes; k.size > k.most; {
		oldest := k.used.Back()
		k.used.Remove(oldest)
		gone := oldest.Value.(*kept)
		delete(k.known, gone.digest)
		k.size -= gone.bytes
	}
}

// Size is how many bytes of parts are kept.
func (k *Keeper) Size() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.size
}
