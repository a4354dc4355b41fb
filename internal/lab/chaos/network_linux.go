package chaos

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"

	"github.com/stepjet/stepjet/fault"
)

// namespaces is a network of its own: a bridge in one namespace (the hub), and for each node a namespace with one pair
// of virtual interfaces to it. It touches no interface, route or namespace of the machine's own.
type namespaces struct {
	prefix string
	hub    string
	nodes  map[string]string // IP by node
	cuts   [][2]string       // a node, and the address that it can't reach
}

const namespacePrefix = "stepjet-chaos-"

// newNetwork makes namespaces, or says what is missing.
func newNetwork() (network, error) {
	if os.Geteuid() != 0 {
		return nil, fault.New(fault.InvalidConfig, "network namespaces need root").
			WithHint("run as root, or without namespaces: NAMESPACES=off")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return nil, fault.New(fault.InvalidConfig, "the command ip is not installed").
			WithHint("apt-get install iproute2 (or run without namespaces: NAMESPACES=off)")
	}
	removeLeftovers()
	n := &namespaces{prefix: fmt.Sprintf("%s%d-", namespacePrefix, os.Getpid()), nodes: map[string]string{}}
	n.hub = n.prefix + "hub"
	err := ip(
		"netns add "+n.hub, "-n "+n.hub+" link set lo up", "-n "+n.hub+" link add br0 type bridge",
		"-n "+n.hub+" addr add 10.213.0.1/24 dev br0", "-n "+n.hub+" link set br0 up",
	)
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// removeLeftovers removes the namespaces of harnesses that are not alive any more.
func removeLeftovers() {
	found, _ := filepath.Glob("/var/run/netns/" + namespacePrefix + "*")
	for _, path := range found {
		name := filepath.Base(path)
		pid, _, _ := strings.Cut(strings.TrimPrefix(name, namespacePrefix), "-")
		if id, err := strconv.Atoi(pid); err == nil && errors.Is(syscall.Kill(id, 0), syscall.ESRCH) {
			_ = ip("netns del " + name)
		}
	}
}

// ip runs commands of ip one after the other.
func ip(commands ...string) error {
	for _, c := range commands {
		if out, err := exec.Command("ip", strings.Fields(c)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", c, err, out)
		}
	}
	return nil
}

func (n *namespaces) address(node string) (string, int, error) {
	if addr := n.nodes[node]; addr != "" {
		return addr, 4222, nil
	}
	i := len(n.nodes) + 2
	addr, ns := fmt.Sprintf("10.213.0.%d", i), n.prefix+node
	err := ip(
		"netns add "+ns, "-n "+ns+" link set lo up",
		fmt.Sprintf("-n %s link add v%d type veth peer name eth0 netns %s", n.hub, i, ns),
		fmt.Sprintf("-n %s link set v%d master br0", n.hub, i), fmt.Sprintf("-n %s link set v%d up", n.hub, i),
		fmt.Sprintf("-n %s addr add %s/24 dev eth0", ns, addr), "-n "+ns+" link set eth0 up",
	)
	n.nodes[node] = addr
	return addr, 4222, err
}

func (n *namespaces) wrap(node string, argv []string) []string {
	return append([]string{"ip", "netns", "exec", n.prefix + node}, argv...)
}

// nowhere is a hardware address that nobody has.
const nowhere = "02:00:00:00:00:01"

// cut returns the nodes of both sides a wrong hardware address of each other, so that packets are lost without a word
// to who sends them, as when a cable is cut somewhere on the way. (A route into nowhere would tell the sender.)
func (n *namespaces) cut(one, other []string) error {
	for _, a := range one {
		for _, b := range other {
			for _, c := range [][2]string{{a, n.nodes[b]}, {b, n.nodes[a]}} {
				if slices.Contains(n.cuts, c) {
					continue
				}
				if err := ip("-n " + n.prefix + c[0] + " neigh replace " + c[1] + " lladdr " + nowhere +
					" nud permanent dev eth0"); err != nil {
					return err
				}
				n.cuts = append(n.cuts, c)
			}
		}
	}
	return nil
}

func (n *namespaces) heal() (err error) {
	for _, c := range n.cuts {
		err = errors.Join(err, ip("-n "+n.prefix+c[0]+" neigh del "+c[1]+" dev eth0"))
	}
	n.cuts = nil
	return err
}

func (n *namespaces) close() (err error) {
	for node := range n.nodes {
		err = errors.Join(err, ip("netns del "+n.prefix+node))
	}
	n.nodes = map[string]string{}
	return errors.Join(err, ip("netns del "+n.hub))
}

func (n *namespaces) partitions() bool { return true }

func (n *namespaces) dialer() nats.CustomDialer { return hubDialer(n.hub) }

// hubDialer dials from within a namespace: a socket belongs to the namespace in which its thread was when it was made.
type hubDialer string

func (d hubDialer) Dial(network, address string) (net.Conn, error) {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	defer home.Close()
	hub, err := os.Open("/var/run/netns/" + string(d))
	if err == nil {
		defer hub.Close()
		err = unix.Setns(int(hub.Fd()), unix.CLONE_NEWNET)
	}
	if err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	c, err := net.DialTimeout(network, address, 2*time.Second)
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		return c, errors.Join(err, back) // the thread stays locked and ends with its goroutine
	}
	runtime.UnlockOSThread()
	return c, err
}
