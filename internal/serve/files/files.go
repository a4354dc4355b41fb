// Package files reads the files that flags of commands name which serve many: whose fault it is that one can't be read
// is said in the words of the command line.
package files

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/stepjet/stepjet/fault"
)

// Read reads the file that a flag names, if it does.
func Read(flag, name string, parse func([]byte) error) error {
	if name == "" {
		return nil
	}
	b, err := os.ReadFile(name)
	if err == nil {
		err = parse(b)
	}
	if err != nil {
		f := fault.Wrap(fault.InvalidConfig, err, flag+" "+name)
		if inner := fault.As(err); inner != nil {
			f.Hint = inner.Hint
		}
		return f
	}
	return nil
}

// Tenant is what the file of --tenants says of one: what its runs are changed with.
type Tenant struct {
	// Creds is a file of user credentials; a relative path starts at the folder of the file that names it.
	Creds string `json:"creds,omitempty"`
	// NKey is a file with the seed of a user's key, in place of Creds; Inbox is the user's prefix of inboxes.
	NKey  string `json:"nkey,omitempty"`
	Inbox string `json:"inbox_prefix,omitempty"`
	// Approver is another one, for a user who may give and refuse approvals where the first may not; empty: the first.
	Approver string `json:"approver,omitempty"`
	// ApproverNKey and ApproverInbox are the same with a key in place of credentials.
	ApproverNKey  string `json:"approver_nkey,omitempty"`
	ApproverInbox string `json:"approver_inbox_prefix,omitempty"`
}

// Approving returns the user that approvals are given with: t itself where the file names no other.
func (t Tenant) Approving() Tenant {
	if t.Approver == "" && t.ApproverNKey == "" {
		return t
	}
	return Tenant{Creds: t.Approver, NKey: t.ApproverNKey, Inbox: t.ApproverInbox}
}

// Tenants reads the file of --tenants; without one it returns nil. Errors: InvalidConfig.
func Tenants(name string) (all map[string]Tenant, err error) {
	err = Read("--tenants", name, func(b []byte) error {
		if err := json.Unmarshal(b, &all); err != nil {
			return fault.Wrap(fault.InvalidConfig, err, "reading it").WithHint(`{"acme": {"creds": "acme.creds"}}`)
		}
		for tenant, t := range all {
			t.Creds, t.NKey = beside(name, t.Creds), beside(name, t.NKey)
			t.Approver, t.ApproverNKey = beside(name, t.Approver), beside(name, t.ApproverNKey)
			all[tenant] = t
		}
		return nil
	})
	return all, err
}

// beside returns a path that a file names: a relative one starts at the file's folder.
func beside(file, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// NoTenant says that a file of tenants does not name one.
func NoTenant(tenant string) error {
	return fault.New(fault.Permission, "the tenant %q is not served here", tenant).
		WithHint("the file of --tenants names those that are")
}
