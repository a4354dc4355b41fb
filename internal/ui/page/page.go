// Package page holds the page that browsers load: one document, one script and one style. They are made of the sources
// in web/ by "go generate ./internal/ui/page"; a test makes them again and compares.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
)

//go:generate go run ../../../cmd/lab page

//go:embed index.html app.js app.css icon.svg
var files embed.FS

// Document is the page itself, which every path leads to that is no file of it: which screen is shown is the page's
// matter.
const Document = "index.html"

// Files are the names of all that browsers load.
var Files = []string{Document, "app.js", "app.css", "icon.svg"}

// Read returns a file of the page.
func Read(name string) ([]byte, error) { return files.ReadFile(name) }

// types are those of the files, whatever the system says of their names.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml",
}

// file is a file as it is sent.
type file struct {
	plain, zipped []byte
	mime, etag    string
}

// Handler serves the page. A browser that has a file asks only whether it is still that.
func Handler() http.Handler {
	all := map[string]*file{}
	for _, name := range Files {
		body, err := Read(name)
		if err != nil {
			panic(err) // it is part of this program
		}
		all[name] = newFile(name, body)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.Error(w, "the page is read", http.StatusMethodNotAllowed)
			return
		}
		f := all[strings.TrimPrefix(r.URL.Path, "/")]
		if f == nil {
			f = all[Document]
		}
		f.ServeHTTP(w, r)
	})
}

func newFile(name string, body []byte) *file {
	sum := sha256.Sum256(body)
	var z bytes.Buffer
	w, _ := gzip.NewWriterLevel(&z, gzip.BestCompression) // it is a level
	_, _ = w.Write(body)
	_ = w.Close()
	return &file{
		plain: body, zipped: z.Bytes(), mime: types[path.Ext(name)],
		etag: `"` + hex.EncodeToString(sum[:8]) + `"`,
	}
}

func (f *file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.mime)
	h.Set("ETag", f.etag)
	h.Set("Cache-Control", "no-cache") // asked each time, answered with nothing where it is the same
	h.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == f.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = f.zipped
	}
	_, _ = w.Write(body) // a browser that is gone needs no answer
}
