package main

import (
	"context"

	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// Cursor says where a page begins; empty is the first.
type Cursor struct {
	Cursor *string `json:"cursor"`
}

// Customer is one of a page.
type Customer struct {
	Name string `json:"name"`
}

// Page is what list_customers returns. Next is nil in the last.
type Page struct {
	Customers []Customer `json:"customers"`
	Next      *string    `json:"next"`
}

var second, third = "p2", "p3"

var pages = map[string]Page{
	"":     {[]Customer{{"Ann"}, {"Bob"}}, &second},
	second: {[]Customer{{"Cy"}, {"Dee"}}, &third},
	third:  {[]Customer{{"Eve"}}, nil},
}

func listCustomers(_ context.Context, in Cursor) (Page, error) {
	if in.Cursor == nil {
		return pages[""], nil
	}
	return pages[*in.Cursor], nil
}

// host adds the tool to a worker, under its definition.
func host(w *worker.Worker, defs []*tool.Definition) {
	worker.Handle(w, "list_customers", listCustomers, worker.DefinedBy(defs...))
}
