package ui

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// endpoint answers a request with a value, which leaves as JSON. It returns nil where it has answered itself.
type endpoint func(w http.ResponseWriter, r *http.Request) (any, error)

func (do endpoint) serve(w http.ResponseWriter, r *http.Request) {
	answer, err := do(w, r)
	switch {
	case err != nil:
		refuse(w, err)
	case answer != nil:
		write(w, r, answer)
	}
}

// statuses are those of HTTP that errors have; all others are those of a server in trouble.
var statuses = map[fault.Code]int{
	fault.NotFound: http.StatusNotFound, fault.AlreadyFinished: http.StatusConflict, fault.Conflict: http.StatusConflict,
	fault.Permission: http.StatusForbidden, fault.InvalidID: http.StatusBadRequest,
	fault.InvalidValue: http.StatusBadRequest, fault.MalformedJSON: http.StatusBadRequest,
	fault.Overtaken: http.StatusConflict, fault.InvalidTool: http.StatusUnprocessableEntity,
	fault.InvalidArguments: http.StatusUnprocessableEntity, fault.InvalidConfig: http.StatusUnprocessableEntity, fault.LimitExceeded: http.StatusRequestEntityTooLarge,
	fault.MessageTooLarge: http.StatusRequestEntityTooLarge, fault.TooLarge: http.StatusRequestEntityTooLarge,
	fault.NotReady: http.StatusServiceUnavailable, fault.NoConnection: http.StatusServiceUnavailable,
	fault.StoreFull: http.StatusServiceUnavailable, fault.Timeout: http.StatusGatewayTimeout,
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	status, ok := statuses[fault.CodeOf(err)]
	if !ok {
		status = http.StatusInternalServerError
	}
	refuseAs(w, status, err)
}

func refuseAs(w http.ResponseWriter, status int, err error) {
	body, failed := json.Marshal(fault.As(err))
	if failed != nil { // details of a peer that are no JSON
		body, _ = json.Marshal(fault.New(fault.CodeOf(err), "%s", fault.As(err).Message))
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a browser that is gone needs no answer
}

// compressed is from how many bytes on an answer is worth compressing.
const compressed = 2 << 10

// write answers with a value.
func write(w http.ResponseWriter, r *http.Request, answer any) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(answer); err != nil {
		refuse(w, fault.Wrap(fault.Internal, err, "writing the answer"))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Vary", "Accept-Encoding")
	if body.Len() < compressed || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		_, _ = w.Write(body.Bytes()) // a browser that is gone needs no answer
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // it is a level
	_, _ = z.Write(body.Bytes())
	_ = z.Close()
}

// maxBody bounds what a browser sends: a plan.
const maxBody = 2 << 20

// readBody reads the body of a request. Errors: TooLarge, MalformedJSON.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, fault.New(fault.TooLarge, "the body has more than %d bytes", large.Limit)
	case err != nil:
		return nil, fault.Wrap(fault.MalformedJSON, err, "reading the body")
	}
	return body, nil
}

// readJSON reads a body that is a JSON object, or empty.
func readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	body, err := readBody(w, r)
	if err != nil || len(body) == 0 {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fault.Wrap(fault.MalformedJSON, err, "reading the body")
	}
	return nil
}
