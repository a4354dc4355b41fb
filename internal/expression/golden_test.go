package expression

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write the answers of testdata/expressions.txt anew; then look at the diff")

const (
	goldenFile = "testdata/expressions.txt"
	goldenRows = 1000
	// generated begins the rows that -rewrite makes itself; those before it are chosen by hand.
	generated = "# generated"
)

// TestGolden holds every row's answer against what the expression comes to now: what a plan of yesterday meant it means
// tomorrow, whatever becomes of the parser below. A row is the text, the values of its references, and the answers as a
// value and as a condition; columns are parted by tabs, and a text with control characters is written as JSON. New rows
// go before the generated ones, without answers.
func TestGolden(t *testing.T) {
	file, err := os.ReadFile(goldenFile)
	require.NoError(t, err)
	var want bytes.Buffer
	n := 0
	row := func(text, given string) {
		n++
		want.WriteString(answer(t, text, given) + "\n")
	}
	for line := range strings.Lines(string(file)) {
		line = strings.TrimSuffix(line, "\n")
		if *rewrite && line == generated {
			break
		}
		if strings.HasPrefix(line, "#") || line == "" {
			want.WriteString(line + "\n")
			continue
		}
		column := strings.Split(line, "\t")
		require.GreaterOrEqual(t, len(column), 2, "%s", line)
		row(column[0], column[1])
	}
	if *rewrite {
		want.WriteString(generated + "\n")
		for g := newGenerator(rand.New(rand.NewSource(1))); n < goldenRows; {
			x, _ := g.expression()
			given, err := json.Marshal(g.given())
			require.NoError(t, err)
			row(x.String(), string(given))
		}
		require.NoError(t, os.WriteFile(goldenFile, want.Bytes(), 0o644))
		return
	}
	require.GreaterOrEqual(t, n, goldenRows)
	got, now := strings.Split(string(file), "\n"), strings.Split(want.String(), "\n")
	require.Len(t, now, len(got))
	for i := range got {
		require.Equal(t, got[i], now[i], "row %d", i+1)
	}
}

// answer returns a row with its answers.
func answer(t *testing.T, text, given string) string {
	t.Helper()
	row := text + "\t" + given
	var v map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(given), &v), "%s", row)
	if quoted, ok := strings.CutPrefix(text, "json:"); ok {
		require.NoError(t, json.Unmarshal([]byte(quoted), &text))
	}
	x, err := Compile(text, plain)
	if err != nil {
		return row + "\t" + err.Error()
	}
	refs := x.References()
	get := func(i int) ([]byte, bool) { raw, ok := v[refs[i]]; return raw, ok }
	value, condition := "", ""
	if b, err := x.Value(get, ValueLimits); err != nil {
		value = err.Error()
	} else {
		value = string(b)
	}
	if b, err := x.True(get, ConditionLimits); err != nil {
		condition = err.Error()
	} else {
		condition = fmt.Sprint(b)
	}
	switch {
	case condition == value:
		condition = "the same"
	case strings.HasPrefix(condition, "condition_failed: the condition came to "):
		condition = "no boolean"
	}
	return row + "\t" + value + "\t" + condition
}

// lower, upper, trim and patterns follow Go's tables of Unicode. Another version of them may be another language.
func TestUnicodeIsThatOfTheGoldenFile(t *testing.T) {
	require.Equal(t, "15.0.0", unicode.Version)
}
