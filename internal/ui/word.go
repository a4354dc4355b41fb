package ui

import (
	"net/http"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
)

// spoken is what a caller says to an agent.
type spoken struct {
	Step string `json:"step"`
	// ID is the caller's, so that what is sent twice is said once.
	ID         string `json:"id"`
	Text       string `json:"text"`
	Interrupt  bool   `json:"interrupt"`
	Generation uint64 `json:"generation"`
}

// heard is what became of a word.
type heard struct {
	ID      string `json:"id"`
	Round   *int   `json:"round,omitempty"` // nil as long as none has begun since
	Already bool   `json:"already,omitempty"`
}

// word says something to an agent of a run.
func (a acting) word(w http.ResponseWriter, r *http.Request) (any, error) {
	run, c, err := a.of(r)
	if err != nil {
		return nil, err
	}
	var in spoken
	if err := readJSON(w, r, &in); err != nil {
		return nil, err
	}
	switch {
	case in.Step == "":
		return nil, fault.New(fault.InvalidValue, "there is no step").WithHint("it is the step that calls the agent")
	case in.ID == "":
		return nil, fault.New(fault.InvalidValue, "the word has no id").
			WithHint("any 1 to 64 of A-Z, a-z, 0-9, _ and -: what is sent twice under one is said once")
	case in.Text == "":
		return nil, fault.New(fault.InvalidValue, "there is no text")
	}
	said, err := client.Say(r.Context(), c, run.Plain(), client.Word{
		Step: in.Step, ID: in.ID, Text: in.Text, Interrupt: in.Interrupt, By: principal(r).Name, Generation: in.Generation,
	})
	a.docs.forget(run.Key())
	if err != nil {
		return nil, err
	}
	h := heard{ID: said.ID, Already: said.Already}
	if said.Round >= 0 {
		h.Round = &said.Round
	}
	return h, nil
}
