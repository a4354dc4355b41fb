package ui

import (
	"context"
	"net/http"
	"sync"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/subjects"
)

// acting answers what changes something, and what only tries it.
type acting struct {
	docs  *reader
	asked *asked
	// life ends with the server; done counts what goes on after an answer.
	life context.Context
	done *sync.WaitGroup
}

// begun names a run that was begun, or found.
type begun struct {
	Key string `json:"key"`
	Run string `json:"run"`
}

// posted returns the tenant that the query names, and what was sent.
func posted(w http.ResponseWriter, r *http.Request) (string, []byte, error) {
	of, err := tenant(r)
	if err != nil {
		return "", nil, err
	}
	body, err := readBody(w, r)
	return of, body, err
}

// submit takes a plan, for the tenant and under the run id that the query names.
func (a acting) submit(w http.ResponseWriter, r *http.Request) (any, error) {
	of, body, err := posted(w, r)
	if err != nil {
		return nil, err
	}
	c, err := a.docs.actor(r.Context(), of)
	if err != nil {
		return nil, err
	}
	run, err := c.Submit(r.Context(), body, client.SubmitOptions{Run: r.URL.Query().Get("run")})
	if err != nil {
		return nil, err
	}
	return begun{subjects.NewRun(of, run.ID()).Key(), run.ID()}, nil
}

// of returns the run that a request names, and the client that may change it.
func (a acting) of(r *http.Request) (subjects.Run, *client.Client, error) {
	run, err := named(r, r.PathValue("key"))
	if err != nil {
		return run, nil, err
	}
	c, err := a.docs.actor(r.Context(), run.Tenant)
	return run, c, err
}

func (a acting) cancel(_ http.ResponseWriter, r *http.Request) (any, error) {
	run, c, err := a.of(r)
	if err != nil {
		return nil, err
	}
	if _, err := c.Cancel(r.Context(), run.Plain(), principal(r).Name); err != nil {
		return nil, err
	}
	a.docs.forget(run.Key())
	return begun{run.Key(), run.Plain()}, nil
}

// retry tries a run again: what did not succeed of it, and from a step on where the body names one.
func (a acting) retry(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		From string `json:"from"`
	}
	if err := readJSON(w, r, &in); err != nil {
		return nil, err
	}
	run, c, err := a.of(r)
	if err != nil {
		return nil, err
	}
	again, err := c.Retry(r.Context(), run.Plain(), client.RetryOptions{From: in.From})
	if err != nil {
		return nil, err
	}
	return begun{subjects.NewRun(run.Tenant, again.ID()).Key(), again.ID()}, nil
}
