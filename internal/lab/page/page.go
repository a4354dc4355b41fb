// Package page makes the files of internal/ui/page of their sources in web/. It is apart from the product for what
// makes them, esbuild, which is needed where the sources change and nowhere else: nobody who builds Stepjet fetches it.
package page

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

// Make returns the files that browsers load, by name, made of the sources in a folder. What it makes of the same sources
// is always the same.
func Make(web string) (map[string][]byte, error) {
	root, err := filepath.Abs(web)
	if err != nil {
		return nil, err
	}
	built := api.Build(api.BuildOptions{
		AbsWorkingDir: root, EntryPoints: []string{"app.ts", "app.css"}, Outdir: "out", Bundle: true,
		Format: api.FormatIIFE, Target: api.ES2022, Charset: api.CharsetUTF8, LegalComments: api.LegalCommentsNone,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
	})
	if len(built.Errors) > 0 {
		m := built.Errors[0]
		at := ""
		if m.Location != nil {
			at = fmt.Sprintf("%s:%d: ", m.Location.File, m.Location.Line)
		}
		return nil, fmt.Errorf("web/%s%s", at, m.Text)
	}
	files := map[string][]byte{}
	for _, f := range built.OutputFiles {
		files[filepath.Base(f.Path)] = f.Contents
	}
	for _, name := range []string{"index.html", "icon.svg"} {
		if files[name], err = os.ReadFile(filepath.Join(root, name)); err != nil {
			return nil, err
		}
	}
	return files, nil
}
