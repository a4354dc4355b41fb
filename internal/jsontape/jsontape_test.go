package jsontape_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

const usual = `{"text":"é \ud83d\ude00 \"x\"\n$ref:a","n":[-1.5e3,0,12.25],` +
	`"b":{"t":true,"f":false,"":null,"a/b~c":{}} , "e":[]}`

// mutate changes a text in a few places.
func mutate(rng *rand.Rand, text string) []byte {
	chars := "{}[]\":,\\nul0e-. \x01\xc3"
	b := []byte(text)
	for range rng.IntN(4) {
		i := rng.IntN(len(b))
		switch rng.IntN(3) {
		case 0:
			b[i] = chars[rng.IntN(len(chars))]
		case 1:
			b = append(b[:i], b[i+1:]...)
		case 2: // what stands there comes twice
			n := min(i+rng.IntN(30), len(b))
			b = append(b[:n:n], b[i:]...)
		}
	}
	return b
}

func TestScannerTakesWhatEncodingJSONTakes(t *testing.T) {
	t.Parallel()
	rng, valid := rand.New(rand.NewPCG(1, 2)), 0
	for range 50_000 {
		b := mutate(rng, usual)
		s := jsontape.New(b, 64)
		err := s.Scan()
		require.Equal(t, json.Valid(b), err == nil, "%q", b)
		if err == nil {
			valid++
		} else {
			require.LessOrEqual(t, err.At, len(b))
		}
		s.Release()
	}
	require.Greater(t, valid, 10_000)
}

// What a tape says is put together again, and is the same value.
func TestTapeHoldsTheValue(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		b := mutate(rng, usual)
		s := jsontape.New(b, 64)
		s.Record = true
		if s.Scan() == nil && s.First == "" {
			var want any
			require.NoError(t, json.Unmarshal(b, &want))
			require.Equal(t, want, built(t, b, s.Tape, 0), "%q", b)
			require.EqualValues(t, len(s.Tape), s.Tape[0].Next)
		}
		s.Release()
	}
}

func built(t *testing.T, src []byte, tape []jsontape.Node, i int32) any {
	n := &tape[i]
	switch n.Kind {
	case jsontape.Object:
		m := map[string]any{}
		for k := i + 1; k < n.Next; k = tape[k+1].Next {
			m[tape[k].Inside().Text(src)] = built(t, src, tape, k+1)
		}
		return m
	case jsontape.Array:
		a := []any{}
		for c := i + 1; c < n.Next; c = tape[c].Next {
			a = append(a, built(t, src, tape, c))
		}
		return a
	case jsontape.String:
		return n.Inside().Text(src)
	default: // a number, true, false or null
	}
	var v any
	require.NoError(t, json.Unmarshal(src[n.Start:n.End], &v))
	return v
}

func TestFlaws(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text  string
		code  fault.Code
		where string
	}{
		{`{"a":1,"b":2}`, "", ""},
		{`{"a":[{"x":1,"\u0078":2}]}`, fault.DuplicateKey, "/a/0/x"},
		{`{"a/b":["` + "\xff" + `"]}`, fault.InvalidUTF8, "/a~1b/0"},
		{`["\ud800"]`, fault.InvalidUTF8, "/0"},
		{`["\ud83d\ude00"]`, "", ""},
	} {
		s := jsontape.New([]byte(tt.text), 64)
		require.Nil(t, s.Scan(), tt.text)
		require.Equal(t, tt.code, s.First, tt.text)
		require.Equal(t, tt.where, s.Where, tt.text)
		s.Release()
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("[", 1<<20)
	s := jsontape.New([]byte(text), 64)
	defer s.Release()
	err := s.Scan()
	require.True(t, err.Deep)
	require.Equal(t, 64, err.At)
}

// Keys used twice in objects that the text broke off in are found by CloseAll.
func TestCloseAll(t *testing.T) {
	t.Parallel()
	s := jsontape.New([]byte(`{"a":1,"a":{"b":1,"b":`), 64)
	defer s.Release()
	var all []string
	s.Flaw = func(s *jsontape.Scanner, _ fault.Code, key *jsontape.Span) { all = append(all, s.Pointer("", key)) }
	require.NotNil(t, s.Scan())
	require.Empty(t, all)
	s.CloseAll()
	require.Equal(t, []string{"/a/b", "/a"}, all)
}

func TestQuotingIsThatOfEncodingJSON(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20_000 {
		text := string(mutate(rng, "a\u2028b\u2029<>&\x00\x1f\x7f\"\\\b\f\n\r\té\U0001F600\uFFFD"))
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		require.NoError(t, enc.Encode(text))
		require.Equal(t, strings.TrimSuffix(want.String(), "\n"), string(jsontape.AppendQuoted(nil, text)))

		raw := jsontape.AppendEscaped(nil, text)
		require.Len(t, raw, jsontape.EscapedSize(text))
		require.Equal(t, text, string(jsontape.AppendUnescaped(nil, raw)))
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()
	var got []string
	take := func(key, value []byte) bool {
		got = append(got, string(key)+"="+string(value))
		return len(got) < 3
	}
	require.True(t, jsontape.Members([]byte(` { "a" : [1, "}"] , "\"":{} } `), take))
	require.Equal(t, []string{`"a"=[1, "}"]`, `"\""={}`}, got)
	require.True(t, jsontape.Members([]byte(`{}`), take))
	require.False(t, jsontape.Members([]byte(`[]`), take))
	require.False(t, jsontape.Members([]byte(`{"c":1,"d":2}`), take), "it was told to stop")
}

// Ways through text that was not checked end, and lie within it.
func TestUncheckedTextIsNoDanger(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 8))
	for range 50_000 {
		b := mutate(rng, usual)
		b = b[:rng.IntN(len(b)+1)]
		jsontape.Members(b, func(key, _ []byte) bool { return len(jsontape.Unquoted(key)) <= len(b) })
		for _, i := range []int{jsontape.Member(b, 0, "e"), jsontape.Item(b, 0, 2), jsontape.SkipValue(b, 0)} {
			require.LessOrEqual(t, i, len(b))
		}
	}
}

func TestPointers(t *testing.T) {
	t.Parallel()
	require.Equal(t, "/a~1b~0c/7", string(jsontape.AppendIndex(jsontape.AppendToken(nil, "a/b~c"), 7)))
	for _, key := range []string{"", "a", "a/b~c", "~1", "~01"} {
		require.Equal(t, "/"+jsontape.EscapeToken(key), string(jsontape.AppendToken(nil, key)))
		require.Equal(t, key, jsontape.UnescapeToken(jsontape.EscapeToken(key)))
	}
}
