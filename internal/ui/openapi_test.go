package ui_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// api is what openapi.yaml says, and how a request is found in it.
var api = sync.OnceValues(func() (*openapi3.T, routers.Router) {
	openapi3filter.RegisterBodyDecoder("application/yaml", openapi3filter.PlainBodyDecoder)
	body, err := os.ReadFile("openapi.yaml")
	if err != nil {
		panic(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(body)
	if err != nil {
		panic(err)
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		panic(err)
	}
	return doc, router
})

// asDescribed holds each request of the API that succeeds, and each answer, against the description.
func asDescribed(t *testing.T, next http.Handler) http.Handler {
	_, router := api()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route, params, err := router.FindRoute(r)
		if err != nil || route.Operation.OperationID == "stream" { // a page, nothing that there is, or without an end
			next.ServeHTTP(w, r)
			return
		}
		sent, _ := io.ReadAll(r.Body) // who breaks off is answered by nobody
		r.Body = io.NopCloser(bytes.NewReader(sent))
		answer := &kept{ResponseWriter: w}
		next.ServeHTTP(answer, r)
		if answer.status == 0 {
			answer.status = http.StatusOK
		}
		asked := r.Clone(r.Context())
		asked.Body = io.NopCloser(bytes.NewReader(sent))
		asked.Header.Set("Content-Type", "application/json")
		in := &openapi3filter.RequestValidationInput{Request: asked, PathParams: params, Route: route}
		if answer.status == http.StatusOK {
			if len(sent) == 0 && route.Operation.RequestBody != nil {
				asked.Header.Del("Content-Type")
			}
			assert.NoError(t, openapi3filter.ValidateRequest(r.Context(), in), "%s %s", r.Method, r.URL)
		}
		body := answer.body.Bytes()
		if answer.Header().Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(&answer.body)
			assert.NoError(t, err)
			body, err = io.ReadAll(z)
			assert.NoError(t, err)
		}
		out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: answer.status, Header: answer.Header().Clone()}
		out.SetBodyBytes(body)
		assert.NoError(t, openapi3filter.ValidateResponse(r.Context(), out), "%s %s: %d", r.Method, r.URL, answer.status)
	})
}

// kept keeps what it passes on.
type kept struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (k *kept) WriteHeader(status int) {
	k.status = status
	k.ResponseWriter.WriteHeader(status)
}

func (k *kept) Write(b []byte) (int, error) {
	k.body.Write(b)
	return k.ResponseWriter.Write(b)
}

// The description is a description, it is served, and all that stands in it is there.
func TestTheAPIIsDescribed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	doc, _ := api()
	require.NoError(t, doc.Validate(t.Context()))
	served, err := io.ReadAll(w.request(http.MethodGet, "/api/v1/openapi.yaml", nil).Body)
	require.NoError(t, err)
	require.Contains(t, string(served), "openapi: 3.0.3")
	operations := 0
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			operations++
			if path == "/stream" {
				continue // other tests read it
			}
			path := strings.NewReplacer("{key}", "default.nobody", "{step}", "s", "{tool}", "echo").Replace(path)
			answer := w.request(method, "/api/v1"+path, []byte(`{"key":"default.nobody"}`))
			body, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			require.NotContains(t, string(body), "there is no "+method, "%s %s", method, path)
			require.NotEqual(t, http.StatusMethodNotAllowed, answer.StatusCode)
		}
	}
	require.Greater(t, operations, 12)
}
