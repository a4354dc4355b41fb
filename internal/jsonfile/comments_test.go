package jsonfile

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommentsAndLastCommasAreBlanks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{\"a\": 1, // é, }\n}":              "{\"a\": 1  " + strings.Repeat(" ", 7) + "\n}",
		`[1,/* ] */]`:                        `[1` + strings.Repeat(" ", 8) + `]`,
		"/* a\r\nb */{}":                     "    \r\n    {}",
		`{"a":[1,2,],}`:                      `{"a":[1,2 ] }`,
		`["x",/**/]// the end`:               `["x"     ]` + strings.Repeat(" ", 10),
		`{"a": "// no, ]", "b": "/* \" */"}`: `{"a": "// no, ]", "b": "/* \" */"}`,
		`["a\\",]`:                           `["a\\" ]`,
		// What is left is no JSON, and said to be none.
		`{,}`: `{,}`, `[,]`: `[,]`, `[1,,]`: `[1,,]`, `,`: `,`, `[1] ,`: `[1] ,`, `{"a":1 /* }`: `{"a":1 /* }`, `/*/`: `/*/`, `[1 / 2]`: `[1 / 2]`,
		"[\"a,]": "[\"a,]", `"a\`: `"a\`, "": "", "\xff//": "\xff//", `[1 # 2` + "\n]": `[1 # 2` + "\n]", `[/**/,/**/]`: `[    ,    ]`,
	} {
		require.Equal(t, want, string(Uncommented([]byte(text))), text)
	}
	var p Problems
	require.False(t, p.WellFormed(Uncommented([]byte("{ // ä\n/* ééé */ \"a\": 1, /* ß */ oops }"))))
	require.Contains(t, p.Error(), "line 2, column 27", "places are those of the file")
}

// Comments between any tokens, and commas before any end, change no value; without, nothing is changed.
func TestUncommentedIsTheSameValue(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	gaps := []string{"", " ", "\n", "/**/", "/* , ] } \" */", "// é \" ,]}\n", "/*/ * **/\t"}
	var value func(b, with *strings.Builder, depth int)
	token := func(b, with *strings.Builder, text string) {
		b.WriteString(text)
		with.WriteString(gaps[rnd.IntN(len(gaps))] + text + gaps[rnd.IntN(len(gaps))])
	}
	value = func(b, with *strings.Builder, depth int) {
		kind := rnd.IntN(6)
		if depth == 0 {
			kind = rnd.IntN(4)
		}
		if kind < 4 {
			token(b, with, []string{"-1.5e3", `"// , ] \" \\"`, "null", `"/* é"`}[kind])
			return
		}
		n := rnd.IntN(4)
		token(b, with, string("[{"[kind-4]))
		for i := range n {
			if i > 0 {
				token(b, with, ",")
			}
			if kind == 5 {
				token(b, with, `"k`+string(rune('a'+i))+`"`)
				token(b, with, ":")
			}
			value(b, with, depth-1)
		}
		if n > 0 && rnd.IntN(2) == 0 {
			with.WriteString("," + gaps[rnd.IntN(len(gaps))])
		}
		token(b, with, string("]}"[kind-4]))
	}
	for range 2000 {
		var b, with strings.Builder
		value(&b, &with, 4)
		require.True(t, json.Valid([]byte(b.String())), b.String())
		require.Equal(t, b.String(), string(Uncommented([]byte(b.String()))))
		require.JSONEq(t, b.String(), string(Uncommented([]byte(with.String()))), with.String())
	}
}

func FuzzUncommented(f *testing.F) {
	f.Add([]byte(`{"a": [1, /* x */ ], // y` + "\n}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		out := Uncommented(raw)
		if json.Valid(raw) {
			require.Equal(t, raw, out, "JSON stays as it is")
		}
		require.Equal(t, len([]rune(string(raw))), len([]rune(string(out))), "every character keeps its place")
	})
}
