package traces

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	"github.com/stepjet/stepjet/observe"
)

// The names of spans and attributes that whoever ends a run makes; package observe/spans has those of clients and
// workers. OpenTelemetry's conventions for messaging are stable, those for generative AI may change.
const (
	spanWorkflow = "invoke_workflow"
	spanStep     = "step "

	system      = attribute.Key("messaging.system")
	destination = attribute.Key("messaging.destination.template")
	errorType   = attribute.Key("error.type")
	operation   = attribute.Key("gen_ai.operation.name")
	toolName    = attribute.Key("gen_ai.tool.name")
	toolCall    = attribute.Key("gen_ai.tool.call.id")

	keyRun     = attribute.Key("stepjet.run")
	keyTenant  = attribute.Key("stepjet.tenant")
	keyStatus  = attribute.Key("stepjet.status")
	keyStep    = attribute.Key("stepjet.step")
	keyAttempt = attribute.Key("stepjet.attempt")
	keyWait    = attribute.Key("stepjet.wait_ms")
	keyAsked   = attribute.Key("stepjet.asked")
	keyLeftOut = attribute.Key("stepjet.attempts_left_out")

	failure = codes.Error
)

type attributes []attribute.KeyValue

func ofRun(r *observe.Run) attributes {
	return attributes{keyRun.String(r.ID), keyTenant.String(r.Tenant)}
}

func ofAttempt(r *observe.Run, step, tool string, number int) attributes {
	return append(ofRun(r), keyStep.String(step), keyAttempt.Int(number), toolName.String(tool), toolCall.String(step))
}

func onNATS(template string) attributes {
	return attributes{system.String("nats"), destination.String(template)}
}
