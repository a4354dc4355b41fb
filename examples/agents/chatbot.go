package main

import "context"

// chatbot has what reads Wikipedia and what an office has. Nobody hosts a search of Brave, and nobody plays music.
func (h hosting) chatbot() {
	h.tool("search_wikipedia", "Finds articles.", []string{"query string"}, func(context.Context, object) (any, error) {
		return []string{"Tide", "Moon"}, nil
	})
	h.says("get_article", "Returns an article.", []string{"title string"}, "the article %s")
	h.says("get_summary", "Returns the beginning of an article.", []string{"title string"}, "in short: %s")
	h.says("get_related_topics", "Returns what an article is near to.", []string{"title string"}, "near to %s")
	h.says("room_free", "Says which room is free.", nil, "the blue one")
	h.says("mail_send", "Sends a mail to all.", []string{"text string"}, "sent: %s")
	h.says("mail_read", "Reads the last mail.", nil, "nothing new")
}
