package ui

import (
	"net/http"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
)

// tenant reads the tenant that a request is for. Errors: NotFound for one that the caller does not see.
func tenant(r *http.Request) (string, error) {
	name := r.URL.Query().Get("tenant")
	if name == "" {
		name = subjects.DefaultTenant
	}
	switch {
	case !subjects.ValidTenant(name):
		return "", fault.New(fault.InvalidValue, "%q is no tenant", name)
	case !principal(r).sees(name):
		return "", fault.New(fault.NotFound, "there is no tenant %s", name)
	}
	return name, nil
}

// named reads the key of a run in a request. Errors: InvalidID; NotFound for tenants that the caller does not see.
func named(r *http.Request, key string) (subjects.Run, error) {
	run, ok := subjects.ParseHistoryKey(key)
	if !ok || !run.Valid() {
		return run, fault.New(fault.InvalidID, "%q names no run", key).WithHint("<tenant>.<encoded run id>, as in the list of runs")
	}
	if !principal(r).sees(run.Tenant) {
		return run, fault.New(fault.NotFound, "there is no run %q of the tenant %s", run.Plain(), run.Tenant)
	}
	return run, nil
}
