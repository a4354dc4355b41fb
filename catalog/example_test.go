package catalog_test

import (
	"fmt"

	"github.com/stepjet/stepjet/catalog"
	"github.com/stepjet/stepjet/tool"
)

func ExampleExport() {
	search, err := tool.ParseDefinition([]byte(`{"name": "docs/search", "description": "Searches documents.",
		"inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
		"x-orchestration": {"max_concurrency": 5}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := catalog.Export(catalog.Anthropic, []*tool.Definition{search}, catalog.Options{Strict: true})
	fmt.Print(string(out), err)
	// Output:
	// [
	//   {
	//     "name": "docs_search_8a3cf6e4",
	//     "description": "Searches documents.\n\nContract: runs at most 5 calls at a time. Its name in plans: docs/search",
	//     "input_schema": {
	//       "type": "object",
	//       "properties": {
	//         "query": {
	//           "type": "string"
	//         }
	//       },
	//       "required": [
	//         "query"
	//       ],
	//       "additionalProperties": false
	//     },
	//     "strict": true
	//   }
	// ]
	// <nil>
}
