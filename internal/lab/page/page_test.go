package page_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/page"
	served "github.com/stepjet/stepjet/internal/ui/page"
)

const web = "../../../web"

// What browsers load is what the sources make.
func TestTheServedFilesAreMadeOfTheSources(t *testing.T) {
	t.Parallel()
	made, err := page.Make(web)
	require.NoError(t, err)
	require.Len(t, made, len(served.Files))
	for _, name := range served.Files {
		there, err := served.Read(name)
		require.NoError(t, err)
		require.True(t, bytes.Equal(made[name], there), "%s is old: go generate ./internal/ui/page", name)
	}
}

// The whole page is small.
func TestThePageIsAtMost40KB(t *testing.T) {
	t.Parallel()
	all := 0
	for _, name := range served.Files {
		body, err := served.Read(name)
		require.NoError(t, err)
		var z bytes.Buffer
		w, err := gzip.NewWriterLevel(&z, gzip.BestCompression)
		require.NoError(t, err)
		_, err = w.Write(body)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		t.Logf("%s: %d bytes, compressed %d", name, len(body), z.Len())
		all += z.Len()
	}
	require.Less(t, all, 40<<10)
}

// unsafe is what makes markup or code of text; none of it is needed, and what runs hold is anybody's text.
var unsafe = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|javascript:|DOMParser|createContextualFragment`)

func TestNoTextBecomesMarkup(t *testing.T) {
	t.Parallel()
	sources, err := filepath.Glob(filepath.Join(web, "*.ts"))
	require.NoError(t, err)
	require.NotEmpty(t, sources)
	for _, name := range sources {
		body, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Empty(t, unsafe.FindAllString(string(body), -1), name)
		if filepath.Base(name) == "dom.ts" {
			require.LessOrEqual(t, strings.Count(string(body), "\n"), 150, "dom.ts stays small")
		}
	}
	require.Equal(t, []string{"innerHTML"}, unsafe.FindAllString(`x.innerHTML = "<b>"; y.textContent = z`, -1))
}
