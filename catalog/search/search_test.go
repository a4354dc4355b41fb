package search_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/catalog/search"
	"github.com/stepjet/stepjet/tool"
)

// rows reads a file of two columns.
func rows(t testing.TB, name string) (all [][2]string) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	for line := range strings.Lines(string(b)) {
		left, right, ok := strings.Cut(strings.TrimSpace(line), "\t")
		require.True(t, ok, line)
		all = append(all, [2]string{left, right})
	}
	return all
}

func tools(t testing.TB) (all []*tool.Definition) {
	t.Helper()
	for _, r := range rows(t, "tools.tsv") {
		all = append(all, &tool.Definition{Name: r[0], Description: r[1]})
	}
	return all
}

func names(found []*tool.Definition) (all []string) {
	for _, d := range found {
		all = append(all, d.Name)
	}
	return all
}

func TestWhatIsMeantIsAmongTheFirstFive(t *testing.T) {
	t.Parallel()
	all := tools(t)
	require.Len(t, all, 300)
	queries := rows(t, "queries.tsv")
	require.Len(t, queries, 100)
	x, met, first := search.New(all), 0, 0
	var missed []string
	for _, q := range queries {
		require.True(t, slices.ContainsFunc(all, func(d *tool.Definition) bool { return d.Name == q[1] }), q[1])
		found := names(x.Search(q[0], 5))
		if slices.Contains(found, q[1]) {
			met++
		} else {
			missed = append(missed, fmt.Sprintf("%s: wanted %s, found %v", q[0], q[1], found))
		}
		if len(found) > 0 && found[0] == q[1] {
			first++
		}
	}
	t.Logf("recall at 5: %d of 100, first: %d; missed:\n%s", met, first, strings.Join(missed, "\n"))
	assert.GreaterOrEqual(t, met, 90)
}

func TestWordsAreFoundInAnySpelling(t *testing.T) {
	t.Parallel()
	x := search.New([]*tool.Definition{
		{Name: "getHTTPStatus"}, {Name: "list-repositories"}, {Name: "send_mail", Title: "E-Mail"},
		{Name: "x", InputSchema: []byte(`{"properties": {"latitude": {"description": "Degrees north."}}}`)},
		{Name: "broken", InputSchema: []byte(`[`)},
	})
	for query, want := range map[string][]string{
		"http":                {"getHTTPStatus"},
		"STATUS":              {"getHTTPStatus"},
		"repository":          {"list-repositories"},
		"listing":             {"list-repositories"},
		"sends mails":         {"send_mail"},
		"latitudes":           {"x"},
		"degree":              {"x"},
		"the of and":          nil,
		"":                    nil,
		"nothing of the kind": nil,
	} {
		assert.Equal(t, want, names(x.Search(query, 10)), query)
	}
	assert.Empty(t, search.New(nil).Search("http", 5))
}

func TestTheSameWordsComeInTheSameOrder(t *testing.T) {
	t.Parallel()
	x := search.New([]*tool.Definition{{Name: "b_read"}, {Name: "a_read"}, {Name: "c_read"}, {Name: "read_read"}})
	assert.Equal(t, []string{"read_read", "a_read", "b_read"}, names(x.Search("read", 3)))
}

func BenchmarkSearch(b *testing.B) {
	x := search.New(tools(b))
	for b.Loop() {
		x.Search("create calendar event with attendees", 5)
	}
}
