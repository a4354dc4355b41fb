package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// Row is a contact to be created.
type Row struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// Contact is a row that was created.
type Contact struct {
	ID    string `json:"contact_id"`
	Name  string `json:"name"`
	Email string `json:"email"`
}

// crm is a store with transactions: one works on a copy, which takes the store's place if all went well.
type crm struct {
	mu   sync.Mutex
	data data
}

type data struct {
	contacts []Contact
	byKey    map[string]Contact // what was created under an idempotency key
}

// create is called with the rows of one step or of many; either all are written or none.
func (c *crm) create(ctx context.Context, rows []Row) ([]worker.ItemResult[Contact], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tx := data{slices.Clone(c.data.contacts), maps.Clone(c.data.byKey)}
	if tx.byKey == nil {
		tx.byKey = map[string]Contact{}
	}
	results := make([]worker.ItemResult[Contact], len(rows))
	for i, key := range keys(ctx) {
		contact, err := tx.create(key, rows[i])
		if err != nil {
			results[i].Err = err
			return results, nil // tx is dropped
		}
		results[i].Value = contact
	}
	c.data = tx
	return results, nil
}

// create adds a row, unless an earlier execution of the same row did: then that one's contact is the answer.
func (d *data) create(key string, r Row) (Contact, error) {
	if created, again := d.byKey[key]; again {
		return created, nil
	}
	for _, c := range d.contacts {
		if c.Email == r.Email {
			return Contact{}, worker.Terminal(fmt.Errorf("%s can't have the address %s, which is that of %s", r.Name, r.Email,
				c.Name))
		}
	}
	c := Contact{fmt.Sprintf("c-%d", len(d.contacts)+1), r.Name, r.Email}
	d.contacts, d.byKey[key] = append(d.contacts, c), c
	return c, nil
}

// keys returns an idempotency key for each row: that of its step, with the place of the row among those of the step.
func keys(ctx context.Context) (all []string) {
	rows := map[string]int{}
	for _, step := range worker.ItemsFrom(ctx) {
		all = append(all, fmt.Sprintf("%s/%d", step.Key, rows[step.Key]))
		rows[step.Key]++
	}
	return all
}

// Contacts is what list_contacts returns.
type Contacts struct {
	Contacts []Contact `json:"contacts"`
}

func (c *crm) list(context.Context, struct{}) (Contacts, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Contacts{append([]Contact{}, c.data.contacts...)}, nil
}

// host adds the tools to a worker, under their definitions.
func (c *crm) host(w *worker.Worker, defs []*tool.Definition) {
	worker.HandleBatch(w, "create_contacts", c.create, worker.DefinedBy(defs...))
	worker.Handle(w, "list_contacts", c.list, worker.DefinedBy(defs...))
}
