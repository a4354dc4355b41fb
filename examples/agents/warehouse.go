package main

import (
	"context"
	"errors"

	"github.com/stepjet/stepjet/worker"
)

// warehouse has things that can be looked for, and a scanner that can't read each label.
func (h hosting) warehouse() {
	h.says("unlock", "Unlocks the warehouse.", nil, "open")
	h.says("lock_up", "Locks the warehouse up.", nil, "locked")
	h.tool("scan", "Reads a label.", []string{"code string"}, func(_ context.Context, in object) (any, error) {
		if in["code"] == "?" {
			return nil, worker.Terminal(errors.New("the label can't be read"))
		}
		return in["code"], nil
	})
	h.says("weigh", "Weighs a thing.", nil, "two kilos")
	h.says("pack", "Packs what stands ready.", nil, "packed")
	h.says("load", "Loads what is packed.", nil, "loaded")
	h.says("declare", "Declares a value.", []string{"value number"}, "declared: %v")
	h.says("describe", "Describes the thing that was found last.", []string{"id string"}, "thing %s")
	h.tool("find_item", "Finds a thing.", []string{"name string"}, func(_ context.Context, in object) (any, error) {
		return worker.Result{Type: "Item", Artifact: object{"id": in["name"]}}, nil
	})
	h.tool("find_pallet", "Finds a pallet.", []string{"place string"}, func(_ context.Context, in object) (any, error) {
		return worker.Result{Type: "Pallet", Artifact: object{"id": in["place"]}}, nil
	})
}
