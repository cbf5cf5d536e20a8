// Turns a text into capitals.
package main

import (
	"capstan"
	"context"
	"strings"
)

type Words struct {
	Text string `json:"text"`
}

func shout(_ context.Context, _ *capstan.Call, in Words) (Words, error) {
	return Words{Text: strings.ToUpper(in.Text)}, nil
}

func main() {
	capstan.Serve(capstan.Capability[Words, Words]{
		Name: "shout-go", Version: "1.0.0", Description: "Turns a text into capitals.",
		Tags: []string{"local"}, Exec: shout,
	})
}
