package metrics_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheDashboardAsksForMetricsThatThereAre: a panel over a name or a label that nobody has is empty for ever, and nobody
// is told.
func TestTheDashboardAsksForMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	m := everything()
	labels := map[string][]string{} // of each series
	for _, line := range regexp.MustCompile(`(?m)^(stepjet_[a-z_]+)(?:\{(.*)\})? `).FindAllStringSubmatch(scrape(t, m, "text/plain"), -1) {
		own := []string{"instance"} // who scrapes adds it
		for _, l := range regexp.MustCompile(`([a-z_]+)="`).FindAllStringSubmatch(line[2], -1) {
			own = append(own, l[1])
		}
		labels[line[1]] = own
	}
	raw, err := os.ReadFile("../../../deploy/grafana/stepjet.json")
	require.NoError(t, err)
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			Type    string
			Grid    struct{ X, Y, W, H int } `json:"gridPos"`
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	require.NoError(t, json.Unmarshal(raw, &board))
	require.Greater(t, len(board.Panels), 15)
	asked := map[string]bool{}
	check := func(title, query string) {
		names := regexp.MustCompile(`stepjet_[a-z_]+`).FindAllString(query, -1)
		require.NotEmpty(t, names, title)
		grouped := regexp.MustCompile(`by \(([^)]*)\)`).FindStringSubmatch(query)
		matched := regexp.MustCompile(`[{,]([a-z_]+)=`).FindAllStringSubmatch(query, -1)
		for _, name := range names {
			asked[regexp.MustCompile(`_bucket$`).ReplaceAllString(name, "")] = true
			own, there := labels[name]
			require.True(t, there, "%s asks for %s", title, name)
			var wanted []string
			if grouped != nil {
				wanted = strings.Split(grouped[1], ", ")
			}
			for _, l := range matched {
				wanted = append(wanted, l[1])
			}
			for _, label := range wanted {
				require.True(t, slices.Contains(own, label), "%s: %s has no label %s", title, name, label)
			}
		}
	}
	ids := map[int]bool{}
	for _, p := range board.Panels {
		require.False(t, ids[p.ID], p.Title)
		ids[p.ID] = true
		require.LessOrEqual(t, p.Grid.X+p.Grid.W, 24, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		for _, x := range p.Targets {
			check(p.Title, x.Expr)
		}
	}
	for _, v := range board.Templating.List {
		if v.Definition != "" {
			check(v.Name, v.Definition)
		}
	}
	for name := range labels { // and it leaves none out
		name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		require.True(t, asked[name], "no panel shows %s", name)
	}
}
