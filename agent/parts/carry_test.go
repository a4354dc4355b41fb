package parts

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A part that a request has in it is read there, also by who keeps none, and all others as ever.
func TestARequestThatHasItsLastPart(t *testing.T) {
	t.Parallel()
	links, kept := chain(3, 5)
	name := links[2].Name
	carrying := Carry(request(links[2]), kept[name])
	require.Equal(t, `{"part":{"name":"`+name+`","sha256":"`+links[2].SHA256+`","content":`+string(kept[name])+`},"messages":[],"round":9}`, string(carrying))
	for _, most := range []int{DefaultKept, 1} {
		reads := 0
		want, err := NewKeeper(most).Whole(context.Background(), request(links[2]), from(kept, &reads))
		require.NoError(t, err)
		require.Equal(t, 3, reads)
		got, err := NewKeeper(most).Whole(context.Background(), carrying, func(_ context.Context, asked string) ([]byte, error) {
			require.NotEqual(t, name, asked)
			return kept[asked], nil
		})
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	}
	k := NewKeeper(DefaultKept)
	_, err := k.Whole(context.Background(), carrying, from(kept, new(int)))
	require.NoError(t, err)
	_, err = k.Whole(context.Background(), request(links[2]), nil)
	require.NoError(t, err, "it is kept for the requests to come")
	l, named, err := Named(carrying)
	require.NoError(t, err)
	require.True(t, named)
	require.Equal(t, links[2], l)
	require.Equal(t, `{"round":9}`, string(Carry([]byte(`{"round":9}`), kept[name])), "one that names none")
}

// What stands in a request for its last part counts for what its digest says, as what is read does.
func TestForeignContentIsRefused(t *testing.T) {
	t.Parallel()
	links, kept := chain(3, 5)
	last := kept[links[2].Name]
	flipped := bytes.Clone(last)
	flipped[len(flipped)-4] ^= 1
	spaced := bytes.Replace(last, []byte(":"), []byte(": "), 1)
	gone := func(context.Context, string) ([]byte, error) { return nil, errors.New("gone") }
	for what, content := range map[string][]byte{"one byte": flipped, "written anew": spaced, "of another round": kept[links[1].Name], "empty": []byte("{}")} {
		_, err := NewKeeper(DefaultKept).Whole(context.Background(), Carry(request(links[2]), content), from(kept, new(int)))
		require.ErrorContains(t, err, "another SHA-256 than its link", what)
	}
	other := Link{Name: "acme/run-2/77/=part.research.2", SHA256: links[2].SHA256}
	_, err := NewKeeper(DefaultKept).Whole(context.Background(), Carry(request(other), last), gone)
	require.ErrorContains(t, err, "is none of the same agent", "it names parts of another run")
	_, err = NewKeeper(DefaultKept).Whole(context.Background(), Carry(request(Link{Name: links[1].Name, SHA256: links[2].SHA256}), last), gone)
	require.ErrorContains(t, err, "is that of round 2")
	_, err = NewKeeper(DefaultKept).Whole(context.Background(), Carry(request(links[2]), last), nil)
	require.ErrorContains(t, err, "is not known here", "those before it have to be read")
	_, err = NewKeeper(DefaultKept).Whole(context.Background(), Carry(request(links[2]), last), gone)
	require.ErrorContains(t, err, "gone")
	for _, none := range []string{"null", `"text"`, "7", "[]"} { // it is read, as where nothing stands
		whole, err := NewKeeper(DefaultKept).Whole(context.Background(), Carry(request(links[2]), []byte(none)), from(kept, new(int)))
		require.NoError(t, err)
		require.Equal(t, 3, strings.Count(string(whole), `"text"`))
	}
}
