package hosted

import (
	"net/netip"
	"syscall"

	"github.com/stepjet/stepjet/fault"
)

// prefixes parses a table of networks.
func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// notPublic are the networks of the IANA special-purpose registries that are not reachable from everywhere, or that
// lead to such, and the public addresses under which clouds have services for the machine itself. What IPv6 addresses
// carry of IPv4 is looked at by itself (carried).
var notPublic = prefixes(
	"0.0.0.0/8",        // this network
	"10.0.0.0/8",       // private
	"100.64.0.0/10",    // carrier-grade NAT
	"127.0.0.0/8",      // loopback
	"161.26.0.0/16",    // services inside of IBM's cloud
	"166.8.0.0/14",     // the same
	"168.63.129.16/32", // Azure's platform: DNS, health, and what its agents ask for certificates
	"169.254.0.0/16",   // link-local; the metadata of clouds
	"172.16.0.0/12",    // private
	"192.0.0.0/24",     // protocol assignments
	"192.0.2.0/24",     // documentation
	"192.88.99.0/24",   // 6to4 relays
	"192.168.0.0/16",   // private
	"198.18.0.0/15",    // benchmarks
	"198.51.100.0/24",  // documentation
	"203.0.113.0/24",   // documentation
	"224.0.0.0/4",      // multicast
	"240.0.0.0/4",      // reserved, broadcast
	"2001::/23",        // protocol assignments; Teredo
	"2001:db8::/32",    // documentation
	"3fff::/20",        // documentation
	"5f00::/16",        // segment routing
)

// global is where public IPv6 addresses lie; loopback, unique local, link-local, site-local, multicast and discard-only
// ones lie elsewhere.
var global = netip.MustParsePrefix("2000::/3")

// nat64 is the one network outside of global whose addresses lead to public ones: those that they carry.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// carriers are the IPv6 networks whose addresses stand for an IPv4 address, and at which byte they hold it.
var carriers = []struct {
	prefix netip.Prefix
	at     int
}{
	{nat64, 12},
	{netip.MustParsePrefix("2002::/16"), 2}, // 6to4
}

// public reports whether an address may be reached by a tool that must not reach private ones.
func public(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	a = a.Unmap() // ::ffff:10.0.0.1 is 10.0.0.1
	if v4, ok := carried(a); ok && !public(v4) {
		return false
	}
	if a.Is6() && !global.Contains(a) && !nat64.Contains(a) {
		return false
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

func carried(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return a, false
	}
	b := a.As16()
	for _, c := range carriers {
		if c.prefix.Contains(a) {
			return netip.AddrFrom4([4]byte(b[c.at : c.at+4])), true
		}
	}
	if b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe { // ISATAP, in any network
		return netip.AddrFrom4([4]byte(b[12:])), true
	}
	return a, false
}

// refuse is the error of a connection to an address that is not public.
func refuse(address string) error {
	return fault.New(fault.ToolTerminal, "the address %s is private, loopback, link-local or otherwise not public",
		address).
		WithHint("if the tool is meant to reach it, set \"allow_private\": true in its http entry")
}

// onlyPublic is a net.Dialer's Control: it sees each address after names were resolved, right before it is connected
// to.
func onlyPublic(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil || !public(ap.Addr()) {
		return refuse(address)
	}
	return nil
}
