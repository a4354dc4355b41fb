package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// script is a model that knows two answers, so that the example needs no key and no network. It speaks OpenAI's form as
// an endpoint does.
func script(w http.ResponseWriter, r *http.Request) {
	asked, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	answer := `We are sorry that your parcel came broken, and return your money today.`
	if strings.Contains(string(asked), "response_format") {
		answer = `{\"kind\": \"complaint\", \"summary\": \"A parcel came broken; the money is to be returned.\"}`
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%s\"},\"finish_reason\":\"stop\"}]}\n\n",
		answer)
	fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":16}}\n\ndata: [DONE]\n\n")
}

// scripted serves the script on a free port of this machine and returns a configuration that asks it.
func scripted() (config []byte, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	srv := &http.Server{Handler: http.HandlerFunc(script)}
	served := make(chan struct{})
	go func() {
		_ = srv.Serve(l) // it ends with stop
		close(served)
	}()
	config = fmt.Appendf(nil, `{"provider": "openai", "base_url": "http://%s",
		"models": {"small": {"id": "script", "input_usd": 1, "output_usd": 4}}}`, l.Addr())
	return config, func() { _ = srv.Close(); <-served }, nil
}
