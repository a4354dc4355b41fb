package main

import (
	"context"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/worker"
)

// seeds adds the tools of agents that plan a step ahead.
func (h hosting) seeds(folder string) {
	switch folder {
	case "refund":
		h.tool("check_billing_history", "Says what is known of a customer.", []string{"customer string"},
			func(context.Context, object) (any, error) {
				return object{"orders": 5, "last_chargeback": "2025-09-10"}, nil
			})
		h.says("issue_refund", "Pays an amount back.", []string{"customer string", "amount number"}, "refund of %s: %v")
		h.says("escalate_to_supervisor", "Asks a supervisor.", []string{"customer string"}, "a supervisor looks at %s")
	case "trip":
		h.tool("book_flight", "Books a flight.", []string{"destination string"},
			func(ctx context.Context, in object) (any, error) {
				// The user thinks of something while the flight is being booked.
				return object{"flight": in["destination"]}, h.say(ctx, "Actually, I'll be traveling with my dog.")
			}, destructive())
		h.says("book_hotel", "Books a hotel.", []string{"destination string"}, "a room in %s")
		h.says("find_pet_friendly_hotel", "Books a hotel that takes pets.", []string{"destination string"},
			"a room in %s with a basket")
	case "payment":
		h.tool("process_payment", "Takes money from a card.", []string{"amount number"},
			func(context.Context, object) (any, error) {
				return nil, worker.Terminal(&fault.Error{Code: "card_declined", Message: "Your card was declined."})
			})
		h.says("confirm_order", "Confirms an order.", []string{"receipt string"}, "confirmed: %s")
		h.tool("report_failure", "Tells a customer.", []string{"error any"}, func(_ context.Context, in object) (any, error) {
			return object{"told": in["error"].(object)["message"]}, nil
		})
	case "translation":
		h.tool("detect_language", "Says which language a text is in.", []string{"text string"},
			func(_ context.Context, in object) (any, error) {
				if strings.HasPrefix(in["text"].(string), "Bonjour") {
					return "fr", nil
				}
				return "en", nil
			})
		h.tool("is_english", "Says whether a language is English.", []string{"language string"},
			func(_ context.Context, in object) (any, error) {
				return in["language"] == "en", nil
			})
		h.tool("translate_text", "Translates a text into English.", []string{"text string", "is_english boolean"},
			func(_ context.Context, in object) (any, error) {
				if in["is_english"].(bool) {
					return in["text"], nil
				}
				return strings.NewReplacer("Bonjour le monde", "Hello world").Replace(in["text"].(string)), nil
			})
	case "outing":
		h.says("get_weather", "Says what the weather is.", []string{"city string"}, "rain in %s")
		h.tool("is_it_sunny", "Says whether the sun shines.", []string{"weather string"},
			func(_ context.Context, in object) (any, error) {
				if strings.HasPrefix(in["weather"].(string), "sun") {
					return object{"sunny": in["weather"]}, nil
				}
				return object{"not_sunny": in["weather"]}, nil
			})
		h.says("find_park", "Finds a park.", []string{"because string"}, "a park, since there is %s")
		h.says("find_movie", "Finds a movie.", []string{"because string"}, "a movie, since there is %s")
		h.says("present_suggestion", "Suggests something.", []string{"suggestion string"}, "How about %s?")
	case "briefing":
		h.says("get_weather", "Says what the weather is.", []string{"city string"}, "rain in %s")
		h.says("look_up_custom", "Says what people wear in a city.", []string{"city string"},
			"good shoes for the hills of %s")
		h.says("send_briefing", "Sends a traveller a text.", []string{"text string"}, "sent: %s")
	case "commands":
		h.says("search", "Searches the web.", []string{"query string"}, "found: %s")
		h.says("calculate", "Calculates.", []string{"expression string"}, "%s is 3.5")
	}
}
