package agents

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/client"
)

func say(t Terminal) *cobra.Command {
	var w client.Word
	c := &cobra.Command{
		Use: "say RUN TEXT", Short: "Say something to an agent while it runs",
		Long: `Tells the planner of an agent something with its next request. What runs goes on, but with
--interrupt; a loop that would end goes on for it. What is said stands once this returns; said again
under the same --id it is the same word. An agent that is over, or in its last round, hears nothing any more: exit code 1.`,
		Example: `  stepjet agents say order-42 "Actually, I'll be traveling with my dog."
  stepjet agents say order-42 "In German, please." --step write --id m1`,
		Args: cobra.ExactArgs(2),
		RunE: t.Work(func(cmd *cobra.Command, args []string) error {
			w.Text = args[1]
			heard, err := t.Speak(cmd.Context(), args[0], w)
			if err != nil {
				return err
			}
			if t.JSON() {
				said := struct { // as in docs/protocol.md
					Run     string `json:"run"`
					Agent   string `json:"agent"`
					ID      string `json:"id"`
					Round   *int   `json:"round,omitempty"`
					Already bool   `json:"already"`
				}{Run: args[0], Agent: w.Step, ID: heard.ID, Already: heard.Already}
				if heard.Round >= 0 {
					said.Round = &heard.Round
				}
				return t.Document(said)
			}
			told := "its planner is told with the next request"
			if heard.Round >= 0 {
				told = fmt.Sprintf("its planner was told in round %d", heard.Round)
			}
			t.Say("%s  (id %s)", told, heard.ID)
			return nil
		}),
	}
	c.Flags().StringVar(&w.Step, "step", Step, "the `step` that calls the agent")
	c.Flags().StringVar(&w.ID, "id", "", "names what is said; default: a new `id`")
	c.Flags().BoolVar(&w.Interrupt, "interrupt", false,
		"end the round that it is in: what waits is dropped, what runs is cancelled")
	c.Flags().StringVar(&w.By, "by", "", "who says it; default: nobody is `name`d")
	return c
}
