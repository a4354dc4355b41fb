package outcome_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

func sample() *outcome.Outcome {
	return &outcome.Outcome{
		Run: "order-42 \"é\"", Status: outcome.Partial, Generation: 18446744073709551615,
		Results: outcome.Results{{Step: "z", JSON: json.RawMessage(`{ "n": 12345678901234567890, "h": "<b>" }`)}, {Step: "a", JSON: json.RawMessage(`1.0`)}},
		Errors:  []outcome.StepError{{Step: "s1", Code: fault.ToolFailed, Message: "a < b", Attempts: 3}},
		Stats:   outcome.Stats{Steps: 3, Succeeded: 2, Failed: 1, ElapsedMS: 12.4, BytesReturned: 42},
	}
}

func TestOutcomeKeepsBytesAndOrder(t *testing.T) {
	const want = `{"run":"order-42 \"é\"","status":"partial","generation":18446744073709551615,"results":{"z":{ "n": 12345678901234567890, "h": "<b>" },"a":1.0},` +
		`"errors":[{"step":"s1","code":"tool_failed","message":"a < b","attempts":3}],` +
		`"stats":{"steps":3,"succeeded":2,"failed":1,"skipped":0,"elapsed_ms":12.4,"bytes_returned":42,"bytes_kept_out":0,"tokens_kept_out_estimate":0}}`
	require.Equal(t, want, string(sample().JSON()))

	var back outcome.Outcome
	require.NoError(t, json.Unmarshal([]byte(want), &back))
	require.Equal(t, *sample(), back)
}

func TestRunRoundTrip(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 5000, time.UTC)
	run := &outcome.Run{
		Version: 1, Run: "r", Tenant: "default", Generation: 7, Digest: "ab", Status: outcome.Partial, Submitted: at, Finished: at.Add(time.Second),
		Stats: sample().Stats, Outcome: sample(), Plan: json.RawMessage(`{"steps": [ ]}`),
		Steps: []outcome.Step{{ID: "z", Tool: "t", Status: outcome.StepSucceeded, Attempts: 1, Ready: at, Result: json.RawMessage(`{ "k": 1e400 }`), Bytes: 14},
			{ID: "s1", Tool: "t", Status: outcome.StepFailed, Error: fault.New(fault.ToolFailed, "x")}},
	}
	b := run.JSON()
	require.Contains(t, string(b), `"result":{ "k": 1e400 }`)
	require.Contains(t, string(b), `"plan":{"steps": [ ]}`)
	var back outcome.Run
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, string(b), string(back.JSON()))
	require.Equal(t, at, back.Steps[0].Ready)

	var head outcome.Run
	require.NoError(t, json.Unmarshal(run.Head(), &head))
	require.Equal(t, run.Stats, head.Stats)
	require.Nil(t, head.Outcome)
	require.Empty(t, head.Steps)
}

func TestEmptyOutcomeHasListsNotNull(t *testing.T) {
	b := (&outcome.Outcome{Run: "r", Status: outcome.Rejected, Problems: []fault.Problem{{Code: fault.EmptyPlan, Path: "/steps", Message: "m"}}}).JSON()
	require.JSONEq(t, `{"run":"r","status":"rejected","results":{},"errors":[],"problems":[{"code":"empty_plan","path":"/steps","message":"m"}],
		"stats":{"steps":0,"succeeded":0,"failed":0,"skipped":0,"elapsed_ms":0,"bytes_returned":0,"bytes_kept_out":0,"tokens_kept_out_estimate":0}}`, string(b))
}

// TestEveryFieldOfAStepIsWritten fills each field in turn, so that a new one can't be forgotten by the writer.
func TestEveryFieldOfAStepIsWritten(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 123456789, time.UTC)
	full := outcome.Step{
		ID: "a", Tool: "crm/get", Status: outcome.StepFailed, Attempts: 2, Ready: at, Started: at.Add(1), Ended: at.Add(2), Decided: at.Add(3), Worker: "w \"1\"",
		Tries:   []outcome.Try{{Attempt: 1, Started: at, Ended: at.Add(1), Worker: "w \"1\"", Code: fault.ToolFailed, ToolCode: "x", Deliveries: 2}, {Attempt: 2, Asked: true}},
		Waiting: "b", Error: fault.New(fault.ToolFailed, "x < y"), Arguments: json.RawMessage(`{"n": 1.0}`), Result: json.RawMessage(`[ 1e400 ]`), Bytes: 9,
		Blob: &outcome.Handle{Name: "n", Size: 1, SHA256: "ab"}, Text: true, Type: "Order", Shown: "an order", Reused: true, Discarded: true, Revision: 2, Answer: &outcome.Answered{Decision: outcome.DecisionApproved, At: at},
		Answers: []*outcome.Answered{{Decision: outcome.DecisionAnswered, At: at}, {Decision: outcome.DecisionRejected, At: at.Add(1)}}, Refused: []outcome.Refused{{Round: 1, Problems: []fault.Problem{{Code: fault.UnknownTool, Path: "/p", Message: "m"}}, Count: 2}}, ToolLogs: []outcome.ToolLog{{Purpose: "p", ToolName: "t", Kwargs: json.RawMessage("{}"), TodoSuggestion: "d", Next: "n", Success: true, Result: json.RawMessage("1"), Error: json.RawMessage("null")}}, LogsLeftOut: 3, Messages: []outcome.Message{{Step: "a/=0/m", Round: 0, At: at, Text: "t", Bytes: 9, Reused: true}, {Step: "a/=1/m", Round: 1}}, MessagesLeftOut: 4, Said: []outcome.Said{{ID: "m1", By: "ann", Verified: true, Interrupt: true, Round: new(int), Content: json.RawMessage(`"x"`)}, {ID: "m2"}}, List: "ef", RetriedKey: "t/r/1/a",
		Items: []outcome.Step{{ID: "a=0", Tool: "crm/get", Status: outcome.StepSucceeded, Bytes: 1}, {ID: "a=1", Tool: "crm/get", Status: outcome.StepRunning}},
		Steps: []outcome.Step{{ID: "a/b", Tool: "crm/get", Status: outcome.StepSucceeded, Bytes: 1}},
	}
	v := reflect.ValueOf(full)
	for i := range v.NumField() {
		require.False(t, v.Field(i).IsZero(), "fill in %s", v.Type().Field(i).Name)
	}
	run := outcome.Run{Steps: []outcome.Step{full}}
	var back outcome.Run
	require.NoError(t, json.Unmarshal(run.JSON(), &back))
	require.Equal(t, full, back.Steps[0])
	require.Contains(t, string(run.JSON()), `"arguments":{"n": 1.0},"result":[ 1e400 ],`)
}
