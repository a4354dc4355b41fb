package hosted

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
)

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, a := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.8.8.8", "169.254.169.254",
		"172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9",
		"224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0:127.0.0.1",
		"64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::808:808", "100::1", "2001::1", "2001:0:102:304::1", "2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::1",
		"3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "febf::1", "fec0::1", "ff02::1", "ff0e::1", "2606:4700::1%eth0",
	} {
		addr := netip.MustParseAddr(a)
		require.False(t, public(addr), a)
		err := onlyPublic("tcp", netip.AddrPortFrom(addr, 80).String(), nil)
		require.Equal(t, fault.ToolTerminal, fault.CodeOf(err), a)
		require.ErrorContains(t, err, "allow_private")
	}
	for _, a := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.1", "126.255.255.255", "128.0.0.1", "169.253.0.1", "169.255.0.1", "172.15.0.1", "172.32.0.1",
		"192.0.1.1", "192.167.0.1", "192.169.0.1", "198.17.0.1", "198.20.0.1", "223.255.255.255",
		"::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1", "2001:4860:4860::8888", "2606:4700:4700::1111", "2a00:1450::1",
	} {
		addr := netip.MustParseAddr(a)
		require.True(t, public(addr), a)
		require.NoError(t, onlyPublic("tcp", netip.AddrPortFrom(addr, 443).String(), nil))
	}
	require.False(t, public(netip.Addr{}))
	for _, bad := range []string{"", "localhost:80", "1.2.3.4", "@unix"} {
		require.Error(t, onlyPublic("tcp", bad, nil), bad)
	}
}
