package parts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const agentName = "acme/run-1/77/=part.research."

// chain makes parts of n rounds; each entry has some bytes.
func chain(n, size int) (links []Link, kept map[string][]byte) {
	kept = map[string][]byte{}
	var before *Link
	for i := range n {
		p := Part{Before: before, Round: i, Entry: fmt.Appendf(nil, `{"round":%d,"text":"%s"}`, i, strings.Repeat("x", size))}
		if i == 0 {
			p.Head = json.RawMessage(`{"instructions":"Do.","tools":[]}`)
		}
		raw := p.Encode()
		l := Link{Name: agentName + fmt.Sprint(i), SHA256: Digest(raw)}
		kept[l.Name] = raw
		links, before = append(links, l), &l
	}
	return links, kept
}

func from(kept map[string][]byte, reads *int) Fetch {
	return func(_ context.Context, name string) ([]byte, error) {
		*reads++
		if raw, ok := kept[name]; ok {
			return raw, nil
		}
		return nil, errors.New("gone")
	}
}

func request(l Link) []byte {
	return []byte(`{"part":` + string(l.json()) + `,"messages":[],"round":9}`)
}

func TestPartsArePutTogether(t *testing.T) {
	t.Parallel()
	links, kept := chain(3, 1)
	reads := 0
	k := NewKeeper(DefaultKept)
	raw, err := k.Whole(context.Background(), request(links[2]), from(kept, &reads))
	require.NoError(t, err)
	require.Equal(t, `{"instructions":"Do.","tools":[],"rounds":[{"round":0,"text":"x"},{"round":1,"text":"x"},{"round":2,"text":"x"}],"messages":[],"round":9}`, string(raw))
	require.Equal(t, 3, reads)
	_, err = k.Whole(context.Background(), request(links[2]), nil)
	require.NoError(t, err, "they are known now")
	same, err := k.Whole(context.Background(), []byte(`{ "input" : 1e40 }`), nil)
	require.NoError(t, err)
	require.Equal(t, `{ "input" : 1e40 }`, string(same), "one that names no part is whole")
	_, err = NewKeeper(1).Whole(context.Background(), request(links[2]), nil)
	require.ErrorContains(t, err, "is not known here")
}

// A part of which one byte is another is none, wherever in the chain it stands; and so is one of another agent, run or
// tenant.
func TestForeignPartsAreRefused(t *testing.T) {
	t.Parallel()
	whole := func(l Link, kept map[string][]byte) error {
		reads := 0
		_, err := NewKeeper(DefaultKept).Whole(context.Background(), request(l), from(kept, &reads))
		return err
	}
	for at := range 3 {
		links, kept := chain(3, 1)
		kept[links[at].Name] = append([]byte(nil), kept[links[at].Name]...)
		kept[links[at].Name][len(kept[links[at].Name])-4] ^= 1
		require.ErrorContains(t, whole(links[2], kept), "another SHA-256 than its link")
	}
	links, kept := chain(3, 1)
	delete(kept, links[1].Name)
	require.ErrorContains(t, whole(links[2], kept), "gone")

	links, kept = chain(2, 1)
	forged := func(change func(p *Part), called string) error {
		p := Part{Before: &links[1], Round: 2, Entry: json.RawMessage(`{"round":2}`)}
		change(&p)
		raw := p.Encode()
		kept[called] = raw
		return whole(Link{called, Digest(raw)}, kept)
	}
	own := agentName + "2"
	require.NoError(t, forged(func(*Part) {}, own))
	for says, change := range map[string]func(*Part){
		"none of the same agent": func(p *Part) { p.Before = &Link{"evil/run-1/77/=part.research.1", links[1].SHA256} },
		"as the one before":      func(p *Part) { p.Before = &links[0] },
		"rounds that can't be":   func(p *Part) { p.From = 3 },
		"is that of round 3":     func(p *Part) { p.Round = 3 },
		"has no head":            func(p *Part) { p.HeadIn = &links[1] },
		"lacks its head":         func(p *Part) { p.Entry = json.RawMessage(`[]`) },
	} {
		require.ErrorContains(t, forged(change, own), says)
	}
	require.ErrorContains(t, forged(func(p *Part) { p.HeadIn = &Link{"acme/run-2/77/=part.research.0", links[0].SHA256} }, own), "none of the same agent")
	for _, name := range []string{"", "2", "acme/run-1/77/secret.2", agentName + "02", agentName + "-1", agentName + "x"} {
		require.Error(t, forged(func(*Part) {}, name), name)
	}
	// what is known under one name is not taken under another
	k := NewKeeper(DefaultKept)
	require.NoError(t, k.Keep(links[1], kept[links[1].Name]))
	_, err := k.Whole(context.Background(), request(Link{"evil/run-1/77/=part.research.1", links[1].SHA256}), nil)
	require.Error(t, err)
	require.Error(t, k.Keep(Link{links[1].Name, links[0].SHA256}, kept[links[1].Name]))
}

// A worker that has forgotten parts reads them again, and never keeps more than it may.
func TestAKeeperIsBounded(t *testing.T) {
	t.Parallel()
	links, kept := chain(40, 1000)
	k := NewKeeper(10_000)
	reads := 0
	for range 3 {
		_, err := k.Whole(context.Background(), request(links[39]), from(kept, &reads))
		require.NoError(t, err)
		require.LessOrEqual(t, k.Size(), 10_000)
	}
	require.Equal(t, 120, reads, "what is used last from the end on has been forgotten")
	require.Positive(t, k.Size())
	_, err := NewKeeper(10).Whole(context.Background(), request(links[1]), from(kept, &reads))
	require.NoError(t, err, "also where none can be kept")
}

func TestWhatIsNoRequest(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`["part"]`, `{"part":7}`, `{"part":{"name":"x"}}`, `{"part":{"name":"a/=part.b.1","sha256":""}}`} {
		_, err := NewKeeper(1).Whole(context.Background(), []byte(text), func(context.Context, string) ([]byte, error) { return []byte(`{}`), nil })
		require.ErrorContains(t, err, "invalid_arguments", text)
	}
}
