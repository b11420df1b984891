// reference-answers says what the libraries of the Go reference make of a text: the tests put to it what they put to our own
// readers and compare.
//
// One question per line of standard input, one answer per line of standard output, in order, both JSON. A question has one
// field, named for the answerer; an answer is {"value": ...} or {"error": "..."}. It ends with its standard input.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// question is what all kinds of questions have room for; the one that is set is meant.
type question struct {
	Duration *string          `json:"duration"`
	Integer  *string          `json:"integer"`
	Boolean  *string          `json:"boolean"`
	Prober   *string          `json:"prober"`
	Weeder   *weederQuestion  `json:"weeder"`
	Flags    *[]string        `json:"flags"`
	Query    *queryAsked      `json:"query"`
	Encode   *json.RawMessage `json:"encode"`
	Decode   *body            `json:"decode"`
	Shoot    *json.RawMessage `json:"shoot"`
}

type answer struct {
	Value any    `json:"value,omitempty"`
	Error string `json:"error,omitempty"`
}

func (q question) answer() (any, error) {
	switch {
	case q.Duration != nil:
		return duration(*q.Duration)
	case q.Integer != nil:
		return integer(*q.Integer)
	case q.Boolean != nil:
		return boolean(*q.Boolean)
	case q.Prober != nil:
		return prober(*q.Prober)
	case q.Weeder != nil:
		return weeder(*q.Weeder)
	case q.Flags != nil:
		return flags(*q.Flags)
	case q.Query != nil:
		return query(*q.Query)
	case q.Encode != nil:
		return encode(*q.Encode)
	case q.Decode != nil:
		return decode(*q.Decode)
	case q.Shoot != nil:
		return shoot(*q.Shoot)
	}
	return nil, errors.New("no question")
}

// reply answers one line. A panic of a library is its answer: the reference would have crashed.
func reply(line []byte) (out answer) {
	defer func() {
		if crash := recover(); crash != nil {
			out = answer{Error: fmt.Sprintf("panic: %v", crash)}
		}
	}()
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Error: "question: " + err.Error()}
	}
	value, err := asked.answer()
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Value: value}
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	encoder := json.NewEncoder(out)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		if err := encoder.Encode(reply(line)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		// Many questions may be asked at once; who waits is answered.
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				os.Exit(1)
			}
		}
	}
}
