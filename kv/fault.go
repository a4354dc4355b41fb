package kv

import (
	"context"
	"errors"
	"regexp"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
)

// Error codes of JetStream's API that mean something to Stepjet (nats-server, server/errors.json).
const (
	codeAccountResources  jetstream.ErrorCode = 10002
	codeNoPeers           jetstream.ErrorCode = 10005
	codeUnavailable       jetstream.ErrorCode = 10008
	codeConsumerNotFound  jetstream.ErrorCode = 10014
	codeInsufficient      jetstream.ErrorCode = 10023
	codeMemoryExceeded    jetstream.ErrorCode = 10028
	codeMessageNotFound   jetstream.ErrorCode = 10037
	codeSequenceNotFound  jetstream.ErrorCode = 10043
	codeNoAccount         jetstream.ErrorCode = 10039
	codeStorageExceeded   jetstream.ErrorCode = 10047
	codeMessageTooLarge   jetstream.ErrorCode = 10054
	codeStreamExists      jetstream.ErrorCode = 10058
	codeStreamNotFound    jetstream.ErrorCode = 10059
	codeWrongLastSequence jetstream.ErrorCode = 10071
	codeNotEnabled        jetstream.ErrorCode = 10076
	codeStoreFailed       jetstream.ErrorCode = 10077
	codeHeaderTooLarge    jetstream.ErrorCode = 10097
	codeRollupDenied      jetstream.ErrorCode = 10111
	codeDuplicateInFlight jetstream.ErrorCode = 10158
	codeSequenceNotReady  jetstream.ErrorCode = 10163
	codeSequenceInFlight  jetstream.ErrorCode = 10164
	codeTooManyRequests   jetstream.ErrorCode = 10167
	codeOffline           jetstream.ErrorCode = 10194
)

// faultOfCode is what an error code of JetStream's API means. What is not named here is a defect: Internal.
var faultOfCode = map[jetstream.ErrorCode]fault.Code{
	codeAccountResources: fault.StoreFull, codeInsufficient: fault.StoreFull, codeMemoryExceeded: fault.StoreFull,
	codeStorageExceeded: fault.StoreFull, codeStoreFailed: fault.StoreFull,
	codeNoPeers: fault.NotReady, codeUnavailable: fault.NotReady, codeConsumerNotFound: fault.NotReady, codeStreamNotFound: fault.NotReady,
	codeOffline: fault.NotReady, codeTooManyRequests: fault.NotReady, codeSequenceNotReady: fault.NotReady,
	codeSequenceInFlight: fault.NotReady, codeDuplicateInFlight: fault.NotReady,
	codeMessageNotFound: fault.NotFound,
	codeNoAccount:       fault.NoJetStream, codeNotEnabled: fault.NoJetStream,
	codeMessageTooLarge: fault.MessageTooLarge, codeHeaderTooLarge: fault.MessageTooLarge,
}

// faultOfError is what the client library's own errors mean. The first that errors.Is matches counts.
var faultOfError = []struct {
	err  error
	code fault.Code
}{
	{nats.ErrPermissionViolation, fault.Permission},
	{nats.ErrAuthorization, fault.Permission}, {nats.ErrAuthExpired, fault.Permission},
	{nats.ErrAuthRevoked, fault.Permission}, {nats.ErrAccountAuthExpired, fault.Permission},
	{nats.ErrMaxPayload, fault.MessageTooLarge},
	{nats.ErrNoServers, fault.NoConnection}, {nats.ErrConnectionClosed, fault.NoConnection},
	{nats.ErrConnectionDraining, fault.NoConnection}, {nats.ErrConnectionReconnecting, fault.NoConnection},
	{nats.ErrDisconnected, fault.NoConnection}, {nats.ErrStaleConnection, fault.NoConnection},
	{nats.ErrReconnectBufExceeded, fault.NoConnection}, {nats.ErrInvalidConnection, fault.NoConnection},
	{nats.ErrMaxConnectionsExceeded, fault.NoConnection}, {nats.ErrNoInfoReceived, fault.NoConnection},
	{jetstream.ErrJetStreamNotEnabled, fault.NoJetStream}, {jetstream.ErrJetStreamNotEnabledForAccount, fault.NoJetStream},
	{jetstream.ErrKeyNotFound, fault.NotFound}, {jetstream.ErrMsgNotFound, fault.NotFound},
	{jetstream.ErrObjectNotFound, fault.NotFound},
	{jetstream.ErrBucketNotFound, fault.NotReady}, {jetstream.ErrStreamNotFound, fault.NotReady},
	{nats.ErrNoResponders, fault.NotReady},
	{nats.ErrTimeout, fault.Timeout}, {context.DeadlineExceeded, fault.Timeout}, {context.Canceled, fault.Cancelled},
}

// Fault returns the fault that any error of NATS or of this package stands for: nil for nil, a *fault.Error in err's
// chain as it is, and Internal for what has no meaning of its own. The error stays the Cause. This mapping is total
// and it is the only one.
func Fault(err error) *fault.Error {
	if err == nil {
		return nil
	}
	var already *fault.Error
	if errors.As(err, &already) {
		return already
	}
	code := codeOf(err)
	f := &fault.Error{Code: code, Message: err.Error(), Retryable: code.Retryable(), Cause: err}
	switch code {
	case fault.Permission:
		if subject, kind := violated(err); subject != "" {
			return permissionFault(kind, subject, err)
		}
		f.Message = "the NATS server refuses these credentials: " + err.Error()
	case fault.NoJetStream:
		f.Message = "the NATS server has no JetStream for this account"
		f.Hint = "start it with -js, or enable JetStream for the account"
	case fault.NotReady:
		f.Message = "Stepjet is not set up there, or JetStream is not ready: " + err.Error()
		f.Hint = "start an orchestrator, or wait until the cluster has a leader"
		if apiCode(err) == codeNoPeers {
			f.Message = "the cluster has too few servers for a stream and its replicas: " + err.Error()
			f.Hint = "start them; and where gateways join several clusters, --nats-cluster names the one that is meant"
		}
	case fault.StoreFull:
		f.Message = "no room left in JetStream: " + err.Error()
		f.Hint = "raise the limit of the stream or of the account, or free some disk space"
	case fault.MessageTooLarge:
		f.Hint = "the server's max_payload, headers included, is the limit"
	}
	return f
}

func codeOf(err error) fault.Code {
	for _, known := range faultOfError {
		if errors.Is(err, known.err) {
			return known.code
		}
	}
	var api *jetstream.APIError
	if errors.As(err, &api) {
		if code, ok := faultOfCode[api.ErrorCode]; ok {
			return code
		}
		return fault.Internal
	}
	if broken(err) {
		return fault.NoConnection
	}
	return fault.Internal
}

// apiCode returns the code of a JetStream API error, 0 for any other.
func apiCode(err error) jetstream.ErrorCode {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.ErrorCode
	}
	return 0
}

var violation = regexp.MustCompile(`(?i)(publish|subscription) to "?([^"\s]+)"?`)

// violated returns the subject that a permissions violation names, and whether it was a "publish" or a "subscription".
func violated(err error) (subject, kind string) {
	m := violation.FindStringSubmatch(err.Error())
	if m == nil {
		return "", ""
	}
	return m[2], m[1]
}

func permissionFault(kind, subject string, cause error) *fault.Error {
	verb := "publish to"
	if kind != "" && (kind[0] == 's' || kind[0] == 'S') {
		verb = "subscribe to"
	}
	f := fault.New(fault.Permission, "this account may not %s %s", verb, subject).
		WithHint("the server's permissions decide that; \"stepjet acl\" prints what each role needs")
	f.Cause = cause
	return f
}
