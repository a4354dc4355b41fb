package outcome_test

import (
	"encoding/json"
	"fmt"

	"github.com/stepjet/stepjet/outcome"
)

func ExampleOutcome_JSON() {
	o := &outcome.Outcome{
		Run: "order-42", Status: outcome.Succeeded,
		Results: outcome.Results{{Step: "total", JSON: json.RawMessage(`1.0`)}},
		Stats:   outcome.Stats{Steps: 1, Succeeded: 1, BytesReturned: 3},
	}
	fmt.Println(string(o.JSON()))
	// Output: {"run":"order-42","status":"succeeded","results":{"total":1.0},"errors":[],"stats":{"steps":1,"succeeded":1,"failed":0,"skipped":0,"elapsed_ms":0,"bytes_returned":3,"bytes_kept_out":0,"tokens_kept_out_estimate":0}}
}
