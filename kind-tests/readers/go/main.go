// reference-answers says what the libraries of the Go reference make of a text: the tests put to it what they put to our own
// readers and compare.
//
// Questions come on standard input, answers go to standard output, in order, both JSON. A question is {"about": ..., "asked": ...},
// an answer {"value": ...} or {"error": "..."}. It ends with its standard input.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
)

// answerers are what a question can be about.
var answerers = map[string]func(json.RawMessage) (any, error){
	"duration":  answering(duration),
	"selectors": answering(selectors),
	"query":     answering(query),
	"list":      answering(list),
	"shoot":     answering(shoot),
}

func answering[Asked, Value any](answer func(Asked) (Value, error)) func(json.RawMessage) (any, error) {
	return func(text json.RawMessage) (any, error) {
		var asked Asked
		if err := json.Unmarshal(text, &asked); err != nil {
			return nil, err
		}
		return answer(asked)
	}
}

type question struct {
	About string          `json:"about"`
	Asked json.RawMessage `json:"asked"`
}

// reply answers a question. A panic of a library is its answer: the reference would have crashed.
func reply(to question) (answer map[string]any) {
	defer func() {
		if crash := recover(); crash != nil {
			answer = map[string]any{"error": fmt.Sprintf("panic: %v", crash)}
		}
	}()
	value, err := answerers[to.About](to.Asked)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"value": value}
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var asked question
		err := in.Decode(&asked)
		if err == io.EOF {
			return
		}
		if err == nil {
			err = out.Encode(reply(asked))
		}
		if err != nil {
			log.Fatal(err)
		}
	}
}
