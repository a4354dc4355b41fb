package chaos

import (
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
)

// network is what the processes of a world talk over.
type network interface {
	// address returns a node's own IP address, making the node if it isn't there, and a port of it that is free.
	address(node string) (host string, port int, err error)
	// wrap returns the command line that runs a program on a node.
	wrap(node string, argv []string) []string
	// dialer connects the harness itself.
	dialer() nats.CustomDialer
	// cut lets nothing pass any more between the nodes of one side and those of the other. heal undoes all cuts.
	cut(one, other []string) error
	heal() error
	// close removes all that was made.
	close() error
	// partitions reports whether cut works.
	partitions() bool
}

// loopback is the network of those who may not make namespaces: ports of 127.0.0.1.
type loopback struct{}

func (loopback) address(string) (string, int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", 0, err
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	n, err := strconv.Atoi(port)
	return "127.0.0.1", n, err
}

func (loopback) wrap(_ string, argv []string) []string { return argv }
func (loopback) dialer() nats.CustomDialer             { return &net.Dialer{Timeout: 2 * time.Second} }
func (loopback) cut(_, _ []string) error {
	return fault.New(fault.InvalidConfig, "no partitions on the loopback interface")
}
func (loopback) heal() error      { return nil }
func (loopback) close() error     { return nil }
func (loopback) partitions() bool { return false }
