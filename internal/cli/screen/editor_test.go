package screen

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsTyped(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{
		"Ada\n":                               "Ada",
		"Ada\r":                               "Ada",
		"Evf\x7fe\n":                          "Eve",
		"\x7f\x08a\n":                         "a",
		"one two \x17three\n":                 "one three",
		"one\x15two\n":                        "two",
		"a\x1b[A\x1b[1;5Cb\x1bOPc\x1bxd\n":    "abcd",
		"a\tb\x00\x01\x07\n":                  "a b",
		"東京\x7f都\n":                           "東都",
		"a\u009b31m\u202e\n":                  "a31m",
		"\x04":                                "",
		"a\x04\n":                             "a",
		"y\nn\n":                              "y",
		"\xff\xfea\n":                         "a",
		"\x1b[200~pasted\x1b[201~\n not here": "pasted",
	} {
		var whole, single editor
		require.True(t, whole.take([]byte(keys)), "%q", keys)
		require.Equal(t, want, string(whole.text), "%q", keys)
		for i := range len(keys) { // a key at a time, characters in parts
			if single.take([]byte{keys[i]}) {
				break
			}
		}
		require.Equal(t, want, string(single.text), "%q", keys)
	}
	var e editor
	require.False(t, e.take([]byte("not over")))
}
